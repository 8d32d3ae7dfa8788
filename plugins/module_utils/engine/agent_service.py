# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The services of the node's agent and of the timers that gather metrics. Private to the collection.

Engine units that version 0.1.0 wrote are renewed before systemd reloads. Otherwise, the reload would end a start that
is under way in such a unit (renewal.py).
"""

from __future__ import annotations

import ipaddress
import socket
import time
from pathlib import Path

from ..core import files, systemd
from ..core.paths import AGENT_UNIT, GATES_UNIT, METRICS_TIMERS, Paths
from . import listeners, renewal
from .swap_settings import MODE
from .units import agent_unit, metrics_units, swap_units

PROPERTIES = (
    "ActiveState",
    "UnitFileState",
    "NeedDaemonReload",
    "MainPID",
    "StatusText",
    "ExecMainStartTimestampMonotonic",
)


def problem_with(address: str, port: int, agent: int) -> str:
    """Why the agent cannot listen on this address and port; empty where the agent can. `agent` is the pid of an agent
    that may listen already.

    Raises OSError where /proc cannot be read.
    """
    if not 0 < port < 65536:
        return f"port {port} must be between 1 and 65535"
    try:
        family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((address, 0))
    except ValueError:
        return f"{address!r} must be an IP address of the node"
    except OSError as error:
        return f"{address} is no address of this node ({error.strerror})"
    owners = listeners.ownership(port, address, None)
    others = [str(other) for other in owners.strangers if other.pid != agent]
    if owners.unknown:
        others.append("a process that cannot be found in /proc")
    who = ", ".join(others)
    return f"port {port} is taken by {who}: stop that process, or give the agent another port" if others else ""


def outdated(paths: Paths, started: int) -> bool:
    """Whether the agent's files are younger than the agent's process.

    `started` is the start of the process in microseconds of the monotonic clock; files have times of the wall clock. A
    file from the future does not count: the clock was set back.
    """
    now = time.time()
    began = now - time.monotonic() + started / 1e6
    parts = [*paths.library.rglob("*.py"), paths.command, paths.agent_unit]
    return any(began < path.stat().st_mtime <= now for path in parts if path.is_file())


class Units:
    """The units of agent, metrics and swaps, the engine units that version 0.1.0 wrote (renewal.py), and how the node
    differs from them. Raises SystemdError, OSError."""

    def __init__(
        self, paths: Paths, address: str, port: int, *, tool_changed: bool = False, swap_settings: str | None = None
    ) -> None:
        """`swap_settings` is the text of paths.swap_settings; None leaves the file as it is."""
        self.paths = paths
        self.swap_settings = swap_settings
        self._had_settings = paths.swap_settings.exists()
        self.settings_due = swap_settings is not None and not files.same(paths.swap_settings, swap_settings, MODE)
        self.wanted = {
            paths.agent_unit: agent_unit.render(address, port),
            **{paths.metrics_units[name]: text for name, text in metrics_units.render().items()},
            **{paths.swap_units[name]: text for name, text in swap_units.render().items()},
            **renewal.wanted(paths),
        }
        self.before = {path: files.text(path) for path in self.wanted}
        self.written = [path for path, text in self.wanted.items() if not files.same(path, text)]
        agent = systemd.show([AGENT_UNIT], PROPERTIES)[AGENT_UNIT]
        timers = systemd.show(METRICS_TIMERS, ["ActiveState", "UnitFileState"])
        self.agent_pid = int(agent.get("MainPID") or 0)
        self.reload = bool(self.written) or agent["NeedDaemonReload"] == "yes"
        gates = systemd.show([GATES_UNIT], ["UnitFileState"])[GATES_UNIT]
        self.enable = [
            name
            for name, state in ((AGENT_UNIT, agent["UnitFileState"]), (GATES_UNIT, gates["UnitFileState"]))
            if state != "enabled"
        ]
        self.restart = (
            agent["ActiveState"] != "active"
            or paths.agent_unit in self.written
            or tool_changed
            or outdated(paths, int(agent.get("ExecMainStartTimestampMonotonic") or 0))
        )
        self.timers_to_start = [name for name in METRICS_TIMERS if list(timers[name].values()) != ["active", "enabled"]]
        changed = {path.name for path in self.written} - set(self.timers_to_start)
        self.timers_to_restart = [name for name in METRICS_TIMERS if name in changed]

    @property
    def changed(self) -> bool:
        return self.reload or self.settings_due or self.restart or bool(self.enable or self.timers_to_start)

    def install(self) -> None:
        """Write the units and the settings of swaps. Enable, start and restart the units that need it."""
        # The sandbox refuses a directory that does not exist.
        self.paths.state.mkdir(parents=True, exist_ok=True)
        for path in self.written:
            files.write(path, self.wanted[path])
        if self.settings_due:
            files.write(self.paths.swap_settings, self.swap_settings, MODE)
        if self.reload:
            systemd.systemctl("daemon-reload")
        if self.enable:
            systemd.systemctl("enable", *self.enable)
        if self.restart:
            systemd.systemctl("restart", AGENT_UNIT)
        if self.timers_to_start:
            systemd.systemctl("enable", "--now", *self.timers_to_start)
        if self.timers_to_restart:
            systemd.systemctl("restart", *self.timers_to_restart)

    def diff(self) -> dict[str, str]:
        """The texts of the units that change. The text of the swap settings is left out, because it has prompts."""
        settings = f"{self.paths.swap_settings}:\n" if self.settings_due else ""
        before = f"{settings}(not shown)\n" if settings and self._had_settings else settings
        after = f"{settings}(not shown, changed)\n" if settings else ""
        return {
            "before": "".join(f"{path}:\n{self.before[path] or ''}" for path in self.written) + before,
            "after": "".join(f"{path}:\n{self.wanted[path]}" for path in self.written) + after,
        }


def last_status() -> str:
    """The agent's last status, for a start that failed."""
    return systemd.show([AGENT_UNIT], ["StatusText"])[AGENT_UNIT]["StatusText"]


def remove(paths: Paths, *, check: bool) -> tuple[bool, list[Path], str]:
    """Stop agent and timers. Remove their units, the units of swaps, and the metrics. Returns whether anything changed,
    the files, and the text of the unit files. Raises SystemdError, OSError."""
    units = [paths.agent_unit, *paths.metrics_units.values(), *paths.swap_units.values()]
    before = "".join(f"{path}:\n{text}" for path in units if (text := files.text(path)) is not None)
    gone, running = systemd.remove_units(units, [*METRICS_TIMERS, AGENT_UNIT, GATES_UNIT], check=check)
    collected = [paths.metrics(name) for names in metrics_units.GROUPS.values() for name in names]
    metrics = [path for path in (paths.probe_metrics, *collected) if path.exists()]
    for path in [] if check else metrics:
        path.unlink()
    return bool(gone or running or metrics), [*gone, *metrics], before
