#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: monitoring_server
short_description: Configure or remove Prometheus and Alertmanager
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Writes both configurations, rules, targets, consoles and the users of the web pages. Before that, C(promtool) and
    C(amtool) check all files together in a temporary directory, as the user of the services. If one of them refuses a
    file, nothing changes.
  - Targets, consoles and users need no reload. Rules and configurations are reloaded. Only other options of a service,
    or another certificate, need a restart.
  - If a service does not load the new files, the module puts the old files back, and reports the service's last
    messages.
  - Stores the passwords of O(users) as bcrypt hashes. A hash that matches its password stays unchanged. Prometheus
    itself uses a password that is generated on the machine.
  - Refuses to replace a configuration that this collection did not write, unless O(replace=true).
  - With O(verify_seconds), waits until Prometheus has all targets, has evaluated all rules, and has an Alertmanager. If
    this takes longer, the module fails. A target that does not answer is reported, and is no failure.
  - With O(state=absent), stops and disables both services, and removes the files of this module. Samples, silences and
    packages stay. If this collection did not write one of the configurations, everything stays.
  - Internal to this collection; its options may change without notice.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - If Prometheus or Alertmanager is not installed yet, the files cannot be checked, and RV(validated) is false.
      - Check mode does not use O(verify_seconds).
  diff_mode:
    support: full
    details:
      - Does not show passwords, keys and addresses in O(plan.secrets), and nothing of the users.
options:
  state:
    description: V(present) configures both services, V(absent) removes them.
    type: str
    choices: [present, absent]
    default: present
  packages:
    description: The packages that another task installs. Check mode returns missing packages as RV(missing).
    type: list
    elements: str
    default: []
  plan:
    description: The result of the filter P(baremetal.inference.monitoring_plan#filter). Required with O(state=present).
    type: dict
    suboptions:
      problems:
        description: Mistakes in the input. If there are any, the module fails with all of them, and changes nothing.
        type: list
        elements: str
        default: []
      files:
        description: The texts of files that all users may read, by path below C(/etc/prometheus).
        type: dict
        required: true
      secrets:
        description:
          - The texts of files that may contain a password, by path below C(/etc/prometheus). Only the services may read
            these.
        type: dict
        required: true
      web:
        description: The text of C(web.yml), without the users.
        type: str
        default: ""
      units:
        description: The text of each service's drop-in, by the service's name.
        type: dict
        required: true
      url:
        description: The URL at which this machine reaches Prometheus.
        type: str
        required: true
      alertmanager_url:
        description: The URL at which this machine reaches Alertmanager.
        type: str
        required: true
      asked:
        description: For O(verify_seconds), the targets that Prometheus must have, by job, as C(address:port).
        type: dict
        default: {}
      rules:
        description: For O(verify_seconds), the names of the files whose rules Prometheus must have evaluated.
        type: list
        elements: str
        default: []
      dashboards:
        description: The SHA-256 of each dashboard for Grafana, by file name.
        type: dict
        default: {}
  dashboards_path:
    description:
      - The directory to which another task copies the dashboards. In check mode, RV(due) is true if they differ.
    type: path
  users:
    description: The passwords of the users of the web pages, by name. If empty, no password is needed.
    type: dict
    default: {}
  replace:
    description: Replace a configuration that this collection did not write. A copy is kept.
    type: bool
    default: false
  verify_seconds:
    description: How long to wait for targets and rules of Prometheus, in seconds. 0 skips this check.
    type: int
    default: 0
"""

EXAMPLES = r"""
- name: Configure Prometheus and Alertmanager, and verify targets and rules
  baremetal.inference.monitoring_server:
    plan: "{{ settings | baremetal.inference.monitoring_plan(monitoring_targets, role_path ~ '/files') }}"
    users: {operator: "{{ vault_monitoring_password }}"}
    verify_seconds: 60

- name: Remove Prometheus and Alertmanager
  baremetal.inference.monitoring_server:
    state: absent
"""

RETURN = r"""
due:
  description:
    - Whether the module changes, or would change, anything, or packages of O(packages) are missing, or a dashboard
      differs. Unlike C(changed), not hidden by C(changed_when).
  returned: success
  type: bool
missing:
  description: The packages of O(packages) that are not installed; empty outside of check mode.
  returned: with O(state=present)
  type: list
  elements: str
actions:
  description:
    - How the change was, or would be, applied, by service. V(none), V(reload), V(restart) or V(start).
  returned: with O(state=present)
  type: dict
written:
  description: The files that were, or would be, written or removed, below C(/etc/prometheus).
  returned: with O(state=present)
  type: list
  elements: str
validated:
  description: Whether the files were checked. False in check mode if Prometheus or Alertmanager is missing.
  returned: with O(state=present)
  type: bool
backup_files:
  description: The copies of replaced configurations that this collection did not write.
  returned: if such files were replaced
  type: list
  elements: str
up:
  description: The number of targets that answer.
  returned: with O(verify_seconds), outside of check mode
  type: int
down:
  description: The targets that do not answer, each with the reason.
  returned: with O(verify_seconds), outside of check mode
  type: list
  elements: str
rules:
  description: The number of evaluated rules.
  returned: with O(verify_seconds), outside of check mode
  type: int
stopped:
  description: The services that were, or would be, stopped and disabled.
  returned: with O(state=absent)
  type: list
  elements: str
removed:
  description: The files that were, or would be, removed.
  returned: with O(state=absent)
  type: list
  elements: str
kept:
  description: The directories with samples and silences that stay on the machine.
  returned: with O(state=absent)
  type: list
  elements: str
foreign:
  description: Configurations that this collection did not write. If there are any, nothing is removed.
  returned: with O(state=absent)
  type: list
  elements: str
"""

import grp
import hashlib
import os
import secrets
import shutil
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.prometheus_text import samples
from ansible_collections.baremetal.inference.plugins.module_utils.core.quiet_module import QuietModule
from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_packages, tested
from ansible_collections.baremetal.inference.plugins.module_utils.debian.service_files import (
    HIDDEN,
    ServiceError,
    ServiceFiles,
    remove,
)
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring import removal
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.api import NoAnswer, Server
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.config import PASSWORD, RULES
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.passwords import (
    CryptError,
    basic_auth_users,
)
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.places import (
    ALERTMANAGER,
    DIRECTORY,
    DROP_IN,
    HEADER,
    OWNED,
    PROMETHEUS,
    SAMPLES,
    SILENCES,
    STATE,
    UNITS,
)
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.redaction import (
    redacted,
    without_secrets,
)
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.settings import INTERNAL_USER
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.units import WEB
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.watch import watch

USER = "prometheus"
"""The user of both services in Debian's units."""

LOADED = {PROMETHEUS: ("prometheus.yml", f"{RULES}/"), ALERTMANAGER: ("alertmanager.yml",)}
"""The prefixes of the files that a service loads at a reload."""

TOOLS = ("promtool", "amtool", "prometheus", "prometheus-alertmanager")

RELOAD_SECONDS = 30.0
START_SECONDS = 180.0
"""Time limits of a reload and a start, in seconds. At its start, Prometheus reads up to two hours of samples that are
not in its blocks yet."""


def digest(*texts: str) -> str:
    """One checksum over some texts."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


class MonitoringServer(ServiceFiles):
    """Prometheus and Alertmanager on this machine."""

    # Alertmanager first: Prometheus sends alerts to it.
    units = (ALERTMANAGER, PROMETHEUS)

    def __init__(self, module: AnsibleModule) -> None:
        super().__init__(module)
        self.plan = self.params["plan"]
        self.users: dict[str, str] = {name: str(word) for name, word in self.params["users"].items()}
        self.drop_in = {unit: UNITS / f"{unit}.d" / DROP_IN for unit in self.plan["units"]}
        self.drop_ins = frozenset(self.drop_in.values())

    def inspect(self) -> None:
        missing = [tool for tool in TOOLS if self.module.get_bin_path(tool) is None]
        if missing and not self.module.check_mode:
            raise ServiceError(
                f"not installed: {', '.join(missing)}. Install the packages prometheus and prometheus-alertmanager"
                " first. Nothing was changed."
            )
        self.installed = not missing
        self.password = (internal_password() or secrets.token_urlsafe(32)) if self.users else ""
        users = {**self.users, INTERNAL_USER: self.password} if self.users else {}
        self.hidden: dict[str, str] = {
            **self.plan["secrets"],
            WEB: self.plan["web"] + basic_auth_users(users, files.text(DIRECTORY / WEB) or ""),
            **({PASSWORD: f"{self.password}\n"} if self.users else {}),
        }
        self.texts: dict[str, str] = {**self.plan["files"], **self.hidden}
        self.state = files.read_written(STATE)
        self.compare(
            {
                **{DIRECTORY / name: text for name, text in self.texts.items()},
                **{path: self.plan["units"][unit] for unit, path in self.drop_in.items()},
            },
            written=[DIRECTORY / name for name in self.state.get("files", ())],
        )
        self.refuse_foreign(
            {DIRECTORY / name: package for name, package in OWNED.items()},
            HEADER,
            "Declare its jobs, rules and receivers in monitoring_scrape_configs, monitoring_extra_rules and"
            " monitoring_receivers. Then set monitoring_replace to true: the file is replaced, and a copy is kept. Or"
            " let that Prometheus monitor this fleet: docs/monitoring.md.",
        )
        self.read_units()
        self.validated = self.validate() if self.installed else False

    def validate(self) -> bool:
        """Check all files together, as the user of the services. Raises ServiceError with all refusals."""
        refusals = []
        with self.staged(DIRECTORY) as stage:
            shutil.chown(stage, group=USER)
            stage.chmod(0o750)
            for command in (
                ("promtool", "check", "config", str(stage / "prometheus.yml")),
                ("promtool", "check", "web-config", str(stage / WEB)),
                ("amtool", "check-config", str(stage / "alertmanager.yml")),
            ):
                as_user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups", *command]
                if why := self.refusal(as_user, stage, DIRECTORY, cwd=str(stage)):
                    refusals.append(f"{' '.join(command[:-1])}:\n{why}")
        if refusals:
            words = self.without_secrets("\n".join(refusals))
            raise ServiceError(f"The new files are refused. Nothing was changed; the services keep running.\n{words}")
        return True

    def is_hidden(self, path: Path) -> bool:
        return path not in self.drop_ins and str(path.relative_to(DIRECTORY)) in self.hidden

    def mode(self, path: Path) -> int:
        return 0o640 if self.is_hidden(path) else 0o644

    def kept(self, path: Path) -> bool:
        group = not self.is_hidden(path) or not self.installed or path.stat().st_gid == self.group
        return group and super().kept(path)

    @property
    def group(self) -> int:
        return grp.getgrnam(USER).gr_gid

    def write(self, path: Path, text: str | None, place: Path) -> None:
        super().write(path, text, place)
        if text is not None and self.is_hidden(path):
            os.chown(place, -1, self.group)

    def decide(self) -> dict[str, Any]:
        rules = [name + text for name, text in sorted(self.texts.items()) if name.startswith(f"{RULES}/")]
        configs = {
            PROMETHEUS: (self.texts["prometheus.yml"], *rules),
            ALERTMANAGER: (self.texts["alertmanager.yml"],),
        }
        self.loaded = {
            # A service decides only at its start whether to serve TLS (in `web`).
            unit: {"config": digest(*configs[unit]), "unit": digest(text, self.plan["web"])}
            for unit, text in self.plan["units"].items()
        }
        self.actions = {unit: self.action(unit) for unit in self.plan["units"]}
        return {
            "changed": self.changes,
            "actions": self.actions,
            "written": [str(path.relative_to(DIRECTORY)) for path in self.differing if path not in self.drop_ins],
            "validated": self.validated,
            "diff": self.diff(),
        }

    def action(self, unit: str) -> str:
        """How the changes of a service are applied: start, restart, reload or none."""
        known = self.state.get("loaded", {}).get(unit, {})
        if not self.active[unit]:
            return "start"
        if known.get("unit") != self.loaded[unit]["unit"] or self.drop_in[unit] in self.differing:
            return "restart"
        # Reload also for a file that was altered by hand: the service may have loaded it.
        names = [str(path.relative_to(DIRECTORY)) for path in self.altered if path not in self.drop_ins]
        reloading = any(name.startswith(LOADED[unit]) for name in names)
        return "reload" if reloading or known.get("config") != self.loaded[unit]["config"] else "none"

    def shown(self, path: Path) -> tuple[str, str]:
        if path in (DIRECTORY / WEB, DIRECTORY / PASSWORD):
            return HIDDEN
        before, after = super().shown(path)
        return (redacted(before), redacted(after)) if self.is_hidden(path) else (before, after)

    def back_up(self) -> dict[str, Any]:
        if not self.foreign:
            return {}
        return {"backup_files": [self.module.backup_local(str(path)) for path in self.foreign]}

    def record(self, result: dict[str, Any]) -> None:
        files.write_json(STATE, {"schema": 1, "files": sorted(self.texts), "loaded": self.loaded})

    def why_not_up(self, unit: str, action: str, began: float) -> str:
        prefix, url = (
            ("prometheus", self.plan["url"]) if unit == PROMETHEUS else ("alertmanager", self.plan["alertmanager_url"])
        )
        server = Server(url, self.password)
        success = f"{prefix}_config_last_reload_success_timestamp_seconds"
        outcome = f"{prefix}_config_last_reload_successful"

        def has_loaded() -> bool | None:
            try:
                server.text("/-/ready")
                found = samples(server.text("/metrics"), {success, outcome})
            except NoAnswer:
                found = {}
            # One second of tolerance, for different rounding.
            if found.get(outcome) == 1 and found.get(success, 0) >= began - 1:
                return True
            refused = found.get(outcome) == 0 and time.time() - began > 2
            # Restarts mean that the service has ended, and systemd has started it again.
            return False if refused or (action != "reload" and self.restarts(unit)) else None

        seconds = RELOAD_SECONDS if action == "reload" else START_SECONDS
        return (
            "" if self.wait(has_loaded, seconds) else f"{url} did not load the new files (time limit: {seconds:.0f} s)"
        )

    def restarts(self, unit: str) -> bool:
        """Whether systemd has restarted a service after a failure since its last start."""
        _code, output, _error = self.command("systemctl", "show", "--value", "--property=NRestarts", unit)
        return output.strip() not in ("0", "")

    def is_noise(self, line: str) -> bool:
        return "level=info" in line.lower()

    def last_words(self, unit: str, since: float) -> str:
        return self.without_secrets(super().last_words(unit, since))

    def without_secrets(self, words: str) -> str:
        """A text about old or new files, without the secrets in the files."""
        for name, text in self.hidden.items():
            words = without_secrets(without_secrets(words, text), self.before[DIRECTORY / name] or "")
        return words


def internal_password() -> str:
    """The password that Prometheus itself uses; empty if there is none."""
    return (files.text(DIRECTORY / PASSWORD) or "").strip()


def dashboards_differ(params: dict[str, Any]) -> bool:
    """Whether a dashboard must be copied again; False without `dashboards_path`. Raises OSError."""
    wanted: dict[str, str] = params["plan"]["dashboards"] if params["dashboards_path"] else {}
    paths = {name: Path(params["dashboards_path"]) / name for name in wanted}
    return any(
        not path.is_file() or not files.own(path) or hashlib.sha256(path.read_bytes()).hexdigest() != wanted[name]
        for name, path in paths.items()
    )


def present(module: AnsibleModule) -> dict[str, Any]:
    """Configure both services. Raises ServiceError, CryptError, OSError and ValueError."""
    params = module.params
    untested = tested.refusal("monitoring", "Prometheus")
    if found := [*([untested] if untested else []), *params["plan"]["problems"]]:
        raise ServiceError("\n- ".join(["The input of monitoring has mistakes. Nothing was changed.", *found]))
    missing = apt_packages.absent_of(module.run_command, params["packages"]) if module.check_mode else []
    result = MonitoringServer(module).run()
    stale = module.check_mode and dashboards_differ(params)
    return {**result, "missing": missing, "due": result["changed"] or bool(missing) or stale}


def verify(module: AnsibleModule, result: dict[str, Any]) -> None:
    """Verify targets, rules and Alertmanager. Adds what was found to the result; fails if anything is missing."""
    params, plan = module.params, module.params["plan"]
    try:
        password = internal_password() if params["users"] else ""
    except OSError as error:
        module.fail_json(msg=f"The files are in place, but Prometheus cannot be verified: {error}", **result)
    servers = Server(plan["url"], password), Server(plan["alertmanager_url"], password)
    found, missing = watch(*servers, plan["asked"], plan["rules"], params["verify_seconds"])
    result.update(found)
    if missing:
        module.fail_json(msg="\n- ".join(["Prometheus does not monitor the fleet as declared:", *missing]), **result)


def main() -> None:
    module = QuietModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "packages": {"type": "list", "elements": "str", "default": []},
            "plan": {
                "type": "dict",
                "options": {
                    "problems": {"type": "list", "elements": "str", "default": []},
                    "files": {"type": "dict", "required": True},
                    "secrets": {"type": "dict", "required": True, "no_log": True},
                    "web": {"type": "str", "default": ""},
                    "units": {"type": "dict", "required": True},
                    "url": {"type": "str", "required": True},
                    "alertmanager_url": {"type": "str", "required": True},
                    "asked": {"type": "dict", "default": {}},
                    "rules": {"type": "list", "elements": "str", "default": []},
                    "dashboards": {"type": "dict", "default": {}},
                },
            },
            "dashboards_path": {"type": "path"},
            "users": {"type": "dict", "default": {}, "no_log": True},
            "replace": {"type": "bool", "default": False},
            "verify_seconds": {"type": "int", "default": 0},
        },
        required_if=[("state", "present", ["plan"])],
        supports_check_mode=True,
    )
    if module.params["state"] == "absent":
        kept = [str(path) for path in (SAMPLES, SILENCES) if path.is_dir()]
        result = remove(module, removal.everything)
        module.exit_json(**result, due=result["changed"], kept=kept)
    try:
        result = present(module)
    except (ServiceError, CryptError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    if module.params["verify_seconds"] and not module.check_mode:
        verify(module, result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
