# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Creates directories on a file system where users can also write. Private to the collection."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

Identity = tuple[int, int, int]
"""Owner, group and mode."""


class DirectoryError(Exception):
    """A directory cannot be created as declared. The message says what to do."""


def identity(name: str, database: str) -> int:
    """The number of a user or a group. Raises DirectoryError."""
    if name.isdecimal():
        return int(name)
    try:
        return pwd.getpwnam(name).pw_uid if database == "passwd" else grp.getgrnam(name).gr_gid
    except KeyError:
        raise DirectoryError(
            f"{name!r} is not in the node's {database} database: create it first, or use a number"
        ) from None


def identify(root: str, path: str) -> Identity | None:
    """Owner, group and mode of a directory; None if it does not exist. Raises DirectoryError."""
    try:
        handle = open_below(root, path, create=False)
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(handle)
        return status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)
    finally:
        os.close(handle)


def make(root: str, path: str, wanted: Identity) -> None:
    """Create a directory, and set owner, group and mode. Raises DirectoryError."""
    owner, group, mode = wanted
    handle = open_below(root, path, create=True)
    try:
        os.fchown(handle, owner, group)
        os.fchmod(handle, mode)
    finally:
        os.close(handle)


def make_all(root: str, wanted: Iterable[tuple[str, Identity]]) -> None:
    """Create several directories in order. Raises DirectoryError."""
    for path, identity_wanted in wanted:
        make(root, path, identity_wanted)


def open_below(root: str, path: str, create: bool) -> int:
    """Open a directory below another one without following symbolic links. Returns the file descriptor.

    Raises DirectoryError and OSError.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(root, flags)
    for part in Path(path).parts:
        above = handle
        try:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=above)
            handle = os.open(part, flags, dir_fd=above)
        except NotADirectoryError:
            raise DirectoryError(
                f"{root}/{path}: {part} is a file or a symbolic link, not a directory: remove {part}"
            ) from None
        finally:
            os.close(above)
    return handle
