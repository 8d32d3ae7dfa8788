#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_recovery
short_description: Let a node recover its engines by itself
version_added: 0.1.0
description:
  - Installs and starts what waits for the agent to ask for the recovery of an engine (C(inference-recovery.path) and
    the units that it starts), and writes the settings of C(inferctl recover) and C(inferctl doctor); or removes all of
    it.
  - No engine notices. What the recovery remembers of an instance stays.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  armed:
    description: Whether anything is done by itself. C(inferctl recover --disarm) holds a single instance back.
    type: bool
    default: true
  budget:
    description: Faults of an instance within an hour that are answered; the next one opens its breaker.
    type: int
    default: 3
  backoff:
    description: Seconds between the second and the third step within an hour; twice as long before each further one.
    type: float
    default: 30
  restart_docker:
    description:
      - Whether a Docker that does not answer may be restarted. Without live-restore it is not, while others serve.
    type: bool
    default: true
  reset_gpus:
    description: Whether a GPU may be reset that no other instance uses, where the table of XIDs says so.
    type: bool
    default: true
  evidence_kept:
    description: How many times what was seen before a step is kept, for each instance.
    type: int
    default: 5
  webhook:
    description: Gets a POST with JSON when a breaker opens. Its path may hold a secret; a user and password it cannot.
    type: str
    default: ""
  mail_to:
    description: Gets a mail by the node's own sendmail then.
    type: str
    default: ""
  mail_from:
    description: Its sender, root where it is empty.
    type: str
    default: ""
  alertmanager:
    description:
      - The address of an Alertmanager that asks for no password, which gets an alert by its API v2 then. It stands
        until the breaker is closed, 30 days at most.
    type: str
    default: ""
  doctor_off:
    description: Checks of the doctor, or kinds of them, that are off.
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
    description: Whether the node shall recover its engines.
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
- name: Recover engines, and tell where that fails
  baremetal.inference.node_recovery:
    budget: 3
    webhook: https://hooks.example.org/inference
    doctor_off: [rdma]
"""

RETURN = r"""
files:
  description: The files that were written or removed, or would be in check mode.
  returned: success
  type: list
  elements: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import RECOVERY_PATH, Paths
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


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    paths, params = Paths(), module.params
    found = problems(params)
    if found:
        module.fail_json(msg="Nothing was changed. " + "; ".join(found))
    present = params["state"] == "present"
    try:
        if present and not module.check_mode and not paths.command.exists():
            module.fail_json(msg=f"Nothing was changed. {paths.command} is not there: site.yml installs it")
        texts = wanted_files(params, paths)
        before = {path: path.read_text(encoding="utf-8", errors="replace") for path in texts if path.exists()}
        wanted = texts if present else {}
        written = [path for path in wanted if not files.same(path, *wanted[path])]
        removed = [path for path in before if path not in wanted]
        unit = systemd.show([RECOVERY_PATH], ["ActiveState", "UnitFileState"])[RECOVERY_PATH]
        running = unit.get("ActiveState") == "active" and unit.get("UnitFileState") == "enabled"
        units = set(paths.recovery_units.values())
        if not module.check_mode:
            if removed and paths.recovery_units[RECOVERY_PATH] in removed:
                systemd.systemctl("disable", "--now", RECOVERY_PATH)
            for path in written:
                files.write(path, *wanted[path])
            for path in removed:
                path.unlink()
            if units & {*written, *removed}:
                systemd.systemctl("daemon-reload")
            if present and not running:
                systemd.systemctl("enable", "--now", RECOVERY_PATH)
            if present and running and units & set(written):
                systemd.systemctl("restart", RECOVERY_PATH)
    except (systemd.SystemdError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=bool(written or removed or (present and not running)),
        files=sorted(str(path) for path in [*written, *removed]),
        diff={
            "before": "".join(shown(path, before.get(path, "")) for path in [*written, *removed]),
            "after": "".join(shown(path, wanted[path][0]) for path in written),
        },
    )


if __name__ == "__main__":
    main()
