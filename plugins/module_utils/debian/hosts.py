# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of /etc/hosts, with a node's own name at an address that other machines reach. Private to the collection.

Debian's installer maps the host name to 127.0.1.1. An engine that spans several nodes then tells the others to come to
127.0.1.1, and waits for ever.
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
    """A declared line: an address in its canonical spelling, and names."""

    address: str
    names: tuple[str, ...]


def valid_name(name: object, longest: int = 253) -> bool:
    """Whether a text is a host name. 253 characters is what DNS allows (RFC 1035, section 2.3.4)."""
    return isinstance(name, str) and len(name) <= longest and all(LABEL.fullmatch(label) for label in name.split("."))


def parse_entries(hosts: Iterable[Any], where: str) -> tuple[list[Entry], list[Problem]]:
    """The declared entries, and everything that is wrong with them."""
    entries: list[Entry] = []
    problems: list[Problem] = []
    # By name in lower case and address family: two addresses for one name leave it to chance which one is taken.
    taken: dict[tuple[str, int], str] = {}
    for index, item in enumerate(hosts):
        place = f"{where}[{index}]"
        if not isinstance(item, Mapping) or set(item) != {"address", "names"}:
            problems.append(Problem(place, f"found {item!r}, wanted {{address: ADDRESS, names: [NAME, …]}}"))
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
                problems.append(Problem(place, "only letters, digits, - and . may be in a name", "names", name))
                continue
            other = taken.setdefault((name.lower(), address.version), str(address))
            if other != str(address):
                problems.append(Problem(place, f"has {other} already; a name has one address", "names", name))
        entries.append(Entry(str(address), tuple(str(name) for name in names)))
    return entries, problems


def loopback(address: str) -> bool:
    """Whether no other machine can come by an address."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _family(address: str) -> int:
    """4 or 6; 0 where the text is no address (the line is not ours to correct, and stays)."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).version
    except ValueError:
        return 0


def _split(line: str) -> tuple[list[str], str]:
    """The words of a line, and its comment."""
    words, mark, comment = line.partition("#")
    return words.split(), mark + comment


def _foreign(lines: list[str]) -> list[str]:
    """The lines outside our block."""
    outside: list[str] = []
    inside: list[str] = []
    ours = False
    for line in lines:
        if line in (BEGIN, END):
            ours = line == BEGIN
        else:
            (inside if ours else outside).append(line)
    # A block without an end is no block: a line of ours may then stand twice, but no foreign line is lost.
    return outside + inside if ours else outside


def _own(name: str, hostname: str) -> bool:
    """Whether a name that stands on a loopback line is the node's: host, or host.domain."""
    short = hostname.lower().partition(".")[0]
    return name.lower() in (short, hostname.lower()) or name.lower().startswith(f"{short}.")


def own_entry(lines: Iterable[str], hostname: str, entry: Entry) -> Entry:
    """The node's own line: `entry`, and the names that the file had for the node, in their order there, since the first
    is what `hostname --fqdn` says. Lines that stay go before loopback lines, which go: so it is the same in a next run.
    """
    names: list[str] = []
    split = [words for words, _comment in map(_split, lines)]
    for words in [
        *(words for words in split if words[:1] == [entry.address]),
        *(words for words in split if words and loopback(words[0])),
    ]:
        names += [name for name in words[1:] if _own(name, hostname) and name not in names]
    return Entry(entry.address, (*names, *(name for name in entry.names if name not in names)))


def render(text: str, hostname: str, address: str, entries: list[Entry]) -> str:
    """The new text. A file that already says the same stays as it is.

    The host name must resolve to `address`, unless one of the entries has the host name. A foreign line loses a name
    only where the line contradicts.
    """
    lines = text.splitlines()
    outside = _foreign(lines)
    mine = next((entry for entry in entries if hostname in entry.names), None)
    own = own_entry([*outside, *lines], hostname, mine or Entry(address, (hostname,)))
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
