#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: monitoring_removal
short_description: Have a machine watch the fleet no more
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Stops Prometheus and Alertmanager, keeps them from starting at the next boot, and removes what
    M(baremetal.inference.monitoring_server) has written. In check mode, it tells whether there is any.
  - Samples, silences and packages stay. So does everything where a configuration is somebody else's.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options: {}
"""

EXAMPLES = r"""
- name: Have the machine watch the fleet no more
  baremetal.inference.monitoring_removal:
"""

RETURN = r"""
stopped:
  description: The services that were, or would be, stopped and disabled.
  returned: success
  type: list
  elements: str
removed:
  description: The files that went, or would in check mode.
  returned: success
  type: list
  elements: str
kept:
  description: The directories with what both have gathered, as far as they are there.
  returned: success
  type: list
  elements: str
foreign:
  description: Configurations that are not ours, for which everything was left as it is.
  returned: success
  type: list
  elements: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

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
from ansible_collections.baremetal.inference.plugins.module_utils.node import files, removal, systemd

SERVICES = (PROMETHEUS, ALERTMANAGER)
"""In the order in which they stop: Prometheus would miss an Alertmanager that is gone."""


def ours() -> tuple[list[Path], list[Path]]:
    """Our files in the order in which they go, and the configurations for which nothing goes.

    The configurations are the last: by them, the next run knows what was cut off. Raises OSError and ValueError.
    """
    texts = {DIRECTORY / name: files.text(DIRECTORY / name) for name in OWNED}
    configs = [path for path, text in texts.items() if text is not None]
    foreign = [path for path in configs if not (texts[path] or "").startswith(HEADER)]
    if foreign or not configs:
        return [], foreign
    written = (files.read_json(STATE) or {}).get("files", ())
    drop_ins = [UNITS / f"{unit}.d" / DROP_IN for unit in SERVICES]
    found = [*drop_ins, *(DIRECTORY / name for name in written if name not in OWNED), STATE]
    return [*(path for path in found if path.exists()), *configs], []


def at_work() -> dict[str, bool]:
    """The services that run, or would from the next boot on, and whether each is installed. Raises SystemdError."""
    shown = systemd.show(SERVICES, ["LoadState", "ActiveState", "UnitFileState"])
    return {
        unit: known["LoadState"] != "not-found"
        for unit, known in shown.items()
        if known["ActiveState"] != "inactive" or known["UnitFileState"] == "enabled"
    }


def remove(found: list[Path]) -> None:
    """Remove files, and the directories that hold nothing then. Raises OSError and SystemdError."""
    for path in found:
        path.unlink()
        if path.parent not in (DIRECTORY, STATE.parent) and not any(path.parent.iterdir()):
            path.parent.rmdir()
    systemd.systemctl("daemon-reload")


def main() -> None:
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    try:
        found, foreign = ours()
        services = at_work() if found else {}
        if found and not module.check_mode:
            for unit, installed in services.items():
                removal.stop(unit, installed=installed)
            remove(found)
    except (systemd.SystemdError, OSError, ValueError) as error:
        module.fail_json(msg=f"{error}. Run it again: it goes on from where it stopped.")
    removed = [str(path) for path in found]
    module.exit_json(
        changed=bool(removed),
        stopped=list(services),
        removed=removed,
        kept=[str(path) for path in (SAMPLES, SILENCES) if path.is_dir()],
        foreign=[str(path) for path in foreign],
        diff={"before": "".join(f"{path}\n" for path in removed), "after": ""},
    )


if __name__ == "__main__":
    main()
