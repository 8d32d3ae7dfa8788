# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The time of each part of a scenario, read from the output of molecule and pytest while they print it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
ACTION = re.compile(r"^[A-Z]+ +\S+ ➜ (\w+): (Executing|Executed)")
"""Molecule's line at the beginning or end of an action."""
TEST = re.compile(r"^(\d+\.\d+)s (call|setup|teardown) +(?:\S*/)?(\S+::\S.*)$")
"""pytest's line about a slow test, with --durations."""
SLOWEST = 5
OUTSIDE = "molecule itself"


class Phases:
    """Seconds by molecule's action, and the slowest tests."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._action = OUTSIDE
        self.seconds: dict[str, float] = {}
        self.tests: list[tuple[float, str]] = []

    def see(self, line: str) -> None:
        """Read a line that was printed now."""
        # Molecule draws a frame around the output of commands.
        text = COLOUR.sub("", line).strip(" │\n")
        if found := ACTION.search(text):
            self._begin(found[1] if found[2] == "Executing" else OUTSIDE)
        elif slow := TEST.match(text):
            self.tests.append((float(slow[1]), f"{slow[3]} ({slow[2]})"))

    def _begin(self, action: str) -> None:
        now = self._clock()
        self.seconds[self._action] = self.seconds.get(self._action, 0) + now - self._began
        self._began, self._action = now, action

    def report(self, scenario: str) -> str:
        """The report: a line for the actions, and a line for each of the slowest tests."""
        self._begin(OUTSIDE)
        actions = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in self.seconds.items() if seconds >= 0.5)
        slow = [f"    {seconds:5.1f} s {name}" for seconds, name in sorted(self.tests, reverse=True)[:SLOWEST]]
        total = f"--- {scenario}: {sum(self.seconds.values()) / 60:.1f} min: {actions}"
        return "\n".join([total, *slow])
