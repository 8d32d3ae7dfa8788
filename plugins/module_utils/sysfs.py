# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads attributes of sysfs, each on its own: any of them may be missing or refuse. Private to the collection."""

from __future__ import annotations

import os
import re
from pathlib import Path

LIMIT = 1 << 16
"""Bytes that are read at most; an attribute has one page. Source: Documentation/filesystems/sysfs.rst."""


def read_bytes(path: Path | str, limit: int = LIMIT) -> bytes | None:
    """The first bytes of an attribute, or None where the kernel has or gives none."""
    try:
        # A node has thousands of attributes, and a file object costs more than the read. Nor may one read ahead: the
        # driver is asked for as much as is read, registers of hardware in some attributes.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(handle, limit)
        finally:
            os.close(handle)
    # EINVAL, EIO and ENODEV are usual answers of a driver whose hardware does not know, or is gone; ValueError is for a
    # path with a null byte, out of another attribute.
    except (OSError, ValueError):
        return None


def read(path: Path | str) -> str | None:
    """An attribute's text without white space around it, or None."""
    data = read_bytes(path)
    return None if data is None else data.decode("utf-8", errors="replace").strip()


def read_int(path: Path | str, base: int = 10) -> int | None:
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


def names(directory: Path) -> list[str]:
    """What a directory holds; empty where it is not there."""
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def numbers(directory: Path) -> list[int]:
    """The numbers that are names in a directory, as those of ports are."""
    return sorted(int(name) for name in names(directory) if re.fullmatch("[0-9]{1,9}", name))
