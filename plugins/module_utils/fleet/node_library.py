# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collects and packs the library of nodes on the controller. Private to the collection.

The library of nodes is the part of the collection's Python code that each node keeps, and runs.
"""

from __future__ import annotations

import base64
import io
import os
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..core import node_call
from ..core.node_library import relative_imports

ROOT = Path(__file__).parents[1]
"""The directory module_utils. The library of nodes is a part of it."""

STARTS = ("node/cli/entry.py", "models/prompts/command.py")
"""Programs in the library: the command inferctl, and a command for containers of the engine image."""

CALLS = "node/calls"
"""The implementations of modules, which are also in the library."""

KEPT = "inference-library"


@dataclass(frozen=True)
class Library:
    """The library for one run of a playbook."""

    digest: str
    directory: Path
    """The run's directory for the library's digest and archive."""

    def encoded(self) -> str:
        """The library's archive as text. The run keeps the archive. Raises OSError."""
        archive = self.directory / f"{KEPT}.zip"
        if not archive.exists():
            _keep(archive, pack(read()))
        return base64.b64encode(archive.read_bytes()).decode()


def imported(path: str, text: str) -> Iterator[str]:
    """The paths of files that a file of the library may import. Not every path exists."""
    for dots, module, names in relative_imports(text):
        stem = "/".join([*path.split("/")[: -len(dots)], *filter(None, module.split("."))])
        for place in (stem, *(f"{stem}/{name}".lstrip("/") for name in names)):
            yield from (f"{place}.py", f"{place}/__init__.py")


def read(root: Path = ROOT) -> dict[str, bytes]:
    """Read the library, by path in it: programs, implementations of modules, and all files that these import.

    Raises OSError.
    """
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
    """Make a zip archive of the library. The same files give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(library):
            # Without a given time, ZipInfo uses a constant time.
            archive.writestr(zipfile.ZipInfo(path), library[path], zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def of_run(directory: Path) -> Library:
    """The library of a run. No other run may use the same directory. Raises OSError."""
    kept = directory / KEPT
    if not kept.exists():
        _keep(kept, node_call.digest(read()).encode())
    return Library(kept.read_text(), directory)


def _keep(path: Path, content: bytes) -> None:
    """Write a file in one step, because several of Ansible's workers may write it at the same time. Raises OSError."""
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
    os.replace(temporary, path)
