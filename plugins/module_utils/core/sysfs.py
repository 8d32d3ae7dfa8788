# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads attributes of sysfs. Any attribute can be missing or unreadable. Private to the collection."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

NETDEVS = "sys/class/net"
"""A directory for each network device."""

LIMIT = 1 << 16
"""The most bytes to read. The text of an attribute has at most one page (Documentation/filesystems/sysfs.rst)."""


def read_bytes(path: Path | str, limit: int = LIMIT, directory: int | None = None) -> bytes | None:
    """The first bytes of an attribute; None if it is missing or unreadable.

    With `directory`, a descriptor of an open directory, the path is relative to it.
    """
    try:
        # No file object: a node has thousands of attributes, and a file object costs more than the read. A file object
        # would also read ahead, and with some attributes each read byte accesses a hardware register.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
        try:
            return os.read(handle, limit)
        finally:
            os.close(handle)
    # EINVAL, EIO and ENODEV are usual errors of a driver whose hardware lacks the value or is gone. ValueError: a path
    # with a null byte, which came from another attribute.
    except (OSError, ValueError):
        return None


def read(path: Path | str, directory: int | None = None) -> str | None:
    """An attribute's text without surrounding white space; None if it is unreadable."""
    data = read_bytes(path, directory=directory)
    return None if data is None else data.decode("utf-8", errors="replace").strip()


def read_int(path: Path | str, base: int = 10) -> int | None:
    """An attribute's number; None if it is unreadable or not a number. Base 16 accepts a leading 0x."""
    return integer(read(path), base)


def integer(text: str | None, base: int = 10) -> int | None:
    """Convert a text to a number; None if it is not a number."""
    try:
        return int(text or "", base)
    except ValueError:
        return None


def read_each(directory: Path, unwanted: Callable[[str], object] = lambda name: False) -> dict[str, str | None]:
    """The texts of a directory's attributes by name, without unwanted names. Empty if there is no directory.

    For large directories: to open each attribute by its full path would take twice as long.
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
    """The last part of a link's target, even of a missing target; None if the path is not a link."""
    try:
        return path.readlink().name
    except OSError:
        return None


def names(directory: Path) -> list[str]:
    """The names in a directory, sorted. Empty if there is no directory."""
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def numbers(directory: Path) -> list[int]:
    """The names in a directory that are numbers, such as port numbers, as sorted integers."""
    return sorted(int(name) for name in names(directory) if re.fullmatch("[0-9]{1,9}", name))
