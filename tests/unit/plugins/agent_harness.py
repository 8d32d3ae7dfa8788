# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A systemd with the node's agent, the timers of metrics and the unit of gates, for tests of modules and of calls."""

from __future__ import annotations

import time
from collections.abc import Iterable

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import (
    AGENT_UNIT,
    GATES_UNIT,
    METRICS_TIMERS,
)

RUNNING = {"ActiveState": "active", "UnitFileState": "enabled", "NeedDaemonReload": "no"}
ABSENT = {"ActiveState": "inactive", "UnitFileState": "", "NeedDaemonReload": "no"}


class AgentSystemd:
    """A systemd with the agent, the timers of metrics and the unit of gates."""

    def __init__(self) -> None:
        self.unit = {
            "ActiveState": "inactive",
            "UnitFileState": "",
            "NeedDaemonReload": "no",
            "MainPID": "0",
            "StatusText": "",
            "ExecMainStartTimestampMonotonic": "0",
        }
        self.timers = dict.fromkeys(METRICS_TIMERS, ABSENT)
        self.gates = ABSENT
        self.calls: list[str] = []
        self.refusal = ""

    def show(self, units: Iterable[str], properties: Iterable[str]) -> dict[str, dict[str, str]]:
        states = {**self.timers, GATES_UNIT: self.gates}
        return {name: {key: states.get(name, self.unit)[key] for key in properties} for name in units}

    def systemctl(self, *arguments: str) -> str:
        self.calls.append(" ".join(arguments).replace(f" {AGENT_UNIT}", ""))
        timers = [name for name in arguments if name in METRICS_TIMERS]
        if timers:
            if arguments[0] != "restart":
                self.timers.update(dict.fromkeys(timers, RUNNING if arguments[0] == "enable" else ABSENT))
            return ""
        if GATES_UNIT in arguments:
            # The unit of gates runs at boot alone.
            self.gates = {**ABSENT, "UnitFileState": "enabled" if arguments[0] == "enable" else ""}
            if AGENT_UNIT not in arguments:
                return ""
        if arguments[0] == "enable":
            self.unit["UnitFileState"] = "enabled"
        if arguments[0] == "restart":
            if self.refusal:
                self.unit["StatusText"] = self.refusal
                raise systemd.SystemdError("systemctl restart: Job failed")
            self.unit["ActiveState"] = "active"
            self.unit["ExecMainStartTimestampMonotonic"] = str(int(time.monotonic() * 1e6))
        if arguments[0] in ("disable", "stop"):
            self.unit["ActiveState"] = "inactive"
        return ""
