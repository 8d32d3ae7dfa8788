# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The time of swaps without the load of their engines, from the lines that updates print. Times are in seconds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

SWAPPED = re.compile(
    r"([a-z0-9_-]+ on \S+) serves release \d+[^.]*\. Drained for (\d+) s, of which it loaded for (\d+) s"
)

COSTS: list[tuple[str, int, int]] = []
"""The swaps of this run: instance and node, seconds of the drain, seconds of the load within the drain."""


def record(said: str) -> None:
    """Record the swaps that an update reports as done."""
    # A line of the report may go over several lines of the screen.
    COSTS.extend((where, int(drained), int(load)) for where, drained, load in SWAPPED.findall(" ".join(said.split())))


def table() -> list[str]:
    """A table with a line for each swap. No test has a limit for these times: `make bench` measures one swap alone."""
    lines = [f"{'swap':<30}{'drained':>9}{'load':>7}{'rest':>7}{'ratio':>8}"]
    for where, drained, load in COSTS:
        times = f"{drained:>7} s{load:>5} s{drained - load:>5} s"
        lines.append(f"{where:<30}{times}{drained / max(load, 1):>8.2f}")
    return lines


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table after the tests of a scenario whose conftest imports this function."""
    if COSTS:
        terminalreporter.section("swaps")
        for line in table():
            terminalreporter.write_line(line)
