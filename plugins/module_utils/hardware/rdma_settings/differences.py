# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the desired settings of rails with the facts of a node. Private to the collection; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .desired import Desired, Rail
from .rails import Port

DISRUPTIVE = frozenset({"mtu", "pfc", "ipoib_mode"})
"""Settings whose change stops the traffic of a rail: mlx5 takes the link down for PFC, and makes its queues again for
the MTU. Source: mlx5e_dcbnl_ieee_setpfc and mlx5e_change_mtu of Linux."""


SHARED = "ets"
"""The algorithm of a traffic class with a share of the link."""


@dataclass(frozen=True)
class Difference:
    """A setting of a rail that differs from the desired one."""

    rail: int
    """The rail's number."""
    port: str
    """The port's name."""
    setting: str
    before: Any
    after: Any
    disruptive: bool = False
    """Whether the change stops the traffic of the rail."""

    def __str__(self) -> str:
        return f"rail {self.rail} ({self.port}): {self.setting}: {_shown(self.before)} -> {_shown(self.after)}"


@dataclass(frozen=True)
class State:
    """The present settings of a rail that rdma_facts does not have."""

    sysctls: Mapping[str, int | None]
    rule: bool | None = None
    """Whether packets from the rail's address leave by the rail; None if unknown."""
    ipoib_mode: str | None = None
    partition_keys: Sequence[str] | None = None
    """The keys of partitions with a network device on top of the rail's own; None without a network device."""


@dataclass(frozen=True)
class Comparison:
    """All differences, and what cannot be compared."""

    differences: list[Difference]
    unknown: list[str]
    """Settings whose value this machine does not show, so that they cannot be set either."""
    missing: list[str]
    """The keys of rails whose port does not exist."""


def compare(desired: Desired, found: Sequence[Port], states: Mapping[str, State]) -> Comparison:
    """Compare each rail with its port. `states` has further settings by the rails' keys."""
    ports = {port.key: port for port in found}
    differences: list[Difference] = []
    unknown: list[str] = []
    missing = []
    for number, rail in enumerate(desired.rails):
        port = ports.get(rail.key)
        if port is None:
            missing.append(rail.key)
            continue
        moves = False
        for setting, before, after in _pairs(rail, port, states.get(rail.key, State({}))):
            if before is None and setting in NEEDS_VALUE:
                unknown.append(f"rail {number} ({port.name}): {setting}: {_reason(setting, port)}")
            elif before != after:
                moves = moves or (setting == "address" and bool(before))
                # The rule of an address that changes waits with the address.
                disruptive = setting in DISRUPTIVE or (moves and setting in ("address", "rule"))
                differences.append(Difference(number, port.name, setting, before, after, disruptive))
    return Comparison(differences, unknown, missing)


NEEDS_VALUE: Mapping[str, str] = {
    "mtu": "the port has no network device",
    "address": "the addresses of the network device are not known",
    "pfc": "the driver of the network device has no DCB",
    "dscp": "the driver of the network device has no table of DSCPs",
    "ets": "the driver of the network device has no ETS",
    "cnp_dscp": "the driver shows no settings of congestion control",
    "cnp_priority": "the driver shows no settings of congestion control",
    "ecn": "the driver shows no settings of congestion control",
    "max_read_request": "the device is not on PCIe",
    "relaxed_ordering": "the device is not on PCIe",
    "ipoib_mode": "the port has no IP over InfiniBand",
    "partition_keys": "the port has no IP over InfiniBand",
    "rule": "the routing rules are not known",
}
"""Settings that can only be set where they can be read, and why a value is missing."""

OF_DCB = ("pfc", "dscp", "ets")
"""The settings that the program `dcb` reads."""


def _reason(setting: str, port: Port) -> str:
    """Why the value of a setting is missing."""
    failed = (port.facts.get("dcb") or {}).get("errors") if setting in OF_DCB else None
    return "; ".join(failed) if failed else NEEDS_VALUE[setting]


def _pairs(rail: Rail, port: Port, state: State) -> Iterator[tuple[str, Any, Any]]:
    """Name, present value and desired value of each setting that is not left alone."""
    facts = port.facts
    if rail.ipoib_mode is not None:
        yield "ipoib_mode", state.ipoib_mode, rail.ipoib_mode
    if rail.partition_keys:
        # Other partitions are the operator's.
        there = state.partition_keys
        present = None if there is None else [key for key in rail.partition_keys if key in there]
        yield "partition_keys", present, rail.partition_keys
    if rail.mtu is not None:
        yield "mtu", facts["netdev_mtu"], rail.mtu
    yield from _dcb(rail, facts.get("dcb"))
    if rail.address is not None:
        addresses = facts.get("netdev_addresses")
        ipv4 = None if addresses is None else [address for address in addresses if ":" not in address]
        yield "address", ipv4, [rail.address]
    for key, value in sorted((rail.sysctls or {}).items()):
        yield key, state.sysctls.get(key), value
    if rail.table is not None:
        yield "rule", state.rule, True
    if rail.rdma_cm_mode is not None:
        yield "rdma_cm_mode", facts.get("rdma_cm_mode"), rail.rdma_cm_mode
    if rail.rdma_cm_tos is not None:
        yield "rdma_cm_tos", facts.get("rdma_cm_tos"), rail.rdma_cm_tos
    congestion = facts.get("congestion") or {}
    for key in ("cnp_dscp", "cnp_priority"):
        if getattr(rail, key) is not None:
            yield key, congestion.get(key), getattr(rail, key)
    if rail.ecn is not None:
        enabled = congestion.get("ecn")
        yield "ecn", enabled, [rail.ecn_priority] if rail.ecn else []
    yield from _pcie(rail, port.device_facts.get("pcie"))


def _dcb(rail: Rail, dcb: Mapping[str, Any] | None) -> Iterator[tuple[str, Any, Any]]:
    """The settings of lossless Ethernet."""
    known = dcb or {}
    if rail.pfc is not None:
        yield "pfc", known.get("pfc"), rail.pfc
    if rail.dscp is not None:
        present = known.get("dscp")
        wanted = {int(dscp): priority for dscp, priority in rail.dscp.items()}
        # Through JSON, the keys of facts become texts.
        present = None if present is None else {int(dscp): priority for dscp, priority in present.items()}
        yield "dscp", None if present is None else {key: present.get(key) for key in wanted}, wanted
    if rail.bandwidth is not None:
        ets = known.get("ets")
        keys = ("willing", "bandwidth", "algorithms", "classes")
        wanted_ets = dict(zip(keys, (False, rail.bandwidth, rail.algorithms, rail.classes), strict=True))
        yield "ets", {key: ets[key] for key in keys} | {"bandwidth": _shares(rail, ets)} if ets else None, wanted_ets


def _shares(rail: Rail, ets: Mapping[str, Any]) -> list[int]:
    """The percent of each traffic class. A class without a share has the desired number: some drivers, such as mlx5,
    show 100 for it. Source: mlx5e_dcbnl_ieee_getets of Linux."""
    shown = zip(ets["bandwidth"], ets["algorithms"], rail.bandwidth or (), strict=False)
    return [percent if algorithm == SHARED else desired for percent, algorithm, desired in shown]


def _pcie(rail: Rail, pcie: Mapping[str, Any] | None) -> Iterator[tuple[str, Any, Any]]:
    known = pcie or {}
    if rail.max_read_request is not None:
        yield "max_read_request", known.get("max_read_request"), rail.max_read_request
    if rail.relaxed_ordering is not None:
        yield "relaxed_ordering", known.get("relaxed_ordering"), rail.relaxed_ordering
    if rail.acs_off:
        yield "acs_bridges", list(known.get("acs_bridges") or ()), []


def _shown(value: Any) -> str:
    if value is None:
        return "unset"
    if isinstance(value, dict):
        return ", ".join(f"{key}={_shown(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ",".join(map(str, value)) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
