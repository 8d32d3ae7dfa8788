# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The memory of a machine's processors. Private to the collection."""

from __future__ import annotations

import re
from pathlib import Path

_TOTAL = re.compile(r"MemTotal:\s+(\d+) kB")
_AVAILABLE = re.compile(r"MemAvailable:\s+(\d+) kB")


def smallest_numa_node(root: Path) -> int | None:
    """MiB of the smallest NUMA node with memory, because each process of a CPU engine is bound to one NUMA node. If the
    machine shows no such NUMA node, MiB of the machine. None if unknown.

    Source: proc_meminfo(5). meminfo of a NUMA node has the same lines; its kB are KiB.
    """
    nodes = [_total(path) for path in root.glob("sys/devices/system/node/node[0-9]*/meminfo")]
    return min(filter(None, nodes), default=None) or _total(root / "proc/meminfo")


def total(root: Path) -> int | None:
    """MiB of the machine's memory; None if unknown."""
    return _total(root / "proc/meminfo")


def available(root: Path) -> int | None:
    """MiB that programs can still use without swapping; None if unknown. Source: proc_meminfo(5), MemAvailable."""
    return _read(root / "proc/meminfo", _AVAILABLE)


def _total(path: Path) -> int | None:
    return _read(path, _TOTAL)


def _read(path: Path, pattern: re.Pattern[str]) -> int | None:
    try:
        found = pattern.search(path.read_text(encoding="ascii", errors="replace"))
    except OSError:
        return None
    return int(found[1]) >> 10 if found else None
