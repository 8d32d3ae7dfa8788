# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Observes the servers of one instance until the gateway has drained it, or serves it. Private to the collection."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..core import files
from ..engine.inventory import bridge_name
from . import runtime, servers
from .names import CONTROL_SOCKET, SET

DRAINED, SERVING = "drained", "serving"

POLL_SECONDS = 0.3
"""At first. A wait that takes long polls less often, up to SELDOM_SECONDS: a whole fleet may wait for one gateway."""

SELDOM_SECONDS = 1.5

OBSERVATIONS = 2
"""In a row that find it drained: a request on its way during the first is there in the second."""

BETWEEN_OBSERVATIONS = 1.2
"""Seconds. Longer than the interval in which the gateway asks the node's agent: a worker that began just before the
first observation has asked the agent by the second."""

CONFIG = Path("/etc/haproxy/haproxy.cfg")

ENGINE_KEYS = Path("/etc/haproxy/engines.map")
"""The key behind each backend."""


def sends_key(name: str) -> bool:
    """Whether this gateway sends the engines of a replica set a key. Raises OSError."""
    return any(line.startswith(f"{SET}{name} ") for line in (files.text(ENGINE_KEYS) or "").splitlines())


def hold_seconds() -> int:
    """How long this gateway holds requests while no engine serves. Raises OSError."""
    found = re.search(r"lua\.hold (\d+)", CONFIG.read_text(encoding="utf-8"))
    return int(found[1]) if found else 0


@dataclass(frozen=True)
class Observation:
    """What is missing, the instance's servers, the hosts of its set that are up, and the set's requests."""

    missing: str = ""
    now: list[servers.Server] = field(default_factory=list)
    up: list[str] = field(default_factory=list)
    set_requests: int = 0
    bridge: bool = False
    silent: str = ""
    """Why HAProxy does not answer; empty where it does."""


def observe(name: str, host: str, wanted: str) -> Observation:
    """The state of an instance at this moment. Raises OSError."""
    control, master = (runtime.ask(Path(path)) for path in (CONTROL_SOCKET, servers.MASTER_SOCKET))
    stat = control("show stat")
    now = servers.servers(stat, host, name)
    missing = ""
    if wanted == DRAINED:
        workers = servers.processes(master("show proc"))
        before = [server for pid in workers.old for server in servers.servers(master(f"@!{pid} show stat"), host, name)]
        missing = servers.not_drained(now, workers, before)
    elif wanted == SERVING:
        missing = servers.not_serving(now)
    return Observation(
        missing,
        now,
        servers.up_hosts(stat, name),
        servers.set_requests(stat, name),
        bool(servers.servers(stat, host, bridge_name(name))),
    )


def pause(waited: float) -> float:
    """Seconds until the next observation, after so many seconds of waiting."""
    return min(SELDOM_SECONDS, max(POLL_SECONDS, waited / 10))


def wait(name: str, host: str, wanted: str, seconds: float) -> tuple[bool, Observation]:
    """Observe until an instance is drained or serving, or once; returns whether that is reached."""
    began = time.monotonic()
    needed = OBSERVATIONS if wanted == DRAINED else 1
    in_a_row, seen = 0, Observation()
    while in_a_row < needed:
        try:
            seen = observe(name, host, wanted)
        except OSError as error:
            # The master takes no command for a moment while it reloads.
            silent = f"HAProxy does not answer: {error}"
            seen = replace(seen, missing=silent, silent=silent)
        in_a_row = 0 if seen.missing else in_a_row + 1
        if in_a_row < needed:
            if time.monotonic() >= began + seconds:
                break
            time.sleep(BETWEEN_OBSERVATIONS if in_a_row else pause(time.monotonic() - began))
    return in_a_row == needed, seen
