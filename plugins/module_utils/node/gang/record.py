# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes a supervisor's state of its gang to the state file and to the journal. Private to the collection."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from ...core import files
from ...core.paths import Paths
from ...engine.gang.members import Gang
from ...engine.state import gangs
from ...engine.state.drains import format_time
from ...engine.state.gangs import GangState, MemberState
from ..writer import Writer
from .orders import same

REPEAT = 60.0
"""Seconds after which a remark is logged again, if it still holds."""

FLUSH = 2.0
"""Seconds that the last write may take."""


class Record:
    """The state file of a gang on this node, and remarks for the journal."""

    def __init__(self, paths: Paths, gang: Gang, say: Callable[[str], None]) -> None:
        self._path = paths.gang(gang.name)
        self._gang = gang
        self._say = say
        self._writer = Writer(say)
        self._written: GangState | None = None
        self._said: dict[str, tuple[str, float]] = {}
        known = gangs.read(paths, gang.name)
        self.epoch = known.epoch if known else 0
        """The last epoch of the process before this one."""

    def write(self, epoch: int, state: str, detail: str, planned: bool, members: tuple[MemberState, ...]) -> None:
        """Write the state file if anything has changed."""
        last = self._written
        since = last.since if last and last.state == state else format_time(datetime.now(UTC))
        now = GangState(self._gang.name, self._gang.rank, epoch, state, since, detail, planned, members)
        if now == last:
            return
        self._written = now
        self._writer.put(self._path, files.to_json(now.to_json()))
        if last is None or (last.state, last.detail) != (state, detail):
            why = f": {detail}" if detail else ""
            self._say(f"gang of {self._gang.world} members: {state}{why}")

    def remark(self, address: str, text: str) -> None:
        """Log a remark, unless it repeats the last remark about the address within REPEAT seconds."""
        now = time.monotonic()
        said, when = self._said.get(address, ("", 0.0))
        if said != text or now - when >= REPEAT:
            self._said[address] = (text, now)
            self._say(f"{self._name(address)}{text}")

    def flush(self) -> None:
        """Wait for the last write."""
        self._writer.flush(FLUSH)

    def _name(self, address: str) -> str:
        names = [member.node for member in self._gang.members if same(member.address, address)]
        return f"a process at {address} ({names[0]}) " if address and names else f"{address} " if address else ""
