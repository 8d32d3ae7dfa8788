#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_recovery
short_description: Install the recovery of a node's engines
version_added: 0.1.0
description:
  - Installs and starts C(inference-recovery.path), which waits for the agent to ask for the recovery of an engine, and
    the units that it starts. Writes the settings of C(inferctl recover) and C(inferctl doctor).
  - With O(state=absent) it removes units and settings. The recovery's state of each instance stays.
  - No engine notices.
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  armed:
    description: Whether the recovery acts by itself. C(inferctl recover --disarm) disarms a single instance.
    type: bool
    default: true
  budget:
    description: Faults of an instance per hour that the recovery answers; the next fault opens the breaker.
    type: int
    default: 3
  backoff:
    description: Seconds between the second and the third step within an hour, doubled before each further step.
    type: float
    default: 30
  restart_docker:
    description:
      - Whether the recovery may restart a Docker that does not answer. Without live-restore, it does not restart Docker
        while other instances serve.
    type: bool
    default: true
  reset_gpus:
    description: Whether the recovery may reset a GPU that no other instance uses, where the table of XIDs says so.
    type: bool
    default: true
  evidence_kept:
    description: For how many steps of each instance the evidence is kept.
    type: int
    default: 5
  webhook:
    description: Gets a POST with JSON when a breaker opens. Its path may hold a secret, but no user and password.
    type: str
    default: ""
  mail_to:
    description: The address that gets a mail when a breaker opens, sent by the node's own sendmail.
    type: str
    default: ""
  mail_from:
    description: The sender of the mail; root if empty.
    type: str
    default: ""
  alertmanager:
    description:
      - The address of an Alertmanager without a password, which gets an alert by its API v2 when a breaker opens. The
        alert lasts until the breaker is closed, 30 days at most.
    type: str
    default: ""
  doctor_off:
    description: Checks of the doctor, or kinds of checks, that are off.
    type: list
    elements: str
    default: []
  free_percent:
    description: Space and inodes in percent that must be free on every file system of an engine.
    type: int
    default: 5
  clock_seconds:
    description: By how many seconds the clock may be off.
    type: float
    default: 1
  state:
    description: Whether the recovery is installed.
    type: str
    choices: [present, absent]
    default: present
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details:
      - Addresses of alerts are left out.
"""

EXAMPLES = r"""
- name: Install the recovery, and report faults that it cannot answer
  baremetal.inference.node_recovery:
    budget: 3
    webhook: https://hooks.example.org/inference
    doctor_off: [rdma]
"""

RETURN = r"""
due:
  description: Whether anything was to be done, also where the task itself must not report a change.
  returned: success
  type: bool
files:
  description: The files that were written or removed, or would be in check mode.
  returned: success
  type: list
  elements: str
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import (
    RECOVERY_DISPATCH,
    RECOVERY_PATH,
    Paths,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.units import recovery_units
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor import catalogue
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.host import Thresholds
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import alerts
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.settings import Settings

SECRET = ("webhook", "alertmanager")
"""Settings that a diff leaves out."""

ADDRESSES = {
    "webhook": {"type": "str", "default": "", "no_log": True},
    "mail_to": {"type": "str", "default": ""},
    "mail_from": {"type": "str", "default": ""},
    "alertmanager": {"type": "str", "default": "", "no_log": True},
}

ARGUMENTS = {
    "armed": {"type": "bool", "default": True},
    "budget": {"type": "int", "default": 3},
    "backoff": {"type": "float", "default": 30.0},
    "restart_docker": {"type": "bool", "default": True},
    "reset_gpus": {"type": "bool", "default": True},
    "evidence_kept": {"type": "int", "default": 5},
    **ADDRESSES,
    "doctor_off": {"type": "list", "elements": "str", "default": []},
    "free_percent": {"type": "int", "default": 5},
    "clock_seconds": {"type": "float", "default": 1.0},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


def problems(params: dict) -> list[str]:
    """Every mistake of the input, with what is allowed."""
    found = [f"doctor_off: {text}" for text in catalogue.unknown(params["doctor_off"])]
    least = {"budget": 0, "backoff": 1, "evidence_kept": 1, "free_percent": 0, "clock_seconds": 0}
    found += [f"{key} is {params[key]}: must be {low} or more" for key, low in least.items() if params[key] < low]
    if params["free_percent"] > 90:
        found.append(f"free_percent is {params['free_percent']}: must be 90 or less")
    for key in SECRET:
        # Its value may hold a secret, and is not repeated.
        if params[key] and not alerts.usable(params[key]):
            found.append(f"{key} cannot be used: {alerts.NO_ADDRESS}")
    for key in ("mail_to", "mail_from"):
        if any(character in params[key] for character in "\r\n"):
            found.append(f"{key} must be of one line")
    return found


def wanted_files(params: dict, paths: Paths) -> dict[Path, tuple[str, int]]:
    """Text and mode of every file."""
    settings = Settings(**{key: params[key] for key in Settings.__dataclass_fields__})
    thresholds = Thresholds(**{key: params[key] for key in Thresholds.__dataclass_fields__})
    doctor = catalogue.Settings(tuple(params["doctor_off"]), thresholds)
    texts = recovery_units.render()
    return {
        paths.recovery_settings: (files.to_json(settings.to_json()), 0o600),
        paths.doctor_settings: (files.to_json(catalogue.to_json(doctor)), 0o644),
        **{path: (texts[name], 0o644) for name, path in paths.recovery_units.items()},
    }


def shown(path: Path, text: str) -> str:
    """A file's text for the diff."""
    lines = [line for line in text.splitlines(keepends=True) if not any(f'"{key}"' in line for key in SECRET)]
    return f"{path}:\n{''.join(lines)}"


def install(paths: Paths, wanted: dict[Path, tuple[str, int]], *, check: bool) -> dict[str, Any]:
    """Write settings and units, and start what waits for the agent. Raises SystemdError, OSError."""
    before = {path: files.text(path) or "" for path in wanted}
    written = [path for path in wanted if not files.same(path, *wanted[path])]
    unit = systemd.show([RECOVERY_PATH], ["ActiveState", "UnitFileState"])[RECOVERY_PATH]
    running = unit.get("ActiveState") == "active" and unit.get("UnitFileState") == "enabled"
    units_written = bool(set(paths.recovery_units.values()) & set(written))
    if not check:
        for path in written:
            files.write(path, *wanted[path])
        if units_written:
            systemd.systemctl("daemon-reload")
        if not running:
            systemd.systemctl("enable", "--now", RECOVERY_PATH)
        elif units_written:
            systemd.systemctl("restart", RECOVERY_PATH)
    return {
        "changed": bool(written or not running),
        "files": sorted(map(str, written)),
        "diff": {
            "before": "".join(shown(path, before[path]) for path in written),
            "after": "".join(shown(path, wanted[path][0]) for path in written),
        },
    }


def remove(paths: Paths, *, check: bool) -> dict[str, Any]:
    """Stop the recovery, and remove its units and settings. Raises SystemdError, OSError."""
    settings = [path for path in (paths.recovery_settings, paths.doctor_settings) if path.exists()]
    units = list(paths.recovery_units.values())
    before = "".join(shown(path, text) for path in [*settings, *units] if (text := files.text(path)) is not None)
    gone, running = systemd.remove_units(units, [RECOVERY_PATH, RECOVERY_DISPATCH], check=check)
    for path in [] if check else settings:
        path.unlink()
    removed = [*settings, *gone]
    return {
        "changed": bool(removed or running),
        "files": sorted(map(str, removed)),
        "diff": {"before": before, "after": ""},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    paths, params, check = Paths(), module.params, module.check_mode
    found = problems(params)
    if found:
        module.fail_json(msg="Nothing was changed. " + "; ".join(found))
    present = params["state"] == "present"
    try:
        if present and not check and not paths.command.exists():
            module.fail_json(msg=f"Nothing was changed. {paths.command} is not there: site.yml installs it")
        result = install(paths, wanted_files(params, paths), check=check) if present else remove(paths, check=check)
    except (systemd.SystemdError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result, due=result["changed"])


if __name__ == "__main__":
    main()
