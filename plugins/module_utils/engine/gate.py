# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate in front of an engine: a closed gate refuses new connections to the engine's port. Private to the
collection.

The connection of a gateway that has not read a drain yet is refused, and HAProxy repeats the request at another engine.
Nothing was sent, so nothing is generated twice. Open connections stay. The gate is a table of nftables, which comes
before the firewall's table. A reload of the firewall leaves the gate's table alone. `flush ruleset` removes the table,
and so opens every gate.
"""

from __future__ import annotations

import json

from ..core import commands
from ..debian.users import ids

TABLE = "inference_gate"

GATEWAY_USER = "haproxy"
"""The user of a gateway on the same machine, whose connections come over the loopback interface. Connections of other
users pass: the node's own probes run as root."""

NFT_SECONDS = 20.0

_NEW = "tcp flags & (fin | syn | rst | ack) == syn"
"""Matches the packet that opens a connection. Source: nft(8)."""


class GateError(Exception):
    """nftables did not do what was asked; the text is for the operator."""


class NotInstalled(GateError):
    """The node has no nftables, and so no gate."""


def local_clients() -> set[int]:
    """The ids of the users on this node that connect to engines for clients."""
    try:
        return {ids(GATEWAY_USER)[0]}
    except KeyError:
        return set()


def close(port: int) -> None:
    """Refuse new connections to a port, and read back that the port is closed. Raises GateError."""
    _load(_table(local_clients()) + f"add element inet {TABLE} closed {{ {port} }}\n")
    if port not in closed():
        raise GateError(f"nft has added port {port} to the set closed of the table {TABLE}, and does not list the port")


def open_(port: int) -> None:
    """Let new connections to a port in again. Raises GateError."""
    if port in closed():
        _load(f"delete element inet {TABLE} closed {{ {port} }}\n")


def closed() -> set[int]:
    """The ports that are closed. Raises GateError; NotInstalled if the node has no nft."""
    if f'"{TABLE}"' not in _output(_tables()):
        return set()
    found = _output(commands.run(["nft", "--json", "list", "set", "inet", TABLE, "closed"], NFT_SECONDS))
    try:
        sets = [each["set"] for each in json.loads(found)["nftables"] if "set" in each]
        return {int(port) for each in sets for port in each.get("elem", [])}
    except (ValueError, KeyError, TypeError) as error:
        raise GateError(f"nft has not answered with a list of ports ({error}): {found[:200]}") from error


def remove() -> None:
    """Remove the table, and with the table every gate. A node without nftables has no gate. Raises GateError."""
    listed = _tables()
    if listed.failure != commands.NOT_INSTALLED and f'"{TABLE}"' in _output(listed):
        _load(f"delete table inet {TABLE}\n")


def _tables() -> commands.Outcome:
    return commands.run(["nft", "--json", "list", "tables", "inet"], NFT_SECONDS)


def _table(users: set[int]) -> str:
    """The commands that make the table, also where the table exists. Closed ports stay closed."""
    chains = {
        "input": [f'iif != "lo" tcp dport @closed {_NEW} reject with tcp reset'],
        "output": [
            f'oif "lo" meta skuid {user} tcp dport @closed {_NEW} reject with tcp reset' for user in sorted(users)
        ],
    }
    lines = [f"add table inet {TABLE}", f"add set inet {TABLE} closed {{ type inet_service; }}"]
    for chain, rules in chains.items():
        hook = f"type filter hook {chain} priority filter - 10; policy accept;"
        lines += [f"add chain inet {TABLE} {chain} {{ {hook} }}", f"flush chain inet {TABLE} {chain}"]
        lines += [f"add rule inet {TABLE} {chain} {rule}" for rule in rules]
    return "".join(f"{line}\n" for line in lines)


def _load(text: str) -> None:
    """Load all of a text into nftables, or nothing of it. Raises GateError."""
    _output(commands.run(["nft", "--file", "-"], NFT_SECONDS, stdin=text))


def _output(outcome: commands.Outcome) -> str:
    """What nft printed. Raises GateError; NotInstalled if the node has no nft."""
    if outcome.code != 0:
        words = outcome.message or outcome.stderr.strip() or f"nft ended with {outcome.code}"
        kind = NotInstalled if outcome.failure == commands.NOT_INSTALLED else GateError
        raise kind(f"the gate cannot be opened or closed: {words}. Install nftables, and run: nft list ruleset")
    return outcome.stdout
