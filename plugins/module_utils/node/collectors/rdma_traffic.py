# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of the traffic of RDMA ports and of their priorities. Private to the collection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...core import sysfs
from ...core.exposition import Help, Samples
from ...core.paths import Paths
from ...hardware.rdma import priorities
from ...hardware.rdma.devices import CLASS
from ...hardware.rdma_settings import boot, rails
from ...hardware.rdma_settings.desired import Rail

WORD = 4
"""Bytes in a unit of the counters of data. Source: Documentation/ABI/stable/sysfs-class-infiniband of Linux."""

DIRECTIONS = {"sent": "port_xmit_data", "received": "port_rcv_data"}

HELP: Help = {
    "inference_rdma_port_bytes_total": "Bytes of RDMA that the port has sent or received.",
    "inference_rdma_priority_bytes_total": "Bytes of a priority that the port's network device has sent or received.",
    "inference_rdma_priority_pauses_total": "Pauses of a priority (PFC) that were sent or received.",
    "inference_rdma_priority_discards_total": "Packets of a priority that were lost, since there was no room.",
    "inference_rdma_port_discards_total": "Packets that the port's network device lost, since it had no room.",
    "inference_rdma_rail": "1 for a port that is a rail, by the number of the rail.",
    "inference_rdma_lossless_priority": "1 for the lossless priority of a rail.",
}

Read = Callable[[str], dict[str, int]]


def render(paths: Paths, facts: Mapping[str, Any], samples: Samples, read: Read | None = None) -> None:
    """Add the traffic of all ports. `read` reads the counters of a network device; None leaves them out."""
    recorded = _rails(paths)
    for port in rails.ports(facts):
        where = {"device": port.device, "port": str(port.number)}
        counters = paths.root / CLASS / port.device / f"ports/{port.number}/counters"
        for direction, name in DIRECTIONS.items():
            value = sysfs.read_int(counters / name)
            if value is not None:
                samples.add("inference_rdma_port_bytes_total", value * WORD, **where, direction=direction)
        if read is not None and port.netdev:
            _netdev(read(port.netdev), where, samples)
        if port.key in recorded:
            number, rail = recorded[port.key]
            samples.add("inference_rdma_rail", 1, **where, rail=str(number))
            for priority in rail.pfc or ():
                samples.add("inference_rdma_lossless_priority", 1, **where, priority=str(priority))


def _netdev(found: Mapping[str, int], where: Mapping[str, str], samples: Samples) -> None:
    """The counters of a network device."""
    kinds = priorities.priorities(found)
    for kind in ("bytes", "pauses"):
        for direction, values in kinds.get(kind, {}).items():
            for priority, value in values.items():
                name = f"inference_rdma_priority_{kind}_total"
                samples.add(name, value, **where, priority=priority, direction=direction)
    for priority, value in kinds.get("discards", {}).get("received", {}).items():
        samples.add("inference_rdma_priority_discards_total", value, **where, priority=priority)
    discards = priorities.discards(found)
    if discards is not None:
        samples.add("inference_rdma_port_discards_total", discards, **where)


def _rails(paths: Paths) -> dict[str, tuple[int, Rail]]:
    """The recorded rails with their numbers, by key. A damaged record has none: the doctor reports it."""
    try:
        wanted = boot.read(paths)
    except (ValueError, OSError):
        return {}
    return {rail.key: (number, rail) for number, rail in enumerate(wanted.rails)} if wanted else {}
