# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps requests away from an engine of this node, and lets requests back. Private to the collection.

The agent reports the drain to gateways. The gate refuses gateways that have not read the drain. The kernel's table of
connections shows when the last request has ended (docs/updates.md, "No request is lost").
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from ...core.paths import Paths
from ...engine import gate, listeners
from ...engine.state import gateway_answers
from ...engine.swap_settings import Gateway
from ...gateway.names import asking_name

TIMES = 2
"""How often in a row a gateway must have got an answer. The first answer may get lost."""

FRESH_SECONDS = 2.0
"""Seconds after which an answer may not be the gateway's last one: a gateway checks each second."""

HEARD_SECONDS = 3.0
"""Seconds without a check after which a gateway is deaf: it has stopped, or does not reach this node."""

DEAF_SECONDS = 15.0
"""How long a swap waits for a deaf gateway. With the gate and another server, no request of that gateway is lost."""

POLL_SECONDS = 0.2

GATE_INTERVAL = 1.0
"""Seconds between two checks that the gate is still closed: `nft flush ruleset` opens every gate."""

LOOKS = 2
"""How many looks in a row must find no connection behind a closed gate."""

LOOK_SECONDS = 0.25

ILL_SECONDS = 5.0
"""Seconds for requests in flight at an engine that does not serve. An engine that hangs ends no request."""

SEEN_BEFORE = "a client that has just disconnected"
"""The text in place of addresses, if the last look found no client, and no time is left for another look."""


@dataclass
class Traffic:
    """The requests of one node's engines. Clock and sleep are for tests."""

    paths: Paths
    gateways: Sequence[Gateway]
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    connected: Callable[[int, Collection[int]], list[str]] = listeners.clients
    _gate_seen: dict[int, float] = field(default_factory=dict)

    def deaf(self, name: str) -> list[str]:
        """The gateways that do not check an instance at the agent."""
        now = self.clock()
        asked = {each.gateway: each.asked for each in gateway_answers.read(self.paths, name)}
        return [
            gateway.name
            for gateway in self.gateways
            if now - asked.get(asking_name(gateway.name), -HEARD_SECONDS * 2) > HEARD_SECONDS
        ]

    def unconfirmed(self, name: str, word: str) -> list[str]:
        """The gateways that have not got this answer TIMES in a row, the last time just now."""
        now = self.clock()
        confirmed = {
            each.gateway
            for each in gateway_answers.read(self.paths, name)
            if each.word == word and each.times >= TIMES and now - each.asked <= FRESH_SECONDS
        }
        return [gateway.name for gateway in self.gateways if asking_name(gateway.name) not in confirmed]

    def wait_confirmed(self, name: str, word: str, seconds: float) -> list[str]:
        """Wait up to `seconds` until every gateway has got the answer `word`. Returns the gateways that have not."""
        deadline = self.clock() + seconds
        while (missing := self.unconfirmed(name, word)) and self.clock() < deadline:
            self.sleep(POLL_SECONDS)
        return missing

    def clients(self, port: int) -> list[str]:
        """The addresses of the clients that are connected to an engine: other machines, and a gateway on this one."""
        return self.connected(port, gate.local_clients())

    def close(self, port: int) -> None:
        """Refuse new connections to a port. Raises GateError."""
        gate.close(port)
        self._gate_seen[port] = self.clock()

    def hold(self, port: int) -> None:
        """Close a gate again if another program has opened it. Raises GateError."""
        if port not in self._gate_seen or self.clock() - self._gate_seen[port] >= GATE_INTERVAL:
            self.still_closed(port)

    def still_closed(self, port: int) -> bool:
        """Whether a gate was closed until now. Closes the gate if it was not. Raises GateError."""
        closed = port in gate.closed()
        if not closed:
            gate.close(port)
        self._gate_seen[port] = self.clock()
        return closed

    @contextlib.contextmanager
    def kept_closed(self, ports: Collection[int]) -> Iterator[None]:
        """Keep gates closed during a block that does not check them itself, such as a load or a long request.

        Ignores errors of nft: the engine is judged by its answers alone.
        """
        over = threading.Event()

        def keep() -> None:
            while not over.wait(GATE_INTERVAL):
                self._keep(ports)

        self._keep(ports)
        keeper = threading.Thread(target=keep, daemon=True)
        keeper.start()
        try:
            yield
        finally:
            over.set()
            # A gate that is opened next must stay open.
            keeper.join()

    def _keep(self, ports: Collection[int]) -> None:
        for port in ports:
            with contextlib.suppress(gate.GateError):
                self.still_closed(port)

    def open(self, port: int) -> None:
        """Allow new connections to a port. Raises GateError."""
        gate.open_(port)

    def wait_unused(
        self,
        port: int,
        seconds: float,
        looks: int = LOOKS,
        *,
        gated: bool = True,
        hopeless: Callable[[], bool] = lambda: False,
    ) -> list[str]:
        """Wait up to `seconds` until no client is connected in `looks` looks in a row. Returns the addresses of clients
        that are left.

        `hopeless`: whether requests will not end. The wait ends if they have been hopeless for ILL_SECONDS.
        With `gated`, keeps the gate of the port closed, and raises GateError.
        """
        deadline = self.clock() + seconds
        in_a_row = 0
        over = deadline
        while True:
            if gated:
                self.hold(port)
            found = self.clients(port)
            in_a_row = 0 if found else in_a_row + 1
            if in_a_row >= looks:
                return []
            over = min(over, self.clock() + ILL_SECONDS) if hopeless() else deadline
            if self.clock() >= over:
                return found or [SEEN_BEFORE]
            self.sleep(LOOK_SECONDS)
