# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How near an RDMA device is to the GPUs, by the PCI tree. Private to the collection."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from .. import pci

DISTANCES = PIX, PXB, PHB, NODE, SYS = "PIX", "PXB", "PHB", "NODE", "SYS"
"""From near to far: one PCIe switch at most, several, the root complex of a CPU, several of one NUMA node, several NUMA
nodes. Source: the legend of `nvidia-smi topo -m`."""


def distance(one: pci.Device, other: pci.Device, one_node: bool = False) -> str | None:
    """What lies between two PCI functions, None where that is not known. `one_node` says that there is no other NUMA
    node, whatever the firmware tells of the functions.

    Where the tree is not known the NUMA nodes decide, so that what is called NODE may be nearer.
    """
    if one.upstream and other.upstream and one.upstream[0] == other.upstream[0]:
        return _below_one_root(one.upstream, other.upstream)
    if one_node:
        return NODE
    if one.numa_node is None or other.numa_node is None:
        return None
    return NODE if one.numa_node == other.numa_node else SYS


def nearest(device: pci.Device, gpus: Sequence[pci.Device], one_node: bool = False) -> tuple[list[str], str | None]:
    """The addresses of the GPUs that no other is nearer than, and their distance. None of them where it is unknown."""
    known = {gpu.address: between for gpu in gpus if (between := distance(device, gpu, one_node))}
    best = min(known.values(), key=DISTANCES.index, default=None)
    return [address for address, between in known.items() if between == best], best


def _below_one_root(one: tuple[str, ...], other: tuple[str, ...]) -> str:
    """The distance of functions below bridges that begin at the same root complex.

    A switch is one bridge up and one bridge for each of its ports down: two functions of one switch differ in the last
    bridge only.
    """
    pairs = zip(one, other, strict=False)
    common = sum(1 for _pair in takewhile(lambda pair: pair[0] == pair[1], pairs))
    if common == 1:
        return PHB
    return PIX if max(len(one), len(other)) - common <= 1 else PXB
