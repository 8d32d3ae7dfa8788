# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes /etc/hosts, with the node's own name at an address that other machines can use. Private to the collection.

Debian's installer maps the host name to 127.0.1.1. An engine that spans several nodes would give the other nodes this
address, and wait for ever.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.problems import Problem

BEGIN = "# BEGIN baremetal.inference: changes between these lines are lost"
END = "# END baremetal.inference"

LABEL = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)")
"""A label of a host name. Source: RFC 1123, section 2.1."""

HOSTNAME_MAX = 64
"""Characters of a host name. Source: HOST_NAME_MAX, hostname(7)."""


@dataclass(frozen=True)
class Entry:
    """A declared line: an address in canonical form, and its names."""

    address: str
    names: tuple[str, ...]


def valid_name(name: object, longest: int = 253) -> bool:
    """Whether a value is a host name. DNS allows 253 characters (RFC 1035, section 2.3.4)."""
    return isinstance(name, str) and len(name) <= longest and all(LABEL.fullmatch(label) for label in name.split("."))


def parse_entries(hosts: Iterable[Any], where: str) -> tuple[list[Entry], list[Problem]]:
    """Parse the declared entries. Returns the entries and all problems."""
    entries: list[Entry] = []
    problems: list[Problem] = []
    # By name in lower case and address family: a program could use either of two addresses of a name.
    taken: dict[tuple[str, int], str] = {}
    for index, item in enumerate(hosts):
        place = f"{where}[{index}]"
        if not isinstance(item, Mapping) or set(item) != {"address", "names"}:
            problems.append(Problem(place, f"must be {{address: ADDRESS, names: [NAME, …]}}, found {item!r}"))
            continue
        names = [item["names"]] if isinstance(item["names"], str) else item["names"]
        try:
            address = ipaddress.ip_address(str(item["address"]))
        except ValueError:
            problems.append(Problem(place, "must be an IPv4 or IPv6 address", "address", item["address"]))
            continue
        if not isinstance(names, list) or not names:
            problems.append(Problem(place, "must be a list of at least one name", "names", names))
            continue
        for name in names:
            if not valid_name(name):
                problems.append(Problem(place, "must have only letters, digits, - and .", "names", name))
                continue
            other = taken.setdefault((name.lower(), address.version), str(address))
            if other != str(address):
                problems.append(Problem(place, f"already has {other}: give the name one address", "names", name))
        entries.append(Entry(str(address), tuple(str(name) for name in names)))
    return entries, problems


def loopback(address: str) -> bool:
    """Whether an address is a loopback address, which no other machine can use."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _family(address: str) -> int:
    """4 or 6; 0 for a text that is not an address. Such a line stays as it is."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).version
    except ValueError:
        return 0


def _split(line: str) -> tuple[list[str], str]:
    """Split a line into its words and its comment."""
    words, mark, comment = line.partition("#")
    return words.split(), mark + comment


def _foreign(lines: list[str]) -> list[str]:
    """The lines outside this collection's block."""
    outside: list[str] = []
    inside: list[str] = []
    ours = False
    for line in lines:
        if line in (BEGIN, END):
            ours = line == BEGIN
        else:
            (inside if ours else outside).append(line)
    # Without an end mark, all lines are kept: a line of the block may then exist twice, but no other line is lost.
    return outside + inside if ours else outside


def _own(name: str, hostname: str) -> bool:
    """Whether a name is the node's own: host, or host.domain."""
    short = hostname.lower().partition(".")[0]
    return name.lower() in (short, hostname.lower()) or name.lower().startswith(f"{short}.")


def _own_entry(outside: Iterable[str], lines: Iterable[str], hostname: str, mine: Entry, entries: list[Entry]) -> Entry:
    """The node's own line: the entry `mine`, with the names that the file and other entries have for the node.

    The names keep their order, because `hostname --fqdn` prints the first one. Names from lines with the address of
    `mine` precede names from loopback lines outside this collection's block. The node's names in the entries with this
    address follow, and then the other names of `mine`. So a second run gives the same result.
    """
    before, all_words = ([words for words, _comment in map(_split, some) if words] for some in (outside, lines))
    found = [name for words in [*before, *all_words] if words[0] == mine.address for name in words[1:]]
    found += [name for words in before if loopback(words[0]) for name in words[1:]]
    declared = [mine, *(entry for entry in entries if entry.address == mine.address)]
    found += [name for entry in declared for name in entry.names]
    return Entry(mine.address, tuple(dict.fromkeys([*(name for name in found if _own(name, hostname)), *mine.names])))


def render(text: str, hostname: str, address: str, entries: list[Entry]) -> str:
    """The new text of the file. If nothing differs, the text stays the same.

    The host name must resolve to `address`, unless one of the entries has the host name. A line of other origin loses a
    name only if it gives the name a wrong address.
    """
    lines = text.splitlines()
    outside = _foreign(lines)
    mine = next((entry for entry in entries if hostname.lower() in map(str.lower, entry.names)), None)
    own = _own_entry(outside, lines, hostname, mine or Entry(address, (hostname,)), entries)
    wanted = [own, *(entry for entry in entries if entry is not mine)]

    targets: dict[str, set[str]] = {}
    for entry in wanted:
        for name in entry.names:
            targets.setdefault(name.lower(), set()).add(entry.address)

    def contradicts(name: str, found: str) -> bool:
        goals = targets.get(name.lower(), set())
        if found in goals or not goals:
            return False
        return loopback(found) or _family(found) in {_family(goal) for goal in goals}

    kept: list[str] = []
    present: set[tuple[str, str]] = set()
    for line in outside:
        words, comment = _split(line)
        names = [name for name in words[1:] if not contradicts(name, words[0])]
        if len(names) != len(words) - 1 and words:
            if not names:
                continue
            line = "\t".join([words[0], " ".join(names)]) + (f" {comment}" if comment else "")
        present |= {(words[0], name.lower()) for name in names}
        kept.append(line)

    missing = [entry for entry in wanted if {(entry.address, name.lower()) for name in entry.names} - present]
    block = [f"{entry.address}\t{' '.join(entry.names)}" for entry in missing]
    new = kept + ([BEGIN, *block, END] if block else [])
    return text if new == lines else "\n".join(new) + "\n"
