# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks whether models that are not published yet fit on the store's file system. Private to the collection."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ..core.problems import Problem
from ..core.sizes import GIB, human


def check_space(root: Path, missing: Mapping[str, int], reserve: int, free: int | None = None) -> list[Problem]:
    """Whether all missing files fit at once. `missing` by model, `reserve` and `free` in bytes. Returns the problem."""
    coming = {name: size for name, size in missing.items() if size}
    if not coming:
        return []
    if free is None:
        free = free_bytes(root)
    wanted = sum(coming.values())
    if free >= wanted + reserve:
        return []
    parts = ", ".join(f"{name} {human(size)}" for name, size in coming.items())
    message = (
        f"not enough space: needed {(wanted + reserve) / GIB:.2f} GiB ({parts}; the reserve and the image "
        f"{reserve / GIB:g} GiB), free {free / GIB:.2f} GiB on the file system of {existing(root)}: make room, "
        f"set model_store_path to a larger file system, or declare fewer models"
    )
    return [Problem(f"model_store_path ({root})", message)]


def free_bytes(path: Path) -> int:
    """Free bytes on the file system of a path, which need not exist yet."""
    status = os.statvfs(existing(path))
    return status.f_bavail * status.f_frsize


def same_file_system(path: Path, other: Path) -> bool:
    """Whether two paths, which need not exist yet, are on one file system."""
    return existing(path).stat().st_dev == existing(other).stat().st_dev


def existing(path: Path) -> Path:
    """The path, or the nearest directory above it that exists."""
    return next(candidate for candidate in [path, *path.parents] if candidate.exists())
