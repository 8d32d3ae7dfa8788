# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the state of one instance's servers at a gateway. Private to the collection."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from pathlib import Path

from ..engine.inventory import bridge_name
from . import runtime, servers
from .names import CONTROL_SOCKET

POLL_SECONDS = 0.3

CONFIG = Path("/etc/haproxy/haproxy.cfg")


def hold_seconds() -> int:
    """How long this gateway holds requests while no engine serves, in seconds. Raises OSError."""
    found = re.search(r"lua\.hold (\d+)", CONFIG.read_text(encoding="utf-8", errors="replace"))
    return int(found[1]) if found else 0


@dataclass(frozen=True)
class Observation:
    """What HAProxy shows: whether it has servers for the instance and its bridge, and which servers of the set are up
    (servers.up_hosts)."""

    known: bool = False
    bridge_known: bool = False
    up: list[str] = field(default_factory=list)
    silent: str = ""
    """Why HAProxy does not answer; empty if it answers."""


def observe(name: str, host: str, seconds: float) -> Observation:
    """The current state of an instance. Waits up to `seconds` for HAProxy, which may be starting."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            stat = runtime.ask(Path(CONTROL_SOCKET))("show stat")
            return Observation(
                known=servers.has_server(stat, host, name),
                bridge_known=servers.has_server(stat, host, bridge_name(name)),
                up=servers.up_hosts(stat, name),
            )
        except OSError as error:
            silent = f"HAProxy does not answer: {error}"
        if time.monotonic() >= deadline:
            return Observation(silent=silent)
        time.sleep(POLL_SECONDS)
