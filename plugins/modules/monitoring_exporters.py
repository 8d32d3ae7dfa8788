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
  - Gives Debian's node_exporter the collectors that matter on such machines, and the textfile collector; starts and
    enables it, and restarts it when its options change.
  - Runs dcgm-exporter in a container, where O(dcgm_image) names its image; without one, removes its unit.
  - When node_exporter does not come up, the module puts its old options back.
  - With O(state=absent), stops dcgm-exporter and removes its unit, if this collection wrote the unit. Debian's
    node_exporter stays as it is.
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
    description: The packages that another task installs. Check mode tells which of them are missing (RV(missing)).
    type: list
    elements: str
    default: []
  address:
    description: The address to listen on; all addresses of the machine, if empty.
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
    description: How containers ask for GPUs.
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
    - Whether anything is, or was, to do. True also where O(packages) are missing, and where the task itself must not
      report a change.
  returned: success
  type: bool
missing:
  description: Those of O(packages) that are not installed; empty outside of check mode.
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
  description: Units that this collection did not write, and that were not touched.
  returned: with O(state=absent)
  type: list
  elements: str
"""

import http.client
import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import defaults, files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_packages, tested
from ansible_collections.baremetal.inference.plugins.module_utils.debian.service_files import Part, remove
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.exporters import (
    DCGM_UNIT,
    NODE_UNIT,
    dcgm_unit,
    node_drop_in,
    problems,
)
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.places import HEADER, UNITS

PROPERTIES = ("LoadState", "ActiveState", "UnitFileState", "NeedDaemonReload")

START_SECONDS = 15.0
"""For an exporter to answer."""

STARTED = re.compile(rb"^process_start_time_seconds ([0-9.]+(?:e[+-]?[0-9]+)?)$", re.MULTILINE)

CLOCK_SECONDS = 2.0
"""By how much a process may seem to have begun too early: the kernel knows the time of its boot in whole seconds."""

DCGM_FIELD = re.compile(rb"^DCGM_FI_\w+\{", re.MULTILINE)


class ExporterError(Exception):
    """A mistake that the operator has to correct; the text is for them."""


def began(since: float, metrics: bytes) -> bool:
    """Whether these are the metrics of a process that began since a time."""
    found = STARTED.search(metrics)
    return found is not None and float(found[1]) >= since - CLOCK_SECONDS


def of_dcgm(metrics: bytes) -> bool:
    """Whether these are the metrics of dcgm-exporter, which reports GPUs alone, and not its own process."""
    return DCGM_FIELD.search(metrics) is not None


def silence(address: str, port: int, ours: Callable[[bytes], bool], seconds: float = START_SECONDS) -> str:
    """Wait until an exporter reports metrics that are ours; returns why not, empty when it does.

    Another exporter on that port answers, too.
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


class Exporter:
    """A unit, and our file of it."""

    def __init__(self, unit: str, path: Path, text: str) -> None:
        self.unit, self.path, self.text = unit, path, text
        self.before = files.text(path) or ""
        self.properties = systemd.show([unit], PROPERTIES)[unit]
        running = self.properties["ActiveState"] in systemd.RUNNING
        self.writes = not files.same(path, text) if text else path.exists()
        self.enables = bool(text) and self.properties["UnitFileState"] != "enabled"
        self.restarts = bool(text) and (self.writes or not running)
        self.stops = not text and (running or path.exists())

    @property
    def changes(self) -> bool:
        return self.writes or self.enables or self.restarts or self.stops

    @property
    def diff(self) -> dict[str, str]:
        name = str(self.path)
        return {"before_header": name, "after_header": name, "before": self.before, "after": self.text}

    def apply(self) -> None:
        """Raises SystemdError."""
        if self.stops:
            systemd.systemctl("disable", "--now", self.unit)
        self.write(self.text)
        if self.enables:
            systemd.systemctl("enable", self.unit)
        if self.restarts:
            systemd.systemctl("restart", self.unit)

    def write(self, text: str) -> None:
        files.write(self.path, text or None)
        if self.writes or self.properties["NeedDaemonReload"] == "yes":
            systemd.systemctl("daemon-reload")

    def back(self) -> None:
        """Run the unit by its old options. Raises SystemdError."""
        self.write(self.before)
        systemd.systemctl("restart", self.unit)


def start(exporter: Exporter, address: str, port: int) -> None:
    """Apply node_exporter's options, and wait until it answers; else put the old ones back. Raises ExporterError."""
    try:
        since = time.time()
        exporter.apply()
        said = silence(address, port, partial(began, since)) if exporter.restarts else ""
        if not said:
            return
    except systemd.SystemdError as error:
        said = str(error)
    exporter.back()
    raise ExporterError(
        f"{exporter.unit}: {said}: journalctl -u {exporter.unit} shows why. Its old options are back in place."
    )


def refuse(params: dict[str, Any]) -> None:
    """Raises ExporterError with every mistake of the input, OSError."""
    untested = tested.refusal("monitoring", "node_exporter")
    found = problems(params["port"], params["dcgm_port"], params["dcgm_image"])
    if untested or found:
        words = ["The exporters cannot be set up like this. Nothing was changed.", untested, *map(str, found)]
        raise ExporterError("\n- ".join(filter(None, words)))


def dcgm_exporter() -> Sequence[Part]:
    """Its unit is all that there is of it: `maintenance` removes its image with the others that nothing uses."""
    return [Part((DCGM_UNIT,), configs=[UNITS / DCGM_UNIT], header=HEADER, roots=(UNITS,))]


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
    address, port, image = params["address"], params["port"], params["dcgm_image"]
    dcgm = dcgm_unit(image, address, params["dcgm_port"], params["gpu_request"]) if image else ""
    try:
        refuse(params)
        missing = apt_packages.absent_of(module.run_command, params["packages"]) if module.check_mode else []
        node = Exporter(NODE_UNIT, UNITS / f"{NODE_UNIT}.d/inference.conf", node_drop_in(address, port))
        both = [node, Exporter(DCGM_UNIT, UNITS / DCGM_UNIT, dcgm)]
        if not module.check_mode:
            if node.properties["LoadState"] != "loaded":
                raise ExporterError(
                    f"{NODE_UNIT} is {node.properties['LoadState']}: install prometheus-node-exporter, or unmask its"
                    " unit. Nothing was changed."
                )
            start(node, address, port)
            if both[1].changes:
                both[1].apply()
                # Its image may have to be pulled first.
                if both[1].restarts and (said := silence(address, params["dcgm_port"], of_dcgm)):
                    module.warn(f"{DCGM_UNIT}: {said}: journalctl -u {DCGM_UNIT} shows whether it will")
    except (ExporterError, systemd.SystemdError, OSError) as error:
        module.fail_json(msg=str(error))
    changed = any(exporter.changes for exporter in both)
    module.exit_json(
        changed=changed,
        due=changed or bool(missing),
        missing=missing,
        restarted=[exporter.unit for exporter in both if exporter.restarts],
        diff=[exporter.diff for exporter in both if exporter.writes],
    )


if __name__ == "__main__":
    main()
