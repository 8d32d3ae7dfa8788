# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model in an archive on a web server: fetched with resume, verified, unpacked. Private to the collection."""

from __future__ import annotations

import hashlib
import http.client
import lzma
import os
import shutil
import tarfile
import time
import zlib
from pathlib import Path, PurePosixPath

from .transfer import CHUNK, Progress, TransferError, append, ask

PAUSE = 2.0
"""Seconds before a broken connection is tried again."""


def size(url: str) -> int:
    """The archive's size in bytes, by the server's Content-Length. Raises TransferError."""
    try:
        with ask(url, {}, "HEAD") as answer:
            length = answer.headers.get("Content-Length")
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise TransferError(f"{url} cannot be reached from this node: {error}") from None
    if not length or not length.isdecimal():
        raise TransferError(f"{url}: the server sends no size (Content-Length): use another server, or another source")
    return int(length)


def fetch(url: str, target: Path, total: int, seconds: float) -> Progress:
    """Fetch more of an archive for `seconds` or until it is complete. Resumes after a broken connection.

    Raises TransferError if no byte arrived.
    """
    started = time.monotonic()
    before = _size(target)
    if before > total:
        # The archive on the server was replaced by a shorter one.
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
        raise TransferError(f"{url}: no byte arrived in {seconds:.0f} s ({reason or 'no answer'}); run again to go on")
    return Progress(have, total, gained, time.monotonic() - started, done=have >= total)


def verify(path: Path, sha256: str) -> None:
    """Raises TransferError if an archive does not have this checksum."""
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != sha256:
        raise TransferError(
            f"the archive has a wrong checksum: expected sha256 {sha256}, found {found}; it was removed. Correct "
            "`checksum`, or the archive on the server"
        )


def unpack(path: Path, target: Path) -> None:
    """Unpack the files of an archive. If one top directory contains all files, its name is left out.

    Writes only regular files, and only below the target. Raises TransferError.
    """
    try:
        with tarfile.open(path) as archive:
            members = [member for member in archive if not member.isdir()]
            names = {member.name: PurePosixPath(member.name) for member in members}
            for member in members:
                if not member.isfile():
                    raise TransferError(f"{member.name} is a link or a device: pack files only (tar --dereference)")
                if names[member.name].is_absolute() or ".." in names[member.name].parts:
                    raise TransferError(f"{member.name} lies outside of the archive: pack from within its directory")
            tops = {name.parts[:1] for name in names.values()}
            strip = 1 if len(tops) == 1 and all(len(name.parts) > 1 for name in names.values()) else 0
            wanted = sum(member.size for member in members)
            target.mkdir(parents=True, exist_ok=True)
            free = shutil.disk_usage(target).free
            if wanted > free:
                raise TransferError(
                    f"the unpacked archive needs {wanted:,} bytes, but {target} has only {free:,} bytes free: make room"
                )
            for member in members:
                file = target.joinpath(*names[member.name].parts[strip:])
                file.parent.mkdir(parents=True, exist_ok=True)
                stream = archive.extractfile(member)
                if stream is None:
                    raise TransferError(f"{member.name} cannot be read: pack the archive again")
                with stream, file.open("wb") as written:
                    shutil.copyfileobj(stream, written, CHUNK)
    except (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError) as error:
        raise TransferError(f"{path.name} cannot be unpacked: {error}") from None


def needed(total: int, have: Path) -> int:
    """Free bytes that the file system needs: for the missing part of the archive, and as much as the whole archive for
    the unpacked files."""
    return 2 * total - min(_size(have), total)


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
