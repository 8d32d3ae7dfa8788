# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the GIDs of a port, and chooses the right one. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core import sysfs

IB, ROCE_V1, ROCE_V2 = "IB", "RoCE v1", "RoCE v2"

GID = re.compile("(?:[0-9a-f]{4}:){7}[0-9a-f]{4}")
IPV4_MAPPED = re.compile("(?:0000:){5}ffff:([0-9a-f]{2})([0-9a-f]{2}):([0-9a-f]{2})([0-9a-f]{2})")
"""A GID made from an IPv4 address. Source: RFC 4291, 2.5.5.2; roce_gid_mgmt.c of Linux."""


@dataclass(frozen=True)
class Gid:
    """An entry of a port's GID table."""

    index: int
    gid: str
    type: str | None
    """IB, RoCE v1 or RoCE v2; None for iWARP, whose GIDs have no type, and for kernels that do not show it."""
    netdev: str | None

    @property
    def ipv4(self) -> str | None:
        """The IPv4 address from which the GID is made; None for another GID."""
        match = IPV4_MAPPED.fullmatch(self.gid)
        return ".".join(str(int(part, 16)) for part in match.groups()) if match else None

    @property
    def link_local(self) -> bool:
        """Whether no router forwards packets to the GID: fe80::/10 and 169.254.0.0/16."""
        return 0xFE80 <= int(self.gid[:4], 16) <= 0xFEBF or (self.ipv4 or "").startswith("169.254.")


@dataclass(frozen=True)
class Choice:
    """The GID index to use, None if there is none, and the reason."""

    index: int | None
    reason: str


def gids(port: Path, link_layer: str | None, node_type: str | None) -> list[Gid]:
    """The used entries of a port's GID table in sysfs, by index. Unused entries are zeros, on InfiniBand after a subnet
    prefix.
    """
    found = []
    for name, text in sysfs.read_each(port / "gids").items():
        gid = (text or "").lower()
        if name.isdecimal() and GID.fullmatch(gid) and gid[20:].strip("0:"):
            kind = sysfs.read(port / f"gid_attrs/types/{name}")
            found.append(Gid(int(name), gid, _type(kind, link_layer, node_type), netdev(port, int(name))))
    return sorted(found, key=lambda entry: entry.index)


def netdev(port: Path, index: int) -> str | None:
    """The network device of an entry. None on InfiniBand, and for unused entries."""
    return sysfs.read(port / f"gid_attrs/ndevs/{index}") or None


def recommended(entries: Sequence[Gid], link_layer: str | None, device: str | None) -> Choice:
    """The index of a GID of RoCE v2 with an IPv4 address: if possible, an address that routers forward, and one of the
    port's own network device. Routers forward RoCE v2, and every kernel makes such a GID from an IPv4 address.

    The index depends on the order in which addresses were added: 3 after one boot may be 5 after the next.
    """
    if link_layer == "InfiniBand":
        return Choice(None, "InfiniBand: only RoCE needs a GID index")
    usable = [entry for entry in entries if entry.type == ROCE_V2 and entry.ipv4]
    if not usable:
        where = device or "the network device"
        return Choice(None, f"no RoCE v2 GID with IPv4: {where} {_instead(entries)}")
    best = min(usable, key=lambda entry: (entry.link_local, entry.netdev != device, entry.index))
    return Choice(best.index, f"RoCE v2 with IPv4 {best.ipv4}" + (f" of {best.netdev}" if best.netdev else ""))


def _instead(entries: Sequence[Gid]) -> str:
    """Why a port with these GIDs lacks the right one."""
    if any(entry.type == ROCE_V2 for entry in entries):
        return "has no IPv4 address"
    if any(entry.type == ROCE_V1 for entry in entries):
        return "has RoCE v1 only"
    if entries:
        return "has no GID that is known to be RoCE"
    return "has no GID at all"


def _type(text: str | None, link_layer: str | None, node_type: str | None) -> str | None:
    """The type of an entry. The kernel's text "IB/RoCE v1" means IB on InfiniBand and RoCE v1 on Ethernet."""
    if link_layer == "InfiniBand":
        return IB
    if node_type not in (None, "CA"):
        return None
    if text and ROCE_V2.casefold() in text.casefold():
        return ROCE_V2
    return ROCE_V1 if text and link_layer and ROCE_V1.casefold() in text.casefold() else None
