#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: monitoring_exporters
short_description: Configure the exporters of a machine, or remove dcgm-exporter
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Sets the collectors of Debian's node_exporter, with the textfile collector. Starts and enables node_exporter, and
    restarts it if its options change. If node_exporter does not start, the module puts its old options back.
  - Runs dcgm-exporter in a container if O(dcgm_image) is set. Otherwise, removes its unit.
  - With O(state=absent), stops dcgm-exporter and removes its unit, if this collection wrote the unit. Debian's
    node_exporter stays unchanged.
  - Internal to this collection; its options may change without notice.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  state:
    description: V(present) configures both exporters, V(absent) removes dcgm-exporter.
    type: str
    choices: [present, absent]
    default: present
  packages:
    description: The packages that another task installs. Check mode returns missing packages as RV(missing).
    type: list
    elements: str
    default: []
  address:
    description: The address to listen on. If empty, all addresses of the machine.
    type: str
    default: ""
  port:
    description: The port of node_exporter.
    type: int
    default: 9100
  dcgm_image:
    description: The image of dcgm-exporter by its digest; empty for none.
    type: str
    default: ""
  dcgm_port:
    description: The port of dcgm-exporter.
    type: int
    default: 9400
  gpu_request:
    description: How containers get GPUs, V(cdi) from Docker itself or V(runtime) from NVIDIA's runtime.
    type: str
    choices: [cdi, runtime]
    default: cdi
"""

EXAMPLES = r"""
- name: Configure the exporters
  baremetal.inference.monitoring_exporters:
    address: 192.0.2.11

- name: Remove dcgm-exporter
  baremetal.inference.monitoring_exporters:
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
  description: The packages of O(packages) that are not installed; empty outside of check mode.
  returned: with O(state=present)
  type: list
  elements: str
restarted:
  description: The units that were, or would be, started or restarted.
  returned: with O(state=present)
  type: list
  elements: str
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
foreign:
  description: Units that this collection did not write. They stay unchanged.
  returned: with O(state=absent)
  type: list
  elements: str
"""

import http.client
import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import defaults, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_packages, tested
from ansible_collections.baremetal.inference.plugins.module_utils.debian.service_files import (
    Part,
    ServiceError,
    ServiceFiles,
    remove,
)
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.exporters import (
    DCGM_UNIT,
    NODE_UNIT,
    dcgm_unit,
    node_drop_in,
    problems,
)
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.places import HEADER, UNITS

START_SECONDS = 15.0
"""How long to wait until an exporter answers, in seconds."""

STARTED = re.compile(rb"^process_start_time_seconds ([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)$", re.MULTILINE)

CLOCK_SECONDS = 2.0
"""Tolerance of a process's start time, in seconds: the kernel reports the time of its boot in whole seconds."""

DCGM_FIELD = re.compile(rb"^DCGM_FI_\w+\{", re.MULTILINE)


def is_young(since: float, metrics: bytes) -> bool:
    """Whether these are the metrics of a process that started after a time (seconds since the epoch)."""
    found = STARTED.search(metrics)
    return found is not None and float(found[1]) >= since - CLOCK_SECONDS


def of_dcgm(metrics: bytes) -> bool:
    """Whether these are the metrics of dcgm-exporter, which has no metrics of its own process."""
    return DCGM_FIELD.search(metrics) is not None


def no_answer(address: str, port: int, ours: Callable[[bytes], bool], seconds: float = START_SECONDS) -> str:
    """Wait until the expected exporter answers. Returns why it does not, or an empty text.

    `ours` recognises the metrics of the expected exporter, because another exporter may answer on the port.
    """
    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)
    why = "it does not answer"
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        connection = http.client.HTTPConnection(host, port, timeout=seconds)
        try:
            connection.request("GET", "/metrics")
            answer = connection.getresponse()
            if answer.status == http.client.OK and ours(answer.read()):
                return ""
            why = "another program answers"
        except (OSError, http.client.HTTPException):
            why = "it does not answer"
        finally:
            connection.close()
        time.sleep(0.3)
    return f"{why} on port {port} within {seconds:.0f} s"


class Exporter(ServiceFiles):
    """An exporter with one file of this module. A subclass sets its path and text."""

    path: Path
    text: str

    def __init__(self, module: AnsibleModule) -> None:
        super().__init__(module)
        self.drop_ins = frozenset({self.path})

    def inspect(self) -> None:
        (self.unit,) = self.units
        self.properties = systemd.show([self.unit], ["LoadState", "NeedDaemonReload"])[self.unit]
        self.compare({self.path: self.text})
        self.read_units()

    def decide(self) -> dict[str, Any]:
        # If a run was cut off, the file may be newer than the process.
        stale = self.altered or self.properties["NeedDaemonReload"] == "yes"
        self.actions = {self.unit: "start" if not self.active[self.unit] else "restart" if stale else "none"}
        restarted = [] if self.actions[self.unit] == "none" else [self.unit]
        return {"changed": self.changes, "restarted": restarted, "diff": self.diff()}

    def put(self, texts: Mapping[Path, str | None]) -> None:
        super().put(texts)
        if not self.differing and self.properties["NeedDaemonReload"] == "yes":
            self.do("daemon-reload")


class NodeExporter(Exporter):
    """Debian's node_exporter with the options of this module."""

    units = (NODE_UNIT,)

    def __init__(self, module: AnsibleModule) -> None:
        self.path = UNITS / f"{NODE_UNIT}.d/inference.conf"
        self.text = node_drop_in(module.params["address"], module.params["port"])
        super().__init__(module)

    def inspect(self) -> None:
        super().inspect()
        state = self.properties["LoadState"]
        if state != "loaded" and not self.module.check_mode:
            raise ServiceError(
                f"{NODE_UNIT} is {state}: install prometheus-node-exporter, or unmask its unit. Nothing was changed."
            )

    def why_not_up(self, unit: str, action: str, began: float) -> str:
        return no_answer(self.params["address"], self.params["port"], partial(is_young, began))


class DcgmExporter(Exporter):
    """dcgm-exporter in a container, with a unit of this module."""

    units = (DCGM_UNIT,)

    def __init__(self, module: AnsibleModule) -> None:
        params = module.params
        self.path = UNITS / DCGM_UNIT
        self.text = dcgm_unit(params["dcgm_image"], params["address"], params["dcgm_port"], params["gpu_request"])
        super().__init__(module)

    def why_not_up(self, unit: str, action: str, began: float) -> str:
        # No failure: Docker may have to pull the image first.
        if why := no_answer(self.params["address"], self.params["dcgm_port"], of_dcgm):
            self.module.warn(f"{DCGM_UNIT}: {why}. See journalctl -u {DCGM_UNIT}: Docker may still pull the image.")
        return ""


def refuse(params: dict[str, Any]) -> None:
    """Raise ServiceError with all mistakes of the input. Raises OSError."""
    untested = tested.refusal("monitoring", "node_exporter")
    found = problems(params["port"], params["dcgm_port"], params["dcgm_image"])
    if untested or found:
        words = ["The input of the exporters has mistakes. Nothing was changed.", untested, *map(str, found)]
        raise ServiceError("\n- ".join(filter(None, words)))


def dcgm_exporter() -> Sequence[Part]:
    """The parts of dcgm-exporter to remove: only its unit. `maintenance` removes unused images."""
    return [Part((DCGM_UNIT,), configs=[UNITS / DCGM_UNIT], header=HEADER, roots=(UNITS,))]


def dcgm(module: AnsibleModule) -> dict[str, Any]:
    """Configure dcgm-exporter, or remove it without an image. Raises ServiceError, SystemdError, OSError."""
    if module.params["dcgm_image"]:
        return DcgmExporter(module).run()
    removed = remove(module, dcgm_exporter)
    diff = [removed["diff"]] if removed["changed"] else []
    return {"changed": removed["changed"], "restarted": [], "diff": diff}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "packages": {"type": "list", "elements": "str", "default": []},
            "address": {"type": "str", "default": ""},
            "port": {"type": "int", "default": defaults.NODE_EXPORTER_PORT},
            "dcgm_image": {"type": "str", "default": ""},
            "dcgm_port": {"type": "int", "default": defaults.DCGM_EXPORTER_PORT},
            "gpu_request": {"type": "str", "choices": ["cdi", "runtime"], "default": "cdi"},
        },
        supports_check_mode=True,
    )
    params = module.params
    if params["state"] == "absent":
        result = remove(module, dcgm_exporter)
        module.exit_json(**result, due=result["changed"])
    try:
        refuse(params)
        missing = apt_packages.absent_of(module.run_command, params["packages"]) if module.check_mode else []
        both = [NodeExporter(module).run(), dcgm(module)]
    except (ServiceError, systemd.SystemdError, OSError) as error:
        module.fail_json(msg=str(error))
    changed = any(result["changed"] for result in both)
    module.exit_json(
        changed=changed,
        due=changed or bool(missing),
        missing=missing,
        restarted=[unit for result in both for unit in result["restarted"]],
        diff=[entry for result in both for entry in result["diff"]],
    )


if __name__ == "__main__":
    main()
