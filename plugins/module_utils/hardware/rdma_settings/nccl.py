# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment of NCCL and Gloo for a gang, from its members' facts. Private to the collection; pure.

Besides `rdma_nccl`, only variables that these nodes need are set: NCCL's own choices are better than most recipes. No
index of a GID is set: NCCL 2.21 and later find the right GID on each device. Source: ncclIbGetGidIndex of NCCL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...core.problems import Findings
from ...core.records import known, plain
from . import addresses, desired, rails
from .desired import Desired
from .variables import ECT, ETHERNET, packet_size

MOST_DEVICES = 32
"""Source: MAX_IB_DEVS of transport/net_ib of NCCL."""

PREFIXES = ("NCCL_", "UCX_", "GLOO_")


@dataclass(frozen=True)
class Rail:
    """A rail, as NCCL sees it."""

    device: str
    port: int
    layer: str | None
    netdev: str | None
    network: str | None
    """The subnet of its address; None without one."""
    mtu_active: int | None
    rate_gbps: float | None


@dataclass(frozen=True)
class Node:
    """A member of a gang."""

    address: str
    """The address by which the other nodes reach this one."""
    netdev: str
    """The network device of this address."""
    rails: tuple[Rail, ...] = ()
    """In the order of the plan, or of the bus."""
    ports: int = 0
    """The number of RDMA ports, also those that are no rails."""
    tos: int | None = None
    """The type of service of the lossless class; None if the plan has no such class."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dict(plain(self))

    @classmethod
    def from_dict(cls, value: Any) -> Node:
        """A node from the form of to_dict(), of any version. Raises ValueError where the value is damaged."""
        try:
            made = tuple(Rail(**known(Rail, each)) for each in value["rails"])
            return cls(**{**known(cls, value), "rails": made})
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"the network of a node is damaged ({error!r})") from error


@dataclass(frozen=True)
class Options:
    """The site's options for NCCL."""

    required: bool = False
    """Whether an engine must fail rather than use TCP (`rdma_required`)."""
    rails_connected: bool | None = None
    """Whether a rail reaches the other rails. None: yes, unless all rails are RoCE and each rail of a node
    has a subnet of its own."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    """Further variables (`rdma_nccl`)."""


def node(facts: Mapping[str, Any], wanted: Desired | None, address: str, netdev: str) -> Node:
    """A node by its facts of rdma_facts and its plan. Without a plan, its rails are all active ports, except the
    port of `netdev`.

    Networks and MTUs of the plan count as set before the role has set them. Otherwise, the end of a first run would
    change a release, and so would a drain, in which the role makes settings that had to wait.
    """
    found = rails.ports(facts)
    if wanted is None:
        chosen = [_rail(port) for port in found if port.active and port.netdev != netdev]
        tos = None
    else:
        by_key = {port.key: port for port in found}
        chosen = [_rail(by_key[rail.key], rail) for rail in wanted.rails if rail.key in by_key]
        tos = next((_tos(rail) for rail in wanted.rails if rail.pfc), None)
    return Node(address, netdev, tuple(chosen), len(found), tos)


def _tos(wanted: desired.Rail) -> int | None:
    """The type of service of the lossless class: that of its DSCP, with the bit of ECN. rdma_cm may have another
    type of service, which counts only if the table of DSCPs is left alone."""
    lossless = [int(dscp) for dscp, priority in (wanted.dscp or {}).items() if priority in (wanted.pfc or ())]
    return lossless[0] << 2 | ECT if lossless else wanted.rdma_cm_tos


def _rail(port: rails.Port, wanted: desired.Rail | None = None) -> Rail:
    texts = port.facts.get("netdev_addresses") or ()
    parsed = [found for found in map(addresses.parsed, texts) if found is not None and not found.is_link_local]
    network = str(parsed[0].network) if parsed else None
    mtu = port.facts.get("mtu_active")
    if wanted is not None:
        network = wanted.network or network
        mtu = packet_size(wanted.mtu) if wanted.mtu and port.layer == ETHERNET else mtu
    return Rail(
        device=port.device,
        port=port.number,
        layer=port.layer,
        netdev=port.netdev,
        network=network,
        mtu_active=mtu,
        rate_gbps=port.facts.get("rate_gbps"),
    )


def environment(nodes: Mapping[str, Node], options: Options) -> tuple[dict[str, dict[str, str]], Findings]:
    """The variables of each node, by its name, and all mistakes and warnings.

    `nodes` are the members of one gang. A single node gets only the overrides.
    """
    findings = Findings()
    _overrides(nodes, options, findings)
    found: dict[str, dict[str, str]] = {name: {} for name in nodes}
    if len(nodes) > 1:
        alike = _alike(nodes, options, findings)
        for name, one in nodes.items():
            found[name] = {
                **(_sockets(one.netdev) if one.netdev else {}),
                **(_rdma(name, one, nodes, options, findings) if alike else {}),
            }
    for variables in found.values():
        variables.update(options.overrides)
    return found, findings


def _sockets(netdev: str) -> dict[str, str]:
    # Without the sign, NCCL would take all devices whose names begin with this text.
    return {"NCCL_SOCKET_IFNAME": f"={netdev}", "GLOO_SOCKET_IFNAME": netdev}


def _alike(nodes: Mapping[str, Node], options: Options, findings: Findings) -> bool:
    """Whether all nodes have the same rails, so that NCCL can use them. Adds the differences."""
    counts = {name: len(one.rails) for name, one in nodes.items()}
    if not any(counts.values()):
        if options.required:
            findings.problem(
                "rdma", f"{', '.join(nodes)} have no rail; set rdma_required: false", "rdma_required", True
            )
        return False
    before = len(findings.problems)
    _equal("rails", counts, findings)
    for what, key in (("link layers", "layer"), ("MTUs of RDMA packets", "mtu_active")):
        # A value that a node does not show, because a tool is missing, does not count as different.
        shown = {name: one for name, one in nodes.items() if all(getattr(rail, key) is not None for rail in one.rails)}
        _equal(what, {name: _set(one, key) for name, one in shown.items() if one.rails}, findings)
    _equal("types of service", {name: str(one.tos) for name, one in nodes.items()}, findings)
    rates = {name: _set(one, "rate_gbps") for name, one in nodes.items()}
    if len(set(rates.values())) > 1:
        findings.warning("rdma", f"the rates of the rails differ: {_each(rates)}; the slowest counts", "rdma_rails")
    return len(findings.problems) == before


def _set(one: Node, key: str) -> str:
    return ", ".join(sorted({str(getattr(rail, key)) for rail in one.rails})) or "none"


def _equal(what: str, values: Mapping[str, object], findings: Findings) -> None:
    if len(set(values.values())) > 1:
        findings.problem("rdma", f"the {what} of the nodes differ: {_each(values)}; make them equal", "rdma_rails")


def _each(values: Mapping[str, object]) -> str:
    return "; ".join(f"{name} has {value}" for name, value in values.items())


def _rdma(name: str, one: Node, nodes: Mapping[str, Node], options: Options, findings: Findings) -> dict[str, str]:
    """The variables of a node whose rails are like those of the others."""
    found: dict[str, str] = {}
    # If one node needs the variable, all nodes get it, each with the names of its own devices.
    if any(other.ports > len(other.rails) for other in nodes.values()):
        found["NCCL_IB_HCA"] = "=" + ",".join(f"{rail.device}:{rail.port}" for rail in one.rails)
        if len(one.rails) > MOST_DEVICES:
            findings.problem(name, f"allowed are at most {MOST_DEVICES} rails; use fewer", "rdma_rails")
    if all(rail.layer == ETHERNET for rail in one.rails) and one.tos:
        found["NCCL_IB_TC"] = str(one.tos)
    if _separate(nodes, options):
        found["NCCL_CROSS_NIC"] = "0"
    if options.required:
        found["NCCL_NET"] = "IB"
    return found


def _separate(nodes: Mapping[str, Node], options: Options) -> bool:
    """Whether a rail cannot reach the other rails, so that NCCL must not try."""
    if options.rails_connected is not None:
        return not options.rails_connected and any(len(one.rails) > 1 for one in nodes.values())
    networks = [[rail.network for rail in one.rails] for one in nodes.values()]
    return all(len(each) > 1 and None not in each and len(set(each)) == len(each) for each in networks) and all(
        rail.layer == ETHERNET for one in nodes.values() for rail in one.rails
    )


REFUSED: Mapping[str, str] = {
    "NCCL_IB_DISABLE": "switches RDMA off; it is for a single test, not for an engine",
    "NCCL_P2P_DISABLE": "switches NVLink off; it is for a single test, not for an engine",
    "NCCL_SHM_DISABLE": "is for a single test, not for an engine",
    "NCCL_NET_DISABLE_INTRA": "is for a single test, not for an engine",
    "NCCL_TOPO_FILE": "hides the real machine; it is for virtual machines",
    "NCCL_IB_HCA": "names devices of one node; set rdma_rails, from which it is made for each node",
    "NCCL_SOCKET_IFNAME": "is made for each node from the interface of inference_fabric_address",
    "GLOO_SOCKET_IFNAME": "is made for each node from the interface of inference_fabric_address",
    "NCCL_COMM_ID": "is set by the engine itself",
}
"""Variables that the site must not set, and why."""

GDR_WORDS = ("LOC", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS")
"""Source: docs of NCCL_NET_GDR_LEVEL."""

GDR_NUMBERS = {"0": "LOC", "1": "PIX", "2": "PXB", "3": "PHB", "4": "SYS", "5": "SYS"}
"""The words for the numbers of old versions. Source: levelsOldToNew of graph/paths.cc of NCCL."""

MOST: Mapping[str, int] = {"NCCL_IB_RETRY_CNT": 7, "NCCL_IB_TC": 255, "NCCL_IB_FIFO_TC": 255, "NCCL_IB_TIMEOUT": 22}
"""The greatest useful numbers. A longer timeout hides a dead link from the engine, which waits 300 s."""


def _overrides(nodes: Mapping[str, Node], options: Options, findings: Findings) -> None:
    for key, value in options.overrides.items():
        if not isinstance(value, str):
            findings.problem("rdma_nccl", "must be a text in quotes", key, value)
            continue
        message = _refusal(key, value, has_roce(nodes), options)
        if message:
            findings.problem("rdma_nccl", message, key, value)


def has_roce(nodes: Mapping[str, Node]) -> bool:
    """Whether any rail of the nodes is RoCE."""
    return any(rail.layer == ETHERNET for one in nodes.values() for rail in one.rails)


def refusals(variables: Mapping[str, Any], nodes: Mapping[str, Node], options: Options) -> dict[str, str]:
    """Why variables of an engine of these nodes must not be set so, by their names. Other variables than those of NCCL,
    UCX and Gloo are left out. No message has the value of a variable, unless the value is a number."""
    found = {
        key: _refusal(key, str(value), has_roce(nodes), options)
        for key, value in variables.items()
        if key.startswith(PREFIXES)
    }
    return {key: message for key, message in found.items() if message}


def _refusal(key: str, value: str, roce: bool, options: Options) -> str:
    """Why a variable must not be set so; empty if it may."""
    if not key.startswith(PREFIXES):
        return f"is no variable of NCCL, UCX or Gloo; allowed are names with {', '.join(PREFIXES)}"
    if key in REFUSED:
        return f"{REFUSED[key]}; remove it"
    if key == "NCCL_NET" and options.required and value != "IB":
        return "contradicts rdma_required, which sets IB; remove one of the two"
    if key == "NCCL_NET_GDR_LEVEL" and value not in GDR_WORDS:
        word = GDR_NUMBERS.get(value)
        return f"{value} means {word}; write the word" if word else f"allowed are {', '.join(GDR_WORDS)}"
    if key in MOST and not (re.fullmatch("[0-9]{1,4}", value) and int(value) <= MOST[key]):
        return f"must be a number from 0 to {MOST[key]}"
    if key == "NCCL_IB_SL" and roce:
        return "has no effect on RoCE, whose priority comes from the DSCP (rdma_dscp); remove it"
    if key == "NCCL_IB_GID_INDEX":
        return "NCCL 2.21 and later find the GID of each device; a fixed index is right only by luck. Remove it"
    if key == "NCCL_IB_TC" and not roce:
        return "has a meaning on RoCE only; remove it"
    return ""
