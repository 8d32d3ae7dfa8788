# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The library of nodes, as this controller has it. Private to the collection."""

from __future__ import annotations

import base64
import io
import os
import re
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..core import node_call

ROOT = Path(__file__).parents[1]
"""The directory of all libraries of the collection."""

STARTS = ("node/cli/entry.py", "models/prompts/command.py")
"""What nodes run beside the implementations of modules: the command, and what containers of the engine's image run."""

CALLS = "node/calls"

IMPORT = re.compile(r"^[ \t]*from[ ](\.+)([\w.]*)[ ]import[ ](\([^)]*\)|.*)$", re.MULTILINE)
"""A relative import. The library has no other imports of its own. Parsing the syntax of all files takes 20 times as
long, in each run; a test compares both."""

KEPT = "inference-library"


@dataclass(frozen=True)
class Library:
    """The library of a run."""

    digest: str
    directory: Path
    """Where the run keeps the library's digest and archive."""

    def encoded(self) -> str:
        """The library's archive as text, packed once in a run. Raises OSError."""
        archive = self.directory / f"{KEPT}.zip"
        if not archive.exists():
            _keep(archive, pack(read()))
        return base64.b64encode(archive.read_bytes()).decode()


def imported(path: str, text: str) -> Iterator[str]:
    """The files that a file of the library may import, by their paths in the library."""
    for dots, module, names in IMPORT.findall(text):
        stem = "/".join([*path.split("/")[: -len(dots)], *filter(None, module.split("."))])
        words = re.findall(r"(?:^|,)\s*(\w+)", re.sub(r"#.*", "", names).strip("() \n"))
        for place in (stem, *(f"{stem}/{word}".lstrip("/") for word in words)):
            yield from (f"{place}.py", f"{place}/__init__.py")


def read(root: Path = ROOT) -> dict[str, bytes]:
    """The files of the library, by their paths in the library. Raises OSError."""
    there = {str(path.relative_to(root)) for path in root.rglob("*.py")}
    waiting = [*STARTS, *(path for path in there if path.startswith(f"{CALLS}/"))]
    found = {"__init__.py": b""}
    while waiting:
        path = waiting.pop()
        if path in found or path not in there:
            continue
        found[path] = (root / path).read_bytes()
        folders = path.split("/")[:-1]
        waiting += ["/".join([*folders[: depth + 1], "__init__.py"]) for depth in range(len(folders))]
        waiting += imported(path, found[path].decode())
    return found


def pack(library: dict[str, bytes]) -> bytes:
    """A zip archive of a library. The same files give the same archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(library):
            # Without a time of its own, ZipInfo has the first time that zip knows.
            archive.writestr(zipfile.ZipInfo(path), library[path], zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def of_run(directory: Path) -> Library:
    """The library of a run, read once. The directory is one that only this run has. Raises OSError."""
    kept = directory / KEPT
    if not kept.exists():
        _keep(kept, node_call.digest(read()).encode())
    return Library(kept.read_text(), directory)


def _keep(path: Path, content: bytes) -> None:
    """Write a file at once: several workers may do this at the same time. Raises OSError."""
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
    os.replace(temporary, path)
