# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model in an archive on a web server: fetched with resume, verified, unpacked. Private to the collection."""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import tarfile
import time
from pathlib import Path, PurePosixPath

from .transfer import CHUNK, Progress, TransferError, append, ask

PAUSE = 2.0
"""Seconds before a broken connection is tried again."""


def size(url: str) -> int:
    """The archive's size in bytes, as the server tells it. Raises TransferError."""
    try:
        with ask(url, {}, "HEAD") as answer:
            length = answer.headers.get("Content-Length")
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise TransferError(f"{url} cannot be reached from this node: {error}") from None
    if not length or not length.isdecimal():
        raise TransferError(f"{url}: the server does not tell how large it is (Content-Length)")
    return int(length)


def fetch(url: str, target: Path, total: int, seconds: float) -> Progress:
    """Bring more of an archive, until it is complete or the time is over. A broken connection goes on where it broke.

    Raises TransferError where not a byte came in all that time.
    """
    started = time.monotonic()
    before = _size(target)
    if before > total:
        # Another archive under the same name, or one that was cut off in between.
        target.unlink()
        before = 0
    reason = ""
    while (have := _size(target)) < total and time.monotonic() - started < seconds:
        try:
            append(url, target, have, started + seconds)
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = str(error) or type(error).__name__
        if _size(target) <= have:
            time.sleep(PAUSE)
    gained = have - before
    if gained <= 0 and have < total:
        raise TransferError(f"{url}: nothing came in {seconds:.0f} s ({reason or 'no answer'}); run again to go on")
    return Progress(have, total, gained, time.monotonic() - started, done=have >= total)


def verify(path: Path, sha256: str) -> None:
    """Raises TransferError where an archive is another one than was asked for."""
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != sha256:
        raise TransferError(
            f"the archive is not the one that checksum names: expected sha256 {sha256}, found {found}; it was removed. "
            "Correct checksum, or the archive on the server"
        )


def unpack(path: Path, target: Path) -> None:
    """Unpack the files of an archive; a single directory that holds them all is left out.

    Nothing is written outside of the target, and nothing but regular files. Raises TransferError.
    """
    try:
        with tarfile.open(path) as archive:
            members = [member for member in archive if not member.isdir()]
            names = {member.name: PurePosixPath(member.name) for member in members}
            for member in members:
                if not member.isfile():
                    raise TransferError(f"{member.name} is a link or a device: pack files only (tar --dereference)")
                if names[member.name].is_absolute() or ".." in names[member.name].parts:
                    raise TransferError(f"{member.name} leads out of the archive: pack it from within its directory")
            tops = {name.parts[0] for name in names.values()}
            strip = 1 if len(tops) == 1 and all(len(name.parts) > 1 for name in names.values()) else 0
            wanted = sum(member.size for member in members)
            target.mkdir(parents=True, exist_ok=True)
            free = shutil.disk_usage(target).free
            if wanted > free:
                raise TransferError(f"unpacked it takes {wanted:,} bytes, {free:,} are free at {target}: make room")
            for member in members:
                file = target.joinpath(*names[member.name].parts[strip:])
                file.parent.mkdir(parents=True, exist_ok=True)
                stream = archive.extractfile(member)
                if stream is None:
                    raise TransferError(f"{member.name} cannot be read")
                with stream, file.open("wb") as written:
                    shutil.copyfileobj(stream, written, CHUNK)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise TransferError(f"{path.name} cannot be unpacked: {error}") from None


def needed(total: int, have: Path) -> int:
    """Bytes that the file system must still have: the rest of the archive, and all of it once more unpacked."""
    return 2 * total - min(_size(have), total)


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
