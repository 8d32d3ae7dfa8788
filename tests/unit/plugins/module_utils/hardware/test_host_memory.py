# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The memory of the smallest NUMA node, and the available memory."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.host_memory import (
    available,
    smallest_numa_node,
)


def test_numa_nodes_without_memory_do_not_count_as_the_smallest(tmp_path: Path) -> None:
    assert smallest_numa_node(tmp_path) is None
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal:       16384000 kB\nMemFree:         1000 kB\n")
    assert smallest_numa_node(tmp_path) == 16000
    # Node 2 has no memory, like the unused NUMA nodes for GPU memory on Grace Hopper.
    for number, size in enumerate((8192000, 4096000, 0)):
        directory = tmp_path / f"sys/devices/system/node/node{number}"
        directory.mkdir(parents=True)
        (directory / "meminfo").write_text(f"Node {number} MemTotal:        {size} kB\nNode {number} MemFree: 5 kB\n")
    assert smallest_numa_node(tmp_path) == 4000


def test_the_available_memory_is_read_in_mib(tmp_path: Path) -> None:
    assert available(tmp_path) is None
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal:       16384000 kB\nMemAvailable:    2048000 kB\n")
    assert available(tmp_path) == 2000
