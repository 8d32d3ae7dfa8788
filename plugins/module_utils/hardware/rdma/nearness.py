# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes the distance between an RDMA device and the GPUs in the PCI tree. Private to the collection."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from .. import pci

DISTANCES = PIX, PXB, PHB, NODE, SYS = "PIX", "PXB", "PHB", "NODE", "SYS"
"""From near to far: at most one PCIe switch, several switches, a CPU's root complex, several root complexes of a NUMA
node, several NUMA nodes. Source: the legend of `nvidia-smi topo -m`."""

BELOW_SWITCHES = (PIX, PXB)
"""Distances at which packets need not pass the CPU. By default, NCCL uses GPUDirect at these distances. Source:
ncclTopoCheckGdr of NCCL, graph/paths.cc."""


def distance(one: pci.Device, other: pci.Device, one_node: bool = False) -> str | None:
    """The distance of two PCI functions; None if unknown. `one_node` means that the machine has only one NUMA node.
    Then the nodes that the firmware reports do not count.

    Without the PCI tree, the NUMA nodes decide, so functions at distance NODE may be nearer.
    """
    if one.upstream and other.upstream and one.upstream[0] == other.upstream[0]:
        return _below_one_root(one.upstream, other.upstream)
    if one_node:
        return NODE
    if one.numa_node is None or other.numa_node is None:
        return None
    return NODE if one.numa_node == other.numa_node else SYS


def nearest(device: pci.Device, gpus: Sequence[pci.Device], one_node: bool = False) -> tuple[list[str], str | None]:
    """The addresses of the nearest GPUs, and their distance. Empty and None if all distances are unknown."""
    known = {gpu.address: between for gpu in gpus if (between := distance(device, gpu, one_node))}
    best = min(known.values(), key=DISTANCES.index, default=None)
    return [address for address, between in known.items() if between == best], best


def _below_one_root(one: tuple[str, ...], other: tuple[str, ...]) -> str:
    """The distance of two functions below the same root complex.

    A switch consists of one upstream bridge and one bridge for each downstream port. So two functions at one switch
    differ only in the last bridge.
    """
    pairs = zip(one, other, strict=False)
    common = sum(1 for _pair in takewhile(lambda pair: pair[0] == pair[1], pairs))
    if common == 1:
        return PHB
    return PIX if max(len(one), len(other)) - common <= 1 else PXB
