# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes chrony's configuration, and parses the output of chronyc. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..core.problems import Problem

QUIET = "#inference# "
"""The mark before a line of chrony.conf that is disabled while sources are declared."""

SOURCE = re.compile(r"\s*(?:(?:server|pool|peer)\s|sourcedir\s+/run/chrony-dhcp\b)", re.IGNORECASE)
"""Lines of Debian's chrony.conf with a time source. /run/chrony-dhcp has the sources from a DHCP server."""

HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]*")

STATES = {
    "*": "chosen",
    "+": "good",
    "-": "good, not combined",
    "?": "not usable yet",
    "x": "disagrees with the others",
    "~": "too variable",
}
"""The second column of `chronyc -c sources`. Source: chronyc(1)."""


@dataclass(frozen=True)
class Source:
    """A time source of chronyd. `offset` is in seconds."""

    name: str
    state: str
    reached: bool
    offset: float

    def __str__(self) -> str:
        if not self.reached:
            return f"{self.name}: no answer"
        return f"{self.name}: {STATES.get(self.state, self.state)}, offset {self.offset:+.6f} s"


def parse_sources(output: str) -> list[Source]:
    """Parse the output of `chronyc -c -N sources -a`."""
    found = []
    for line in output.splitlines():
        fields = line.split(",")
        # mode, state, name, stratum, poll, reach (octal), last answer, adjusted offset, measured offset, error
        if len(fields) >= 10 and fields[0] in "^=#":
            found.append(Source(fields[2], fields[1], fields[5] != "0", float(fields[7])))
    return found


def mistakes(servers: Iterable[str], pools: Iterable[str], config: Iterable[str]) -> list[Problem]:
    """Problems that can be found without chronyd."""
    problems = []
    for key, items in (("servers", servers), ("pools", pools)):
        for index, item in enumerate(items):
            words = item.split()
            if not words or not HOST.fullmatch(words[0]) or "\n" in item:
                what = "must be a host name or an address, optionally followed by chrony's options"
                problems.append(Problem(f"clock.{key}[{index}]", f"{item!r} {what}"))
    for index, item in enumerate(config):
        if "\n" in item or not item.strip():
            problems.append(Problem(f"clock.config[{index}]", f"{item!r} must be one directive of chrony.conf"))
        elif SOURCE.match(item):
            problems.append(
                Problem(
                    f"clock.config[{index}]", f"{item!r} is a source: move it to common_ntp_servers or common_ntp_pools"
                )
            )
    return problems


def source_lines(servers: Iterable[str], pools: Iterable[str]) -> list[str]:
    """The directives. A source without options gets `iburst`: the first queries follow each other within seconds."""
    both = [*(("server", item) for item in servers), *(("pool", item) for item in pools)]
    return [
        " ".join([kind, *words] + (["iburst"] if len(words) == 1 else []))
        for kind, item in both
        if (words := item.split())
    ]


def declared_names(servers: Iterable[str], pools: Iterable[str]) -> list[str]:
    """The host names of the declared sources."""
    return [item.split()[0] for item in (*servers, *pools)]


def main_text(text: str, declared: bool) -> str:
    """chrony.conf, with its own sources disabled if other sources are declared, and enabled otherwise."""
    lines = [line.removeprefix(QUIET) for line in text.splitlines()]
    if declared:
        lines = [QUIET + line if SOURCE.match(line) else line for line in lines]
    return "".join(f"{line}\n" for line in lines)
