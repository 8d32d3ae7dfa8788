# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads attributes of sysfs, each on its own: any of them may be missing or refuse. Private to the collection."""

from __future__ import annotations

from pathlib import Path

LIMIT = 1 << 16
"""Bytes that are read at most; an attribute has one page. Source: Documentation/filesystems/sysfs.rst."""


def read_bytes(path: Path, limit: int = LIMIT) -> bytes | None:
    """The first bytes of an attribute, or None where the kernel has or gives none."""
    try:
        # Unbuffered, for the driver is asked for as much as is read: registers of hardware, in some attributes.
        with open(path, "rb", buffering=0) as file:
            return file.read(limit)
    # EINVAL, EIO and ENODEV are usual answers of a driver whose hardware does not know, or is gone.
    except OSError:
        return None


def read(path: Path) -> str | None:
    """An attribute's text without white space around it, or None."""
    data = read_bytes(path)
    return None if data is None else data.decode("utf-8", errors="replace").strip()


def read_int(path: Path, base: int = 10) -> int | None:
    """An attribute's number, or None, also where it holds none. Base 16 takes a leading 0x."""
    try:
        return int(read(path) or "", base)
    except ValueError:
        return None


def link_name(path: Path) -> str | None:
    """The last part of what a link points to, be it there or not; None for what is no link."""
    try:
        return path.readlink().name
    except OSError:
        return None
