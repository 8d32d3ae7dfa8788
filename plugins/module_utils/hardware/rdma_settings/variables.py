# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator's variables for the RDMA network, checked without a machine. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from ...core.problems import Findings, is_integer, nearest
from ..pci_config import SIZES
from ..rdma.managers import MANAGERS
from .desired import FULL_MEMBER

ETHERNET, INFINIBAND, AUTO = "ethernet", "infiniband", "auto"

MTU, LEAST_MTU = 9000, 1280
"""Bytes: the default, and the least MTU of IPv6."""

FULL_MTU = 4200
"""Bytes: an Ethernet MTU with room for packets of 4096 bytes and their headers."""

PACKET_SIZES = (2048, 1024, 512, 256)
"""Bytes of RDMA packets below FULL_MTU."""

DATAGRAM_MTU = 2044
"""Bytes: the MTU of IP over InfiniBand that every subnet manager allows, in datagram mode."""

MODES = ("datagram", "connected")
IPOIB_MTU = {"datagram": 4092, "connected": 65520}
"""The largest MTU of IP over InfiniBand, by mode. Source: Documentation/infiniband/ipoib.rst of Linux."""

ECT = 2
"""The bit of the type of service that asks switches to mark packets in a congestion, ECT(0). Source: RFC 3168."""

RAIL_KEYS = ("pci", "netdev", "device")
"""The keys by which an entry of rails can name a port."""


def packet_size(mtu: int) -> int:
    """The bytes of an RDMA packet on an Ethernet device with an MTU."""
    if mtu >= FULL_MTU:
        return 4096
    return next((size for size in PACKET_SIZES if mtu >= size + 100), PACKET_SIZES[-1])


@dataclass(frozen=True)
class Wish:
    """The variables of the role `rdma`, without their prefix."""

    rails: str | Sequence[Mapping[str, str]] = AUTO
    link_layer: str = AUTO
    mtu: int = MTU
    addresses: Sequence[str] = ()
    subnets: Sequence[str] = ()
    host_index: int | None = None
    network_manager: str = AUTO
    same_subnet: str | bool = AUTO
    lossless_priority: int | None = 3
    dscp: int = 26
    cnp_dscp: int = 48
    cnp_priority: int = 6
    ets: Mapping[int, int] = field(default_factory=dict)
    trust: str = "dscp"
    ecn: str | bool = "unmanaged"
    roce_tos: int | None = None
    max_read_request: int | None = 4096
    relaxed_ordering: bool | None = True
    acs: str = "off"
    gpudirect: str = AUTO
    ipoib_mode: str | None = None
    partition_keys: Sequence[str] = ()
    subnet_manager: bool = False
    """Whether this node runs opensm."""

    @property
    def tos(self) -> int:
        """The type of service for connections by rdma_cm."""
        return self.dscp << 2 | ECT if self.roce_tos is None else self.roce_tos


CHOICES: Mapping[str, Sequence[object]] = {
    "link_layer": (AUTO, ETHERNET, INFINIBAND),
    "network_manager": (AUTO, *MANAGERS, "none"),
    "same_subnet": (AUTO, True, False),
    "trust": ("dscp", "pcp", "unmanaged"),
    "ecn": ("unmanaged", True, False),
    "acs": ("off", "unmanaged"),
    "gpudirect": (AUTO, "dma_buf", "peermem", "none"),
    "ipoib_mode": (None, *MODES),
    "relaxed_ordering": (None, True, False),
    "max_read_request": (None, *SIZES),
    "subnet_manager": (True, False),
}

RANGES: Mapping[str, tuple[int, int, bool]] = {
    "mtu": (LEAST_MTU, 65520, False),
    "host_index": (1, 2**32, True),
    "lossless_priority": (0, 7, True),
    "dscp": (0, 63, False),
    "cnp_dscp": (0, 63, False),
    "cnp_priority": (0, 7, False),
    "roce_tos": (0, 255, True),
}
"""The least and greatest number, and whether null is allowed."""

ETHERNET_ONLY = ("lossless_priority", "dscp", "cnp_dscp", "cnp_priority", "ets", "trust", "ecn", "roce_tos")
"""Without a meaning on InfiniBand, which has no loss, no DSCP and no rdma_cm defaults."""

INFINIBAND_ONLY = ("ipoib_mode", "partition_keys")


def of(raw: Mapping[str, Any], found: Findings) -> Wish:
    """The variables; one with an impossible value has its default. Adds all mistakes to `found`."""
    known = {entry.name for entry in fields(Wish)}
    values: dict[str, Any] = {}
    for key, value in raw.items():
        if key not in known:
            found.problem("rdma", f"unknown variable; {nearest(key, known)}", f"rdma_{key}")
        elif _valid(key, value, found):
            values[key] = value
    if "ets" in values:
        values["ets"] = {int(priority): share for priority, share in values["ets"].items()}
    wish = Wish(**values)
    _together(wish, found)
    return wish


def without_meaning(wish: Wish, layer: str) -> list[str]:
    """The variables that ask for something, but have no meaning on this link layer. Null and empty lists ask for
    nothing."""
    default = Wish()
    keys = ETHERNET_ONLY if layer == INFINIBAND else INFINIBAND_ONLY
    return [key for key in keys if getattr(wish, key) not in (None, [], getattr(default, key))]


def _valid(key: str, value: Any, found: Findings) -> bool:
    """Whether a single value is possible. Adds its mistake."""
    message = ""
    if key in CHOICES:
        if not any(value is choice or (value == choice and type(value) is type(choice)) for choice in CHOICES[key]):
            message = f"allowed are {', '.join(_shown(choice) for choice in CHOICES[key])}"
    elif key in RANGES:
        least, most, null = RANGES[key]
        if not (null and value is None) and not (is_integer(value) and least <= value <= most):
            message = f"must be an integer from {least} to {most}" + (", or null" if null else "")
            if key in ("dscp", "cnp_dscp") and is_integer(value) and 63 < value <= 255:
                message = f"that is a traffic class; the DSCP is {value >> 2}"
    else:
        message = _LISTS[key](value)
    if message:
        found.problem("rdma", message, f"rdma_{key}", value)
    return not message


def _together(wish: Wish, found: Findings) -> None:
    """The mistakes of values that do not fit each other."""
    if wish.lossless_priority == 0:
        found.problem(
            "rdma",
            "0 is the priority of all other traffic, which must not be lossless; set 1 to 7, or null for no QoS",
            "rdma_lossless_priority",
            0,
        )
    if wish.lossless_priority is not None:
        if wish.dscp == 0 and wish.trust == "dscp":
            message = "0 is the DSCP of all other traffic, which then is lossless, too; set another, such as 26"
            found.warning("rdma", message, "rdma_dscp", 0)
        if wish.dscp == wish.cnp_dscp:
            found.problem("rdma", "equals rdma_dscp; give congestion packets a DSCP of their own", "rdma_cnp_dscp")
        if wish.cnp_priority == wish.lossless_priority:
            other = 7 if wish.lossless_priority == 6 else 6
            found.problem(
                "rdma",
                "equals rdma_lossless_priority; a pause would also stop the packets that end the congestion; set "
                f"{other}",
                "rdma_cnp_priority",
                wish.cnp_priority,
            )
        if wish.trust == "pcp":
            found.problem(
                "rdma",
                "priorities in VLAN tags need VLANs on the rails, which this role does not create; set dscp",
                "rdma_trust",
                "pcp",
            )
    else:
        # Without a lossless priority, this role leaves all settings of priorities alone.
        for key, chosen in (("ets", bool(wish.ets)), ("ecn", wish.ecn != "unmanaged")):
            if chosen:
                found.problem(
                    "rdma",
                    f"has no effect while rdma_lossless_priority is null; set a priority, or remove rdma_{key}",
                    f"rdma_{key}",
                    getattr(wish, key),
                )
    total = sum(wish.ets.values())
    if wish.ets and total != 100:
        found.problem("rdma", f"the shares sum up to {total}; they must be 100 percent", "rdma_ets", dict(wish.ets))
    if wish.ets and wish.lossless_priority is not None and not wish.ets.get(wish.lossless_priority):
        found.problem("rdma", f"has no share for the lossless priority {wish.lossless_priority}", "rdma_ets")
    if wish.addresses and wish.subnets:
        found.problem("rdma", "set either rdma_addresses or rdma_subnets, not both", "rdma_subnets")
    if wish.subnets and wish.host_index is None:
        found.problem(
            "rdma", "rdma_subnets needs the number of the host in each subnet: set it in host_vars", "rdma_host_index"
        )


def _rails(value: Any) -> str:
    if value == AUTO:
        return ""
    allowed = f"allowed are auto, or a list of entries with one of the keys {', '.join(RAIL_KEYS)}"
    if not isinstance(value, (list, tuple)) or not value:
        return allowed
    for entry in value:
        if not isinstance(entry, Mapping) or len(entry) != 1 or next(iter(entry)) not in RAIL_KEYS:
            return f"{entry!r}: {allowed}"
        if not isinstance(next(iter(entry.values())), str):
            return f"{entry!r}: the name must be a text in quotes"
    return ""


def _texts(value: Any) -> str:
    good = isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)
    return "" if good else "must be a list of texts, one for each rail"


def _keys(value: Any) -> str:
    if _texts(value):
        return "must be a list of texts such as '0x8001'"
    for item in value:
        try:
            key = int(item, 16)
        except ValueError:
            key = 0
        if not 0 < key <= 0xFFFF:
            return f"{item!r} is not a partition key from 0x0001 to 0xffff"
        if not key & ~FULL_MEMBER:
            return f"{item!r} is not a partition key: it only has the bit of full members; give the key of a partition"
    return ""


def _ets(value: Any) -> str:
    if not isinstance(value, Mapping):
        return "must map priorities to percent, such as {3: 50, 0: 50}"
    for priority, share in value.items():
        if str(priority) not in map(str, range(8)) or not is_integer(share) or not 0 <= share <= 100:
            return f"{priority}: {share}: priorities are 0 to 7, shares 0 to 100 percent"
    return ""


_LISTS = {"rails": _rails, "addresses": _texts, "subnets": _texts, "partition_keys": _keys, "ets": _ets}


def _shown(choice: object) -> str:
    if choice is None:
        return "null"
    return str(choice).lower() if isinstance(choice, bool) else str(choice)
