# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The subnet manager of InfiniBand, and its partitions. Private to the collection; pure."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.problems import Findings
from .desired import FULL_MEMBER, full_key
from .files import HEADER
from .rails import Port
from .variables import DATAGRAM_MTU, INFINIBAND, MTU, Wish

PARTITIONS = "/etc/opensm/partitions.conf"

DEFAULT_PARTITION = 0x7FFF

GROUP_MTU = 5
"""The MTU of a multicast group: 5 stands for 4096 bytes in the InfiniBand specification. Source: opensm(8)."""


def check(wish: Wish, found: Sequence[Port], chosen: Sequence[Port], foreign: bool, findings: Findings) -> None:
    """Add mistakes and warnings. `foreign`: whether opensm has a file of partitions that is not of this collection."""
    ports = [port for port in found if port.layer == INFINIBAND]
    if wish.subnet_manager:
        _manager(wish, ports, foreign, findings)
        return
    for port in chosen:
        table = {full_key(int(key, 16)) for key in port.facts.get("partition_keys") or ()}
        lacking = [key for key in wish.partition_keys if full_key(int(key, 16)) not in table]
        if table and lacking:
            findings.warning(
                "rdma",
                f"the subnet manager has not made {port.name} a member of {', '.join(lacking)}; add the port there",
                "rdma_partition_keys",
            )


def _manager(wish: Wish, ports: Sequence[Port], foreign: bool, findings: Findings) -> None:
    """Add the mistakes and warnings of a node that runs opensm."""

    def warn(message: str) -> None:
        findings.warning("rdma", message, "rdma_subnet_manager", True)

    if not ports:
        findings.problem("rdma", "this node has no port of InfiniBand; set false", "rdma_subnet_manager", True)
    others = {port.facts["sm_lid"] for port in ports} - {0, None, *(port.facts["lid"] for port in ports)}
    if others:
        lids = ", ".join(map(str, sorted(others)))
        warn(f"the subnet has a manager already (LID {lids}); only the manager with the highest priority serves")
    if foreign and texts(wish):
        warn(
            f"{PARTITIONS} is not of this collection, and remains; give it the partitions and the MTU of the rails, "
            "or remove it"
        )


def texts(wish: Wish) -> dict[str, str]:
    """The partitions of opensm, with all ports of the subnet as full members; nothing if this node does not run opensm,
    or if opensm's default is enough.

    If a file does not name the default partition, all ports except opensm's own are only limited members of it.
    """
    # Connected mode does not depend on the multicast group.
    more = wish.ipoib_mode != "connected" and wish.mtu != MTU and wish.mtu > DATAGRAM_MTU
    if not wish.subnet_manager or not (wish.partition_keys or more):
        return {}
    # opensm takes the lower 15 bits of a key.
    keys = {"Default": DEFAULT_PARTITION}
    keys.update((f"key{full_key(int(key, 16))[2:]}", int(key, 16) & ~FULL_MEMBER) for key in wish.partition_keys)
    flags = f"ipoib, mtu={GROUP_MTU}" if more else "ipoib"
    return {PARTITIONS: HEADER + "".join(f"{name}=0x{key:04x}, {flags} : ALL=full ;\n" for name, key in keys.items())}
