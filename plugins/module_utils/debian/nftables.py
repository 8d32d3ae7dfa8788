# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the declared rules of the node's firewall, and writes them as nftables rules. Private to the collection."""

from __future__ import annotations

import ipaddress
import re
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.problems import InputError, Problem, nearest
from .ssh_session import Login

TABLE = "inference"
"""The name of this collection's table, of family inet. Other tables, such as Docker's, are never changed."""

HEADER = "Managed by the role baremetal.inference.common"
"""The mark of a file that this collection has written."""

DIRECTORY = "/etc/nftables.d"

INCLUDE = f'include "{DIRECTORY}/*.nft"'

ENGINES = "engines"
"""The directory in DIRECTORY of the parts of CHAIN_OF_ENGINES: connections that engines open."""

CHAIN_OF_ENGINES = "output"

ENGINES_INCLUDE = f'include "{DIRECTORY}/{ENGINES}/*.nft"'

EMPTY = f"table inet {TABLE}\ndelete table inet {TABLE}\n"
"""Removes the table, if it exists, in the same transaction as the following text."""

PREFIX = "common_firewall_"
"""Prefix of the role's variables, for messages."""

SECONDS = (15, 600)
"""Least and most seconds of a trial. Two tries of SSH take ten seconds. An operator does not wait longer than ten
minutes."""

PROTOCOLS = ("tcp", "udp", "vrrp")

WITHOUT_PORTS = {"vrrp": 112}
"""Protocols without ports, with their number (RFC 9568, 5.1.1.4): nft knows names only with /etc/protocols."""

RULE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/-]{0,63}")
"""The name of a rule. It becomes the rule's comment, in quotes, of at most 128 bytes. Source: nft(8)."""

PART_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")

INTERFACE = re.compile(r"[A-Za-z0-9_.:@-]{1,15}|[A-Za-z0-9_.:@-]{1,14}\*")
"""The name of an interface, of at most 15 characters. Source: IFNAMSIZ of linux/if.h. A last * is nft's wildcard."""

DOCKER_BRIDGE = re.compile(r"br-[0-9a-f]{12}")
"""The name that Docker gives the network bridge of a network: the first 12 digits of the network's id."""

EVERYWHERE = ("0.0.0.0/0", "::/0")

HOST_NAME_HINT = (
    "is neither an address nor a network. Names are refused, because a firewall must not depend on DNS. For hosts of"
    " the inventory, use \"{{ groups['gateway'] | baremetal.inference.host_addresses(hostvars) }}\""
)


class FirewallError(Exception):
    """An error of the firewall. The message says what to do."""


@dataclass(frozen=True)
class Kind:
    """A list of rules that an operator declares."""

    variable: str
    """The name of the list, without the prefix of the role."""
    addresses: str
    """The key of an entry with addresses and networks."""
    protocols: tuple[str, ...]
    missing_port: str
    """The message for an entry without port."""
    empty: str
    """The message for an entry with an empty list of addresses."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of an entry."""
        return ("name", "port", "protocol", self.addresses)


INBOUND = Kind(
    "allow",
    "sources",
    PROTOCOLS,
    "is missing: set the port to which clients connect",
    "is empty: remove it to allow every address",
)

OF_ENGINES = Kind(
    "engine_allow",
    "destinations",
    ("tcp", "udp"),
    "is missing: set the port to which engines connect",
    "is empty: remove it to allow every other machine",
)


@dataclass(frozen=True)
class Addresses:
    """The networks of a rule. Without networks, every address."""

    v4: tuple[str, ...] = ()
    v6: tuple[str, ...] = ()

    def contain(self, address: str) -> bool:
        """Whether the networks have an address."""
        networks = (*self.v4, *self.v6)
        return not networks or any(ipaddress.ip_address(address) in ipaddress.ip_network(text) for text in networks)

    def matches(self, field: str = "saddr") -> list[str]:
        """The match of each rule that these networks need, followed by a blank."""
        if not self.v4 and not self.v6:
            return [""]
        families = zip(("ip", "ip6"), ("ipv4", "ipv6"), EVERYWHERE, (self.v4, self.v6), strict=True)
        return [
            f"meta nfproto {protocol} " if everything in networks else f"{family} {field} {{ {', '.join(networks)} }} "
            for family, protocol, everything, networks in families
            if networks
        ]


@dataclass(frozen=True)
class Rule:
    """An entry of a list of rules. Ports are pairs of first and last port."""

    name: str
    protocol: str
    ports: tuple[tuple[int, int], ...]
    addresses: Addresses


@dataclass(frozen=True)
class Base:
    """Settings of the whole firewall, and not of one part."""

    ssh_ports: tuple[int, ...]
    ssh_sources: Addresses = Addresses()
    trusted: tuple[str, ...] = ()
    log: bool = True
    foreign_bridges: tuple[str, ...] = ()
    engine_allow: tuple[Rule, ...] = ()


@dataclass(frozen=True)
class Socket:
    """A TCP socket in the kernel's table."""

    local: str
    port: int
    peer: str
    peer_port: int
    listening: bool
    established: bool
    inode: str


# --- what the operator declares


def _flat(value: Any) -> list[Any]:
    """Flatten a list of lists. A single value becomes a list."""
    if not isinstance(value, (list, tuple)):
        return [value]
    return [inner for item in value for inner in _flat(item)]


def _addresses(value: Any, where: str, key: str, found: list[Problem]) -> Addresses:
    """Parse addresses and networks. Each family is sorted, without networks that another one contains."""
    v4: list[ipaddress.IPv4Network] = []
    v6: list[ipaddress.IPv6Network] = []
    for item in [] if value is None else _flat(value):
        text = str(item)
        try:
            network = ipaddress.ip_network(text)
        except ValueError:
            try:
                interface = ipaddress.ip_interface(text)
            except ValueError:
                found.append(Problem(where, HOST_NAME_HINT, key, item))
            else:
                message = f"has bits after its mask: use {interface.network} or {interface.ip}"
                found.append(Problem(where, message, key, item))
            continue
        if isinstance(network, ipaddress.IPv4Network):
            v4.append(network)
        elif "%" in text:
            found.append(
                Problem(where, "has an interface, which a rule cannot have: remove the part with %", key, item)
            )
        else:
            v6.append(network)
    return Addresses(_collapsed(v4), _collapsed(v6))


def _collapsed(networks: Iterable[Any]) -> tuple[str, ...]:
    """Networks in nft's form: a single address has no mask. Merged, because nft refuses overlapping networks."""
    merged = ipaddress.collapse_addresses(networks)
    return tuple(str(item.network_address if item.num_addresses == 1 else item) for item in merged)


def _port(item: Any) -> tuple[int, int] | None:
    """A port or a range of ports as a pair; None if the value is neither."""
    if isinstance(item, bool) or not re.fullmatch(r"[0-9]{1,5}(-[0-9]{1,5})?", str(item)):
        return None
    first, _dash, last = str(item).partition("-")
    low, high = int(first), int(last or first)
    return (low, high) if 1 <= low <= high <= 65535 else None


def _ports(value: Any, where: str, found: list[Problem]) -> tuple[tuple[int, int], ...]:
    """Parse ports into sorted ranges. Adjacent ranges are merged."""
    ranges = []
    items = _flat(value)
    if not items:
        found.append(Problem(where, "is empty: name at least one port", "port", value))
    for item in items:
        pair = _port(item)
        if pair is None:
            message = "must be a port from 1 to 65535, a range as '5005-5010', or a list of both"
            found.append(Problem(where, message, "port", item))
        else:
            ranges.append(pair)
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)


def _rule(number: int, entry: Any, found: list[Problem], kind: Kind) -> Rule | None:
    where = f"{PREFIX}{kind.variable}, entry {number}"
    if not isinstance(entry, Mapping):
        found.append(Problem(where, f"must be a mapping with {', '.join(kind.keys)}, found {entry!r}"))
        return None
    name = entry.get("name")
    if not isinstance(name, str) or not RULE_NAME.fullmatch(name):
        found.append(Problem(where, "must be 1 to 64 letters, digits, blanks and . _ / -", "name", str(name)))
    else:
        where = f"{where} ({name})"
    found += [
        Problem(where, f"is not known: {nearest(str(key), kind.keys)}", str(key))
        for key in entry
        if key not in kind.keys
    ]
    protocol = entry.get("protocol") or "tcp"
    if protocol not in kind.protocols:
        found.append(Problem(where, f"must be one of {', '.join(kind.protocols)}", "protocol", protocol))
    ports: tuple[tuple[int, int], ...] = ()
    if str(protocol) in WITHOUT_PORTS:
        if entry.get("port") is not None:
            found.append(Problem(where, f"is not allowed in a rule for {protocol}: remove it", "port", entry["port"]))
    elif entry.get("port") is None:
        found.append(Problem(where, kind.missing_port, "port"))
    else:
        ports = _ports(entry["port"], where, found)
    key = kind.addresses
    if key in entry and not _flat(entry[key] or []):
        # The list may come from a group without hosts, which must not open the port to every address.
        found.append(Problem(where, kind.empty, key, entry[key]))
    return Rule(str(name), str(protocol), ports, _addresses(entry.get(key), where, key, found))


def _rules(entries: Sequence[Any], found: list[Problem], kind: Kind) -> list[Rule]:
    rules = [_rule(number, entry, found, kind) for number, entry in enumerate(entries, 1)]
    names = [rule.name for rule in rules if rule]
    where = f"{PREFIX}{kind.variable}"
    for name in sorted({name for name in names if names.count(name) > 1}):
        found.append(Problem(where, "is used more than once: choose another name", "name", name))
    return [rule for rule in rules if rule]


def _let_in(session: Login, sources: Addresses, rules: Iterable[Rule]) -> bool:
    """Whether the rules let a session's client log in again. Does not check the ports of the SSH server."""
    return sources.contain(session.address) or any(
        rule.protocol == "tcp"
        and any(first <= session.port <= last for first, last in rule.ports)
        and rule.addresses.contain(session.address)
        for rule in rules
    )


def parse(declared: Mapping[str, Any], session: Login | None = None) -> tuple[list[Rule], Base]:
    """Parse the declaration: name, allow, engine_allow, ssh_sources, ssh_ports, trusted_interfaces, log and seconds.

    `session`: the SSH session of this run, whose client the rules must let in. None: there is no session, or the node
    has other rules that may let the client in.

    Raises InputError with all problems.
    """
    found: list[Problem] = []
    part = declared["name"]
    if not PART_NAME.fullmatch(part):
        found.append(
            Problem(f"{PREFIX}name", f"must be 1 to 64 of a-z, 0-9, _ and -, because it names a file; found {part!r}")
        )
    rules = _rules(declared["allow"], found, INBOUND)
    of_engines = _rules(declared.get("engine_allow", ()), found, OF_ENGINES)
    sources = _addresses(declared["ssh_sources"], f"{PREFIX}ssh_sources", "entry", found)
    if declared["ssh_sources"] and not _flat(declared["ssh_sources"]):
        message = "has only empty lists, for example of a group without hosts: remove it to allow every address"
        found.append(Problem(f"{PREFIX}ssh_sources", message))
    elif session and not (declared["trusted_interfaces"] or _let_in(session, sources, rules)):
        message = (
            f"does not have {session.address}, from which this run has logged in by SSH: the new rules would refuse the"
            " next login. Add this address, or its network"
        )
        found.append(Problem(f"{PREFIX}ssh_sources", message))
    if not SECONDS[0] <= declared["seconds"] <= SECONDS[1]:
        message = (
            f"is {declared['seconds']}, but must be 15 to 600: a new SSH session must succeed in half of this time"
        )
        found.append(Problem(f"{PREFIX}confirm_seconds", message))
    ssh_ports = _ports(declared["ssh_ports"], f"{PREFIX}ssh_ports", found) if declared["ssh_ports"] else ()
    for interface in declared["trusted_interfaces"]:
        if not INTERFACE.fullmatch(str(interface)):
            message = "must be the name of an interface, of at most 15 characters. It can end with *"
            found.append(Problem(f"{PREFIX}trusted_interfaces", message, "entry", interface))
    if found:
        raise InputError(found)
    singles = tuple(port for low, high in ssh_ports for port in range(low, high + 1))
    trusted = tuple(sorted({str(interface) for interface in declared["trusted_interfaces"]}))
    return rules, Base(singles, sources, trusted, bool(declared["log"]), engine_allow=tuple(of_engines))


# --- the rules


def _indented(lines: Iterable[str]) -> str:
    return "".join(f"\t\t{line}\n" for line in lines)


def _chain(name: str, lines: Iterable[str]) -> str:
    return f"\tchain {name} {{\n{_indented(lines)}\t}}\n"


def _matches(rule: Rule) -> list[str]:
    """The match of protocol and ports for each line of a rule."""
    if rule.protocol in WITHOUT_PORTS:
        return [f"meta l4proto {WITHOUT_PORTS[rule.protocol]}"]
    return [
        f"meta l4proto {rule.protocol} ct original proto-dst {low if low == high else f'{low}-{high}'}"
        for low, high in rule.ports
    ]


def part_text(name: str, rules: Sequence[Rule]) -> str | None:
    """The file of a part, with lines of the chain ``services``. None if the part has no rules.

    The lines match the port to which the client connects. So they work for services of the node and for published ports
    of containers. Each range has its own line: nft 1.0.6 lists a set of such ports in a form that nft cannot read, and
    the rollback reads such a list.
    """
    if not rules:
        return None
    lines = [
        f'{source}{match} accept comment "{rule.name}"'
        for rule in rules
        for source in rule.addresses.matches()
        for match in _matches(rule)
    ]
    return f"# {HEADER}, part {name}: your changes would be lost.\n" + "".join(f"{line}\n" for line in lines)


def main_text(base: Base) -> str:
    """The text of /etc/nftables.conf."""
    inside = ["docker0", "br-*", *base.trusted]
    refusal = ["drop"]
    if base.log:
        refusal = [
            "meta pkttype { broadcast, multicast } drop",
            'limit rate 5/second burst 20 packets log prefix "inference-firewall: "',
            "drop",
        ]
    return (
        f"#!/usr/sbin/nft -f\n"
        f"# {HEADER}: your changes would be lost.\n"
        f"# Put your own rules into {DIRECTORY}/NAME.nft, as lines of the chain `services`. They apply to new\n"
        f"# connections to this node and to published ports of containers: match `ct original proto-dst`.\n"
        f"{EMPTY}\n"
        f"table inet {TABLE} {{\n"
        + _chain("services", [INCLUDE])
        + _chain("refused", refusal)
        + _chain("input", ["type filter hook input priority filter; policy drop;", *_input_lines(base)])
        + "\t# Connections from outside reach only published ports that the chain `services` allows.\n"
        + _chain(
            "published",
            [
                "ct status dnat jump services",
                "ct status dnat goto refused",
                *(f'oifname "{name}" accept' for name in base.foreign_bridges),
                'oifname "docker0" goto refused',
                'oifname "br-*" goto refused',
            ],
        )
        + "\t# Docker's own chains follow, and check the packets that this chain accepts.\n"
        + _chain(
            "forward",
            [
                "type filter hook forward priority filter - 10; policy accept;",
                "ct state established,related accept",
                *(f'iifname "{name}" goto published' for name in base.foreign_bridges),
                *(f'iifname "{name}" accept' for name in inside),
                "goto published",
            ],
        )
        + "\t# Restricts the connections that engines open. All other connections from this node are open.\n"
        + _chain(
            CHAIN_OF_ENGINES,
            [
                "type filter hook output priority filter; policy accept;",
                "ct state established,related accept",
                ENGINES_INCLUDE,
            ],
        )
        + "}\n"
    )


def _input_lines(base: Base) -> list[str]:
    ssh = ", ".join(str(port) for port in sorted(base.ssh_ports))
    return [
        "ct state established,related accept",
        'iifname "lo" accept',
        "# Before `ct state invalid`: an open SSH session may be older than the kernel's connection tracking.",
        *(f"{source}tcp dport {{ {ssh} }} accept" for source in base.ssh_sources.matches()),
        "ct state invalid drop",
        *(f'iifname "{name}" accept' for name in base.trusted),
        "icmp type { destination-unreachable, echo-request, time-exceeded, parameter-problem } accept",
        "# IPv6 needs these messages. Source: RFC 4890, section 4.4",
        "icmpv6 type { destination-unreachable, packet-too-big, time-exceeded, parameter-problem, echo-request,"
        " mld-listener-query, mld-listener-report, mld-listener-done, nd-router-advert, nd-neighbor-solicit,"
        " nd-neighbor-advert, mld2-listener-report } accept",
        "meta l4proto igmp accept",
        "# Answers of DHCP servers to this node.",
        "udp sport 67 udp dport 68 accept",
        "ip6 saddr fe80::/10 udp sport 547 udp dport 546 accept",
        "jump services",
        "jump refused",
    ]


def complete(main: str, parts: Mapping[str, str]) -> str:
    """The main file with the includes replaced by the parts (by path in DIRECTORY). The kernel loads this text."""
    for include, inside in ((INCLUDE, False), (ENGINES_INCLUDE, True)):
        names = sorted(name for name in parts if name.startswith(f"{ENGINES}/") == inside)
        main = main.replace(include, "\n".join(parts[name] for name in names))
    return main


def with_flows(text: str, flows: Sequence[Socket]) -> str:
    """A complete text that also allows these open connections, even if the kernel does not track them."""
    lines = []
    for flow in flows:
        family = "ip6" if ":" in flow.local else "ip"
        lines.append(
            f"{family} saddr {flow.peer} {family} daddr {flow.local}"
            f" tcp sport {flow.peer_port} tcp dport {flow.port} accept"
        )
    head = "\t\ttype filter hook input priority filter; policy drop;\n"
    return text.replace(head, head + _indented(lines), 1)


def wrapped(part: str) -> str:
    """A complete text with one part only, for a check by nft."""
    return f"{EMPTY}table inet {TABLE} {{\n" + _chain("services", [part]) + "}\n"


def listed(listing: str | None) -> str:
    """The text that restores a listed table. None: there was no table."""
    return EMPTY + (listing or "")


def is_ours(text: str) -> bool:
    """Whether this collection has written a file."""
    return HEADER in text


def has_rules(text: str) -> bool:
    """Whether a configuration has any line that is not a comment."""
    return any(line.strip() and not line.strip().startswith("#") for line in text.splitlines())


# --- what the node reports


def _address(word: str) -> str:
    """Parse an address of /proc/net/tcp or tcp6: 32-bit words in the machine's byte order. Source: proc(5)."""
    words = (int(word[start : start + 8], 16) for start in range(0, len(word), 8))
    raw = b"".join(value.to_bytes(4, sys.byteorder) for value in words)
    if len(raw) == 4:
        return socket.inet_ntop(socket.AF_INET, raw)
    address = ipaddress.IPv6Address(raw)
    return str(address.ipv4_mapped or address)


def sockets(table: str) -> Iterator[Socket]:
    """Parse the text of /proc/net/tcp or tcp6. States: 01 established, 0A listening. Source: proc(5)."""
    for line in table.splitlines()[1:]:
        words = line.split()
        (local, port), (peer, peer_port) = (word.split(":") for word in words[1:3])
        state = words[3]
        ends = (_address(local), int(port, 16), _address(peer), int(peer_port, 16))
        yield Socket(*ends, listening=state == "0A", established=state == "01", inode=words[9])


def units(output: str) -> dict[str, dict[str, str]]:
    """Parse ``systemctl show`` of several units: properties by unit Id. Values of a repeated property are joined."""
    found: dict[str, dict[str, str]] = {}
    for block in output.split("\n\n"):
        properties: dict[str, str] = {}
        for line in block.splitlines():
            key, separator, value = line.partition("=")
            if separator:
                properties[key] = f"{properties[key]}\n{value}" if key in properties else value
        if "Id" in properties:
            found[properties["Id"]] = properties
    return found


def socket_ports(listen: str) -> list[int]:
    """The ports in the property Listen of a socket unit."""
    return [int(port) for port in re.findall(r":([0-9]+) \(Stream\)", listen)]


OTHERS = ("ufw.service", "firewalld.service", "netfilter-persistent.service", "ferm.service", "shorewall.service")
"""Units of other firewalls in Debian."""


def conflicts(found: Mapping[str, Mapping[str, str]], ufw_conf: str) -> list[str]:
    """Other firewalls that are active or enabled on the node, from the units of ``systemctl show``.

    ufw's unit is active even if ufw is off; /etc/ufw/ufw.conf says whether it is on. Source: ufw(8)
    """
    busy = []
    for name, properties in found.items():
        on = properties.get("ActiveState") == "active" or properties.get("UnitFileState") == "enabled"
        if on and (name != "ufw.service" or re.search(r"^ENABLED=[\"']?yes", ufw_conf, re.MULTILINE)):
            busy.append(name.removesuffix(".service"))
    return sorted(busy)
