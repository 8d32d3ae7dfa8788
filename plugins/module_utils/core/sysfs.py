# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads attributes of sysfs, each on its own: any of them may be missing or refuse. Private to the collection."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

LIMIT = 1 << 16
"""Bytes that are read at most; an attribute has one page. Source: Documentation/filesystems/sysfs.rst."""


def read_bytes(path: Path | str, limit: int = LIMIT, directory: int | None = None) -> bytes | None:
    """The first bytes of an attribute, or None where the kernel has or gives none. The path may be relative to an open
    directory.
    """
    try:
        # A node has thousands of attributes, and a file object costs more than the read. Nor may one read ahead: the
        # driver is asked for as much as is read, registers of hardware in some attributes.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
        try:
            return os.read(handle, limit)
        finally:
            os.close(handle)
    # EINVAL, EIO and ENODEV are usual answers of a driver whose hardware does not know, or is gone; ValueError is for a
    # path with a null byte, out of another attribute.
    except (OSError, ValueError):
        return None


def read(path: Path | str, directory: int | None = None) -> str | None:
    """An attribute's text without white space around it, or None."""
    data = read_bytes(path, directory=directory)
    return None if data is None else data.decode("utf-8", errors="replace").strip()


def read_int(path: Path | str, base: int = 10) -> int | None:
    """An attribute's number, or None, also where it holds none. Base 16 takes a leading 0x."""
    return integer(read(path), base)


def integer(text: str | None, base: int = 10) -> int | None:
    """The number that a text is, or None."""
    try:
        return int(text or "", base)
    except ValueError:
        return None


def read_each(directory: Path, unwanted: Callable[[str], object] = lambda name: False) -> dict[str, str | None]:
    """The text of the attributes of a directory by name, without those unwanted; empty where it is not there.

    For large directories: opening each by its whole path takes twice as long.
    """
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return {}
    try:
        return {name: read(name, handle) for name in os.listdir(handle) if not unwanted(name)}
    finally:
        os.close(handle)


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
