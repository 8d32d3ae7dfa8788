# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packs a bundle. Private to the collection."""

from __future__ import annotations

import io
import json
import os
import socket
import tarfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ...engine.state.drains import format_time
from .item import Item, Part, collect

SCHEMA = 1

DIRECTORY = Path("/var/tmp")
"""Where `inferctl bundle` writes without `--output`: on disk, so that a bundle survives a reboot."""

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Bundle:
    """A bundle that was written, and the result of each part."""

    path: Path
    size: int
    parts: list[Part]

    def count(self) -> Counter[str]:
        """The number of parts by status."""
        return Counter(part.status for part in self.parts)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "path": str(self.path),
            "size": self.size,
            "parts": [part.to_json() for part in self.parts],
        }


def bundle_name(now: datetime) -> str:
    """The file name of a bundle, without suffix."""
    return f"inferctl-bundle-{socket.gethostname()}-{format_time(now).replace(':', '')}"


def destination(output: Path | None, now: datetime) -> Path:
    """The path of the new bundle. `output` may be a file or a directory. Raises FileExistsError."""
    path = output or DIRECTORY
    path = path / f"{bundle_name(now)}.tar.gz" if path.is_dir() else path
    if path.exists() or path.is_symlink():
        raise FileExistsError(f"{path} exists already: give another file with --output")
    return path


def write(
    path: Path, items: list[Item], now: datetime, more: dict[str, Any], report_progress: Callable[[str], None]
) -> Bundle:
    """Collect the items one after the other into a file that only root can read. `more` goes into the manifest;
    `report_progress` gets a line for each item. Raises OSError. If it fails or is interrupted, it leaves no file."""
    # Others can guess the file's name, so it must not overwrite a file or follow a link.
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            parts = _pack(stream, items, now, more, report_progress)
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        os.unlink(path)
        raise
    return Bundle(path, path.stat().st_size, parts)


def _pack(
    stream: io.BufferedWriter,
    items: list[Item],
    now: datetime,
    more: dict[str, Any],
    report_progress: Callable[[str], None],
) -> list[Part]:
    parts = []
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for number, item in enumerate(items, 1):
            report_progress(f"{number}/{len(items)} {item.file}")
            part, text = collect(item)
            if text:
                _add(archive, f"{bundle_name(now)}/{item.file}", text, now)
            parts.append(part)
        head = {"schema": SCHEMA, "host": socket.gethostname(), "made": format_time(now), **more}
        manifest = {**head, "parts": [part.to_json() for part in parts]}
        _add(archive, f"{bundle_name(now)}/{MANIFEST}", json.dumps(manifest, indent=2) + "\n", now)
    return parts


def _add(archive: tarfile.TarFile, file: str, text: str, now: datetime) -> None:
    data = text.encode()
    entry = tarfile.TarInfo(file)
    entry.size, entry.mode, entry.mtime = len(data), 0o600, int(now.timestamp())
    archive.addfile(entry, io.BytesIO(data))
