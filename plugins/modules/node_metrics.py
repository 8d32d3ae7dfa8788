#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_metrics
short_description: Have a node gather metrics for Prometheus
version_added: 0.1.0
description:
  - Installs, enables and starts the timers that write metrics of GPUs, RDMA, releases (every minute) and of the doctor
    (every 5 minutes) to C(/var/lib/prometheus/node-exporter), where node_exporter reads them; or removes them, and
    what they wrote.
  - Without node_exporter they do nothing. No engine notices.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  state:
    description: Whether metrics shall be gathered.
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
"""

EXAMPLES = r"""
- name: Gather metrics
  baremetal.inference.node_metrics:

- name: Gather none
  baremetal.inference.node_metrics:
    state: absent
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
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import METRICS_TIMERS, Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.units import metrics_units
from ansible_collections.baremetal.inference.plugins.module_utils.node.collectors.catalogue import COLLECTORS


class Timers:
    """Acts on the units; in check mode it only says what it would do."""

    def __init__(self, paths: Paths, present: bool) -> None:
        units = {paths.metrics_units[name]: text for name, text in metrics_units.render().items()}
        self.wanted = units if present else {}
        self.written = [path for path, text in self.wanted.items() if not files.same(path, text)]
        left = [] if present else [*units, *(paths.metrics(name) for name in COLLECTORS)]
        self.removed = [path for path in left if path.exists()]
        states = systemd.show(METRICS_TIMERS, ["ActiveState", "UnitFileState"])
        running = [name for name in METRICS_TIMERS if states[name].get("ActiveState") == "active"]
        enabled = [name for name in running if states[name].get("UnitFileState") == "enabled"]
        self.to_start = [name for name in METRICS_TIMERS if name not in enabled] if present else []
        self.to_stop = [] if present else running

    @property
    def files(self) -> list[Path]:
        return sorted([*self.written, *self.removed])

    @property
    def changed(self) -> bool:
        return bool(self.files or self.to_start or self.to_stop)

    def diff(self) -> dict[str, str]:
        before = {path: path.read_text(encoding="utf-8") if path.exists() else "" for path in self.files}
        return {
            "before": "".join(f"{path}:\n{text}" for path, text in before.items()),
            "after": "".join(f"{path}:\n{self.wanted[path]}" for path in self.written),
        }

    def apply(self) -> None:
        """Raises SystemdError, OSError."""
        if self.to_stop or self.removed:
            going = {*self.to_stop, *(path.name for path in self.removed if path.name in METRICS_TIMERS)}
            # Of timers that went before, metrics may be left.
            if going:
                systemd.systemctl("disable", "--now", *sorted(going))
        for path in self.written:
            files.write(path, self.wanted[path])
        for path in self.removed:
            path.unlink()
        if self.files:
            systemd.systemctl("daemon-reload")
        if self.to_start:
            systemd.systemctl("enable", "--now", *self.to_start)
        changed = [path.name for path in self.written if path.name in METRICS_TIMERS]
        again = [name for name in changed if name not in self.to_start]
        if again:
            systemd.systemctl("restart", *again)


def main() -> None:
    module = AnsibleModule(
        argument_spec={"state": {"type": "str", "choices": ["present", "absent"], "default": "present"}},
        supports_check_mode=True,
    )
    paths = Paths()
    present = module.params["state"] == "present"
    if present and not module.check_mode and not paths.command.exists():
        module.fail_json(msg=f"Nothing was changed. {paths.command} is not there: site.yml installs it")
    try:
        timers = Timers(paths, present)
        result = {"changed": timers.changed, "files": [str(path) for path in timers.files], "diff": timers.diff()}
        if timers.changed and not module.check_mode:
            timers.apply()
    except (systemd.SystemdError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
