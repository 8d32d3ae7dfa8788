# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules for connections that engines open, by the users that engines run as. Private to the collection. Pure.

Engines share the node's network. Without these rules, a program that got into an engine could reach the services of the
node that trust the loopback interface, other machines, and the internet. The rules refuse new connections only: no open
connection breaks when they are loaded, and the answers to clients pass.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from .nftables import HEADER, Rule

FIRST_OWN_PORT = 32768
"""The first port at which the processes of an engine find each other. A process that asks the kernel for any port gets
a port from 32768 on, unless net.ipv4.ip_local_port_range begins lower. ZeroMQ takes ports from 49152 on. nft cannot
see which process listens at a port. So services of the node with such a port stay open to engines."""

LOG = "inference-firewall-engine: "
"""The beginning of the kernel's log line about a refused connection."""

_REFUSAL = "reject with icmpx"
"""The start of the last rule's statement, without the ICMP type. The file and nft's listing have the same words."""

_USERS = re.compile(rf"^\s*meta skuid (?:\{{ ([0-9, ]+) \}}|([0-9]+)) {_REFUSAL}", re.MULTILINE)

OTHER_MACHINES = 'oifname != "lo" '

_PASS_OPEN_TCP = "tcp flags & (fin | syn | rst | ack) != syn accept"
"""Passes every packet that opens no connection, also of a connection that the kernel does not track."""


def first_own_port(port_range: str) -> int:
    """The first port of connections within an engine, from the text of net.ipv4.ip_local_port_range. FIRST_OWN_PORT if
    the text has no number."""
    first = port_range.partition("\t")[0].strip()
    return min(FIRST_OWN_PORT, int(first)) if first.isdecimal() else FIRST_OWN_PORT


def text(
    name: str, users: Collection[int], rules: Sequence[Rule], *, log: bool, first_port: int = FIRST_OWN_PORT
) -> str | None:
    """The file of a part, with lines of the chain ``output``. None without users.

    `users` are ids. A refused connection ends at once: an engine must not wait for a timeout.
    """
    if not users:
        return None
    user = f"meta skuid {{ {', '.join(str(each) for each in sorted(users))} }}"
    lines = [
        _PASS_OPEN_TCP,
        f'oifname "lo" tcp dport {first_port}-65535 accept comment "processes of engines"',
        *(line for rule in rules for line in _allowed(rule)),
        *([f'limit rate 5/second burst 20 packets log prefix "{LOG}"'] if log else []),
        "meta l4proto tcp reject with tcp reset",
        f"{_REFUSAL} admin-prohibited",
    ]
    head = f"# {HEADER}, part {name}: your changes would be lost.\n"
    return head + "".join(f"{user} {line}\n" for line in lines)


def users(text: str) -> set[int]:
    """The ids of the users whose undeclared connections are refused, from the text of a part or nft's listing."""
    found = (several or one for several, one in _USERS.findall(text))
    return {int(each) for ids in found for each in ids.split(",")}


def _allowed(rule: Rule) -> list[str]:
    """The lines of a rule. A rule without destinations does not open the node's own services."""
    matches = rule.addresses.matches("daddr")
    return [
        f"{OTHER_MACHINES if match == '' else match}{rule.protocol} dport {low if low == high else f'{low}-{high}'}"
        f' accept comment "{rule.name}"'
        for match in matches
        for low, high in rule.ports
    ]
