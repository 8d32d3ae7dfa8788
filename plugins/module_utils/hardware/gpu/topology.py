# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the matrix of `nvidia-smi topo -m`: connections between GPUs, and between GPUs and NICs. Private to the
collection."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .values import word

ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
COLUMNS = {"cpu_affinity": r"CPU\s+Affinity", "numa_affinity": r"NUMA\s+Affinity", "gpu_numa_id": r"GPU\s+NUMA\s+ID"}
DEVICE = re.compile(r"(?:GPU|NIC)[0-9]{1,4}")
GPU = re.compile(r"GPU([0-9]{1,4})")
LINK = re.compile(r"NV[0-9]+|SYS|NODE|PHB|PXB|PIX|PSB|SOC|X")
CELL = re.compile(r"[A-Z][A-Z0-9]*")
LEGEND = re.compile(r"\s*(NIC[0-9]+):\s*(\S+)\s*")

DISTANCES = ("PIX", "PXB", "PHB", "NODE", "SYS", "SOC")
"""Connections from a GPU to a NIC, the nearest first: one PCIe bridge, several bridges, the host bridge, several host
bridges of a NUMA node, another NUMA node (SOC in old versions). Source: the legend of the command."""


@dataclass
class TopologyGpu:
    """A GPU's row: near CPUs and NUMA nodes as lists of the kernel, and the nearest NICs."""

    index: int
    pci_bus_id: str | None = None
    cpu_affinity: str | None = None
    numa_affinity: str | None = None
    gpu_numa_id: str | None = None
    nearest_nics: list[str] = field(default_factory=list)


@dataclass
class TopologyNic:
    """A NIC's column, and the name of its RDMA device."""

    name: str
    device: str | None


@dataclass
class Topology:
    """The matrix: `links["GPU0"]["GPU1"]` is NV18, PIX, … Unreadable rows are left out."""

    gpus: list[TopologyGpu] = field(default_factory=list)
    nics: list[TopologyNic] = field(default_factory=list)
    links: dict[str, dict[str, str]] = field(default_factory=dict)
    all_nvlink: bool | None = None
    """Whether NVLink connects all pairs of GPUs; None for a single GPU, and if rows are missing."""


def parse(text: str) -> Topology | None:
    """Read a matrix; None if there is none."""
    lines = ANSI.sub("", text).splitlines()
    header = next((i for i, line in enumerate(lines) if _is_header(line)), None)
    if header is None:
        return None
    names, columns = _header(lines[header])
    legend = {match[1]: match[2] for match in map(LEGEND.fullmatch, lines) if match}
    topology = Topology(
        nics=[
            # In older versions, the column has the name of the device.
            TopologyNic(name, legend.get(name) if DEVICE.fullmatch(name) else name)
            for name in names
            if not GPU.fullmatch(name)
        ]
    )
    for line in lines[header + 1 :]:
        name, _space, rest = line.strip().partition("\t") if "\t" in line else line.strip().partition(" ")
        if name not in names or name in topology.links:
            continue
        row = _links(name, names, rest)
        if row is None:
            continue
        topology.links[name] = row[0]
        if match := GPU.fullmatch(name):
            affinity = _affinity(row[1], columns)
            topology.gpus.append(
                TopologyGpu(
                    index=int(match[1]),
                    cpu_affinity=affinity.get("cpu_affinity"),
                    numa_affinity=affinity.get("numa_affinity"),
                    gpu_numa_id=affinity.get("gpu_numa_id"),
                    nearest_nics=_nearest(row[0], topology.nics),
                )
            )
    if not topology.links:
        return None
    topology.all_nvlink = _all_nvlink([name for name in names if GPU.fullmatch(name)], topology.links)
    return topology


def _is_header(line: str) -> bool:
    """Whether a line is the header: it names GPU0, but is not GPU0's row, which has an X."""
    words = line.split()
    return "GPU0" in words and "X" not in words


def _header(line: str) -> tuple[list[str], list[str]]:
    """The names of the devices, and of the columns after them."""
    starts = {match.start(): key for key, known in COLUMNS.items() if (match := re.search(known, line))}
    devices = line[: min(starts, default=len(line))]
    return _split(devices, DEVICE), [starts[start] for start in sorted(starts)]


def _split(text: str, part: re.Pattern[str]) -> list[str]:
    """Words. Splits joined names, as NIC8NIC9, if a tab between them was lost."""
    words: list[str] = []
    for one in text.split():
        joined = part.findall(one)
        words += joined if "".join(joined) == one else [one]
    return words


def _links(name: str, names: list[str], text: str) -> tuple[dict[str, str], str] | None:
    """A device's connections, and the columns after them; None for an incomplete or shifted row."""
    cells: list[str] = []
    position = 0
    for match in re.finditer(r"\S+", text):
        if len(cells) >= len(names):
            break
        cells += _split(match[0], LINK)
        position = match.end()
    if len(cells) != len(names) or cells[names.index(name)] != "X" or not all(map(CELL.fullmatch, cells)):
        return None
    return {other: cell for other, cell in zip(names, cells, strict=True) if other != name}, text[position:]


def _affinity(rest: str, columns: list[str]) -> dict[str, str | None]:
    """The columns after the connections. Any may be empty, as in a container."""
    found = rest.split()
    if "\t" in rest and len(found) < len(columns):
        cells = [cell.strip() for cell in rest.strip(" \r\n").split("\t")[1:]]
        # Rows have one tab more before the last column than the header.
        found = [*cells[: len(columns) - 1], cells[-1]] if len(cells) >= len(columns) else []
    if len(found) != len(columns):
        return {}
    return {column: word(cell) for column, cell in zip(columns, found, strict=True)}


def _nearest(links: dict[str, str], nics: list[TopologyNic]) -> list[str]:
    """The NICs at the least distance, by the name of the device if known."""
    distances = {
        nic.device or nic.name: DISTANCES.index(links[nic.name]) for nic in nics if links[nic.name] in DISTANCES
    }
    least = min(distances.values(), default=None)
    return [name for name, distance in distances.items() if distance == least]


def _all_nvlink(gpus: list[str], links: dict[str, dict[str, str]]) -> bool | None:
    if len(gpus) < 2 or any(gpu not in links for gpu in gpus):
        return None
    return all(links[one][other].startswith("NV") for one in gpus for other in gpus if one != other)
