# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the implementation of a module from the library on the node. Private to the collection.

Ansible parses and sends all that a module imports, for each module. So a module that needs much of the library imports
this file alone. Its implementation, node/calls/NAME.py, comes from the library that the module node_tool installs.
Where the node has no library, or the library of another version, the action plugin sends the library once.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from . import files
from .paths import Paths

PACKAGE = "baremetal_inference"
"""The name of the library in the process of a module."""

MISSING = "library_missing"
"""The key of the result that asks the action plugin for the library."""

OPTIONS: dict[str, Any] = {
    "library": {
        "type": "dict",
        "default": {},
        "options": {
            "digest": {"type": "str", "default": ""},
            "path": {"type": "str", "default": ""},
            "archive": {"type": "str", "default": "", "no_log": True},
            "only": {"type": "bool", "default": False},
        },
    }
}
"""The option by which the action plugin says which library the module must run."""


def run(module: Any, name: str) -> None:
    """Answer by the implementation `name`, or ask for the library."""
    # Also from the result's invocation: the archive is of no use to a reader.
    wanted = module.params.pop("library")
    if not wanted["digest"]:
        module.fail_json(msg=f"{name} needs its action plugin: call baremetal.inference.{name} in a task")
    elif (found := implementation(module, name, wanted)) is None:
        module.exit_json(changed=False, **{MISSING: True})
    elif wanted["only"]:
        module.exit_json(changed=False)
    else:
        found(module)


def implementation(module: Any, name: str, wanted: Mapping[str, Any]) -> Callable[[Any], None] | None:
    """The implementation of a module; None where this machine does not have the library that is wanted."""
    # Ansible makes the directory when it is asked for.
    private = Path(module.tmpdir) if wanted["archive"] and os.geteuid() != 0 else None
    place = find(wanted, Paths(), private)
    return None if place is None else load(place, name)


def find(wanted: Mapping[str, Any], paths: Paths, private: Path | None) -> Path | None:
    """Where this machine has the library that is wanted; None where it does not have the library.

    An archive that was sent is kept until the next boot; of a user who is not root, in the directory `private`.
    Raises OSError.
    """
    if wanted["path"] and os.access(wanted["path"], os.R_OK | os.X_OK):
        # Only the user who owns the collection writes byte code there.
        sys.dont_write_bytecode |= Path(wanted["path"]).stat().st_uid != os.geteuid()
        return Path(wanted["path"])
    if digest(read(paths.library)) == wanted["digest"]:
        return paths.library
    archive = (private or paths.shipped_library) / f"{wanted['digest']}.zip"
    if wanted["archive"]:
        keep(archive, base64.b64decode(wanted["archive"]))
    return archive if os.access(archive, os.R_OK) else None


def keep(archive: Path, content: bytes) -> None:
    """Keep an archive of the library, for root alone, and remove the archives of other versions. Raises OSError."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.parent.chmod(0o700)
    files.write(archive, content, 0o600)
    for other in archive.parent.glob("*.zip"):
        if other != archive:
            other.unlink(missing_ok=True)


def forget(paths: Paths) -> None:
    """Remove the archives that were sent. Raises OSError."""
    if paths.shipped_library.exists():
        shutil.rmtree(paths.shipped_library)


def load(place: Path, name: str) -> Callable[[Any], None]:
    """The implementation of a module in a library, which is a directory or a zip archive."""
    package = ModuleType(PACKAGE)
    package.__path__ = [str(place)]
    sys.modules[PACKAGE] = package
    found: Callable[[Any], None] = importlib.import_module(f"{PACKAGE}.node.calls.{name}").run
    return found


def read(directory: Path) -> dict[str, bytes]:
    """All files of a library, by their path in the library; without byte code, which Python checks itself.

    Raises OSError.
    """
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if "__pycache__" not in path.parts and path.is_file()
    }


def digest(library: Mapping[str, bytes]) -> str:
    """The checksum of a library's files."""
    found = hashlib.sha256()
    for path in sorted(library):
        found.update(f"{path}\0{len(library[path])}\0".encode())
        found.update(library[path])
    return found.hexdigest()
