# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Identifies the process of a playbook on its controller, and checks whether it has ended. Private to the collection.

A process id alone is not unique: the kernel uses it again, and each container has its own ids. Boot, PID namespace, id
and start time together are unique. Without /proc, the process is unknown.
"""

from __future__ import annotations

import os
from pathlib import Path

PROC = Path("/proc")


def of_this_run(proc: Path = PROC) -> str:
    """The process of the playbook whose worker calls this; empty if unknown. Form: BOOT:NAMESPACE:PID:START.

    A worker is a fork, and has its parent's command line.
    """
    pid = os.getpid()
    try:
        while (parent := int(_stat(proc, pid)[1])) and _command(proc, parent) == _command(proc, pid):
            pid = parent
        return f"{_here(proc)}:{pid}:{_began(proc, pid)}"
    except (OSError, ValueError, IndexError):
        return ""


def has_ended(process: str, proc: Path = PROC) -> bool:
    """Whether a process from `of_this_run` has certainly ended.

    False for a process of another machine, container or boot.
    """
    here, _colon, rest = process.rpartition(":")[0].rpartition(":")
    began = process.rpartition(":")[2]
    try:
        if not rest.isdecimal() or here != _here(proc):
            return False
    except OSError:
        return False
    try:
        return _began(proc, int(rest)) != began
    except (FileNotFoundError, ProcessLookupError):
        return True
    except (OSError, IndexError):
        return False


def _here(proc: Path) -> str:
    """Id of this boot and of this PID namespace. Raises OSError."""
    boot = (proc / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot}:{os.readlink(proc / 'self/ns/pid')}"


def _command(proc: Path, pid: int) -> bytes:
    return (proc / str(pid) / "cmdline").read_bytes()


def _began(proc: Path, pid: int) -> str:
    """Start time of a process in clock ticks since the boot. Raises OSError, IndexError."""
    return _stat(proc, pid)[19]


def _stat(proc: Path, pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the third on. The second can contain blanks and brackets. Source: proc(5)."""
    return (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
