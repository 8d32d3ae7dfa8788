#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: backup
short_description: Install scheduled backups of a node, and create their repository
version_added: 0.1.0
description:
  - Installs the command C(inference-backup), its settings and secrets (mode 0600), services and timers.
  - Before that, restic checks whether the repository exists and whether the password opens it. The module creates a
    missing repository, but fails if this node has made backups in the repository before. The repository was then
    removed, or is not mounted.
  - O(state=absent) removes the command and its files. The repository with its snapshots stays.
  - Reports all mistakes of the input at once, before anything changes.
  - restic gets secrets by files of mode 0600 and by its environment, never on a command line.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  repository:
    description: The repository, a directory on the node, or a C(sftp:), C(s3:) or C(rest:) address in restic's form.
    type: str
    default: ""
  packages:
    description:
      - The packages that another task installs. Check mode returns missing packages as RV(missing), and then does not
        check the repository.
    type: list
    elements: str
    default: []
  repository_checked:
    description:
      - Whether the module checks the repository, and creates a missing one. If V(false), it only checks and installs
        the settings.
    type: bool
    default: true
  password:
    description: The password that encrypts the repository.
    type: str
    default: ""
  environment:
    description: Credentials of the repository's server, as restic's variables.
    type: dict
    default: {}
  sftp_key:
    description: The private key for SFTP. If empty, root's keys are used.
    type: str
    default: ""
  known_hosts:
    description: The server's host keys for SFTP, as lines of C(known_hosts). If empty, root's C(known_hosts) is used.
    type: list
    elements: str
    default: []
  ca_file:
    description: The certificate on the node that verifies the server's certificate.
    type: str
    default: ""
  host:
    description: The name under which the node's snapshots are kept.
    type: str
    default: ""
  paths:
    description: The paths to back up, absolute, with shell patterns. Missing paths are skipped.
    type: list
    elements: str
    default: []
  exclude:
    description: The paths to leave out.
    type: list
    elements: str
    default: []
  append_only:
    description:
      - Whether the server of the repository lets this node delete nothing. Only a C(rest:) or C(s3:) server can refuse
        deletions.
      - With O(repository_checked), before any change, the module asks the server to delete objects that do not exist,
        and fails unless the server refuses.
      - The node then never prunes. M(baremetal.inference.backup_prune) prunes on another machine, by other credentials.
    type: bool
    default: false
    version_added: 0.2.0
  keep:
    description: The number of snapshots to keep, by C(last), C(hourly), C(daily), C(weekly), C(monthly) and C(yearly).
    type: dict
    default: {}
  check_subset:
    description: The part of the data that a check reads, for example V(5%), V(1/10) or V(500M).
    type: str
    default: 5%
  max_mib:
    description: The largest size of a backup, in MiB.
    type: int
    default: 1024
  lock_minutes:
    description: How long a job waits for another node's job, in minutes.
    type: int
    default: 30
  schedules:
    description: The start times of C(backup), C(prune) and C(check), in the format of systemd.time(7); empty for never.
    type: dict
    default: {}
  delay_minutes:
    description: The longest delay after the scheduled time, in minutes. Each node has its own fixed delay.
    type: int
    default: 60
  cpu_quota:
    description: The share of one processor that a job may use.
    type: str
    default: 100%
  timeout_hours:
    description: After how many hours systemd ends a job.
    type: int
    default: 6
  state:
    description: Whether backups are installed.
    type: str
    choices: [present, absent]
    default: present
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - If restic is not installed yet, RV(repository_state) is V(unknown).
  diff_mode:
    support: full
    details:
      - Secrets are left out.
"""

EXAMPLES = r"""
- name: Back up the node every night
  baremetal.inference.backup:
    repository: sftp:backup@backup.example.com:/srv/fleet
    password: "{{ vault_backup_password }}"
    known_hosts: ["backup.example.com ssh-ed25519 AAAA..."]
    host: "{{ inventory_hostname }}"
    paths: [/etc/inference, /var/lib/inference]
    keep: {daily: 7, weekly: 5}
    schedules: {backup: "02:30", prune: "Sun 04:30", check: "Wed 04:30"}

- name: Remove backups from the node
  baremetal.inference.backup:
    state: absent
"""

RETURN = r"""
due:
  description:
    - Whether the module changes, or would change, anything, or packages of O(packages) are missing. Unlike C(changed),
      not hidden by C(changed_when).
  returned: success
  type: bool
missing:
  description:
    - The packages of O(packages) that are not installed; empty unless in check mode with O(repository_checked).
  returned: success
  type: list
  elements: str
files:
  description: The files that were written or removed, or would be in check mode.
  returned: success
  type: list
  elements: str
repository_state:
  description:
    - V(ready); in check mode also V(absent), if the repository would be created, or V(unknown), if restic or
      a package of O(packages) is missing.
  returned: if O(repository_checked) and O(state=present)
  type: str
repository_id:
  description: The repository's ID; empty unless RV(repository_state) is V(ready).
  returned: if O(repository_checked) and O(state=present)
  type: str
"""

import re
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.backup import (
    append_only,
    ensure,
    program,
    restic,
    schedule,
    state,
    units,
)
from ansible_collections.baremetal.inference.plugins.module_utils.backup.places import JOBS, Places, service, timer
from ansible_collections.baremetal.inference.plugins.module_utils.backup.settings import ACCESS, Settings, problems

# Ansible sends imported files to the node, with everything that they import. The command inference-backup is one of
# them.
from ansible_collections.baremetal.inference.plugins.module_utils.core import files, node_library, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.secrets import is_placeholder
from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_packages, tested

SHORT_NUMBER = re.compile("[0-9]{1,9}")
"""A text that int() accepts. For isdigit(), a superscript is a digit, too, and int() refuses thousands of digits."""

ARGUMENTS = {
    "packages": {"type": "list", "elements": "str", "default": []},
    "repository": {"type": "str", "default": ""},
    "repository_checked": {"type": "bool", "default": True},
    "password": {"type": "str", "default": "", "no_log": True},
    **ACCESS,
    "host": {"type": "str", "default": ""},
    "paths": {"type": "list", "elements": "str", "default": []},
    "exclude": {"type": "list", "elements": "str", "default": []},
    "append_only": {"type": "bool", "default": False},
    "keep": {"type": "dict", "default": {}},
    "check_subset": {"type": "str", "default": "5%"},
    "max_mib": {"type": "int", "default": 1024},
    "lock_minutes": {"type": "int", "default": 30},
    "schedules": {"type": "dict", "default": {}},
    "delay_minutes": {"type": "int", "default": 60},
    "cpu_quota": {"type": "str", "default": "100%"},
    "timeout_hours": {"type": "int", "default": 6},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


def settings_of(params: dict[str, Any], intervals: dict[str, int]) -> Settings:
    """The settings without the secrets."""
    keep = {
        str(key): int(count) if SHORT_NUMBER.fullmatch(str(count)) else count for key, count in params["keep"].items()
    }
    return Settings(
        repository=params["repository"],
        host=params["host"],
        paths=tuple(params["paths"]),
        exclude=tuple(params["exclude"]),
        keep=keep,
        check_subset=params["check_subset"],
        ca_file=params["ca_file"],
        max_mib=params["max_mib"],
        lock_minutes=params["lock_minutes"],
        append_only=params["append_only"],
        intervals=intervals,
    )


def limits_of(params: dict[str, Any]) -> units.Limits:
    """The schedules and limits of the jobs."""
    return units.Limits(
        schedules={job: str(params["schedules"].get(job, "")) for job in JOBS},
        delay_minutes=params["delay_minutes"],
        cpu_quota=params["cpu_quota"],
        timeout_hours=params["timeout_hours"],
    )


def intervals_of(params: dict[str, Any]) -> tuple[dict[str, int], list[str]]:
    """The longest time between two runs of each job, in seconds, and the mistakes in schedules."""
    intervals: dict[str, int] = {}
    found = []
    for job, text in limits_of(params).schedules.items():
        try:
            seconds = schedule.longest_gap(text) if text else 0
        except ValueError as error:
            name = "backup_schedule" if job == "backup" else f"backup_{job}_schedule"
            found.append(f"{name} is {text!r}: must be a time as in systemd.time(7), such as Sun 04:30 ({error})")
        else:
            intervals |= {} if seconds is None else {job: seconds}
    return intervals, found


def found_problems(params: dict[str, Any], settings: Settings) -> list[str]:
    """All other mistakes of the input, with the allowed values."""
    found = problems(settings, params["environment"], password=params["password"])
    if not params["paths"]:
        found.append("backup_paths is empty: name at least one path to back up")
    if settings.append_only and params["schedules"].get("prune"):
        found.append(
            f"backup_prune_schedule is {params['schedules']['prune']!r}, but with backup_append_only this node cannot"
            " prune: remove backup_prune_schedule, and run baremetal.inference.backup_prune on the controller"
        )
    unknown = sorted(set(params["schedules"]) - set(JOBS))
    if unknown:
        found.append(f"schedules has {', '.join(unknown)}: allowed are {', '.join(JOBS)}")
    for key in ("delay_minutes", "timeout_hours"):
        if params[key] < (key == "timeout_hours"):
            found.append(f"backup_{key} is {params[key]}: must be {int(key == 'timeout_hours')} or more")
    quota = params["cpu_quota"]
    if not (quota.endswith("%") and SHORT_NUMBER.fullmatch(quota[:-1]) and int(quota[:-1]) > 0):
        found.append(f"backup_cpu_quota is {quota!r}: must be a percentage above 0, such as 50%")
    if is_placeholder(params["sftp_key"]):
        found.append("backup_sftp_key is a placeholder: set the private key that the backup server knows, in the vault")
    if any("\n" in line for line in params["known_hosts"]):
        found.append("backup_sftp_known_hosts has an entry of several lines: each entry must be one line")
    return found


def wanted_files(params: dict[str, Any], settings: Settings, places: Places) -> dict[Path, tuple[str, int]]:
    """Text and mode of every file, except those of the command."""
    environment = {str(name): str(value) for name, value in params["environment"].items()}
    found = {
        places.settings: (files.to_json(settings.to_json()), 0o600),
        places.password: (f"{params['password']}\n", 0o600),
        places.environment: (files.to_json(environment), 0o600),
    }
    if params["sftp_key"]:
        found[places.key] = (params["sftp_key"].rstrip("\n") + "\n", 0o600)
    if params["known_hosts"]:
        found[places.known_hosts] = ("".join(f"{line}\n" for line in params["known_hosts"]), 0o600)
    texts = units.render(limits_of(params), params["repository"])
    return found | {places.units / name: (text, 0o644) for name, text in texts.items()}


def possible_files(places: Places) -> list[Path]:
    """All files that the module may write, except those of the command."""
    secrets = [places.settings, places.password, places.environment, places.key, places.known_hosts]
    return [*secrets, *(places.units / name for job in JOBS for name in (service(job), timer(job)))]


def shown(path: Path, text: str, places: Places) -> str:
    """A file's text for the diff, without secrets."""
    secret = path in (places.password, places.environment, places.key)
    return f"{path}:\n{'(not shown)' if secret else text.rstrip()}\n"


def idle_timers(present: list[str]) -> list[str]:
    """The timers that do not run, or are not enabled."""
    found = systemd.show(present, ["ActiveState", "UnitFileState"])
    return [name for name, unit in found.items() if list(unit.values()) != ["active", "enabled"]]


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    places, params = Places(), module.params
    present = params["state"] == "present"
    intervals, found = intervals_of(params)
    settings = settings_of(params, intervals)
    if present:
        untested = tested.refusal("backup", "restic")
        found += [*([untested] if untested else []), *found_problems(params, settings)]
    if found:
        module.fail_json(msg="The settings of the backup have mistakes. Nothing was changed.\n- " + "\n- ".join(found))
    result: dict[str, Any] = {}
    made = False
    missing: list[str] = []
    if present and params["repository_checked"]:
        try:
            if settings.append_only:
                append_only.prove(ensure.access(params))
            missing = apt_packages.absent_of(module.run_command, params["packages"]) if module.check_mode else []
            known, identity = "unknown", ""
            if not missing:
                known, identity, made = ensure.ensure(params, places, check=module.check_mode)
        except (restic.ResticError, append_only.NotProven, ValueError, OSError) as error:
            module.fail_json(msg=f"{error}. Nothing was changed.")
        result = {"repository_state": known, "repository_id": identity}
    try:
        wanted = wanted_files(params, settings, places) if present else {}
        before = {
            path: path.read_text(encoding="utf-8", errors="replace") for path in possible_files(places) if path.exists()
        }
        written = [path for path in wanted if not files.same(path, *wanted[path])]
        removed = [path for path in before if path not in wanted]
        tool = node_library.plan(program.__name__, places.library, places.command, present)
        timers = [path.name for path in wanted if path.suffix == ".timer"]
        idle = idle_timers(timers)
        unrecorded = present and module.check_mode and not state.is_set_up(places, settings)
        if not module.check_mode:
            gone = [path.name for path in removed if path.suffix == ".timer"]
            if gone:
                systemd.systemctl("disable", "--now", *gone)
            if present:
                for directory in (places.etc, places.work):
                    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            tool.apply()
            for path in written:
                files.write(path, *wanted[path])
            for path in removed:
                path.unlink()
            if any(path.parent == places.units for path in [*written, *removed]):
                systemd.systemctl("daemon-reload")
            if idle:
                systemd.systemctl("enable", "--now", *idle)
            again = [path.name for path in written if path.suffix == ".timer" and path.name not in idle]
            if again:
                systemd.systemctl("restart", *again)
            if present:
                # From now on, metrics and alerts compare the last runs with this schedule.
                state.set_up(places, settings, time.time())
    except (systemd.SystemdError, ImportError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    changed = bool(made or written or removed or tool.files or idle)
    module.exit_json(
        changed=changed,
        due=changed or bool(missing) or unrecorded,
        missing=missing,
        files=sorted([*(str(path) for path in [*written, *removed]), *tool.files]),
        diff={
            "before": "".join(shown(path, before.get(path, ""), places) for path in [*written, *removed])
            + tool.diff["before"] * bool(tool.files),
            "after": "".join(shown(path, wanted[path][0], places) for path in written)
            + tool.diff["after"] * bool(tool.files),
        },
        **result,
    )


if __name__ == "__main__":
    main()
