# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the implementation of a module from the library on the node. Private to the collection.

For each module, Ansible parses and sends everything that the module imports. Modules that need much of the library are
not sent: their action plugin sends the module node_call instead, which imports this file, and with it only files.py and
paths.py. The implementation of the called module, node/calls/NAME.py, comes from the library that the module node_tool
installs. If the node has no library, or the library of another version, the action plugin sends the library.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from . import files
from .paths import Paths

PACKAGE = "baremetal_inference"
"""The name by which a module's process imports the library."""

MISSING = "library_missing"
"""The key of the result that asks the action plugin for the library."""

OPTION = "node_call"

OPTIONS: dict[str, Any] = {OPTION: {"type": "str", "default": "", "no_log": True}}
"""The option that holds a Wanted as text. no_log keeps the long text out of the node's log."""


@dataclass(frozen=True)
class Wanted:
    """The request of the action plugin."""

    module: str
    """The called module."""
    specification: Mapping[str, Any]
    """The arguments of AnsibleModule for the called module."""
    digest: str
    """The checksum of the library that must run."""
    path: str = ""
    """A directory of the controller that holds this library."""
    archive: str = ""
    """The library as a zip archive in base64, for a node that does not have it."""
    only: bool = False
    """If true, the answer is only whether the node has this library, and the module is not called."""

    def to_text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Wanted:
        return cls(**json.loads(text))


def specification(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of AnsibleModule for a call with these options: those of the called module, with OPTIONS added."""
    text = given.get(OPTION)
    called: Mapping[str, Any] = Wanted.from_text(text).specification if text else {"supports_check_mode": True}
    return {**called, "argument_spec": {**called.get("argument_spec", {}), **OPTIONS}}


def refuse(module: Any) -> None:
    """End the call of a module that Ansible has sent without the action plugin."""
    module.fail_json(msg="This module needs its action plugin: call it by its full name, baremetal.inference.NAME")


def run(module: Any) -> None:
    """Run the implementation of the called module, or ask for the library."""
    # Removed, so that the result does not show the archive.
    text = module.params.pop(OPTION)
    if not text:
        refuse(module)
        return
    wanted = Wanted.from_text(text)
    try:
        found = implementation(module, wanted)
    except OSError as error:
        module.fail_json(msg=f"The library of this collection cannot be read or kept on this machine: {error}")
        return
    if found is None:
        module.exit_json(changed=False, **{MISSING: True})
    elif wanted.only:
        module.exit_json(changed=False)
    else:
        found(module)


def implementation(module: Any, wanted: Wanted) -> Callable[[Any], None] | None:
    """The implementation of the called module; None if this machine lacks the wanted library. Raises OSError."""
    # Ansible creates the directory `tmpdir` at the first access, so a call that does not need it does not access it.
    private = Path(module.tmpdir) if wanted.archive and os.geteuid() != 0 else None
    place = find(wanted, Paths(), private)
    return None if place is None else load(place, wanted.module)


def find(wanted: Wanted, paths: Paths, private: Path | None) -> Path | None:
    """The path of the wanted library on this machine; None if the machine does not have it.

    An archive that was sent to root is kept, at most until the next boot. For another user, the archive is written to
    the directory `private`. Raises OSError.
    """
    if wanted.path and os.access(wanted.path, os.R_OK | os.X_OK):
        # Only the user who owns the collection writes byte code there.
        sys.dont_write_bytecode |= Path(wanted.path).stat().st_uid != os.geteuid()
        return Path(wanted.path)
    if digest(read(paths.library)) == wanted.digest:
        return paths.library
    archive = (private or paths.shipped_library) / f"{wanted.digest}.zip"
    if wanted.archive:
        keep(archive, base64.b64decode(wanted.archive))
    return archive if os.access(archive, os.R_OK) else None


def keep(archive: Path, content: bytes) -> None:
    """Keep an archive of the library, for this user alone, and remove archives of other versions. Raises OSError."""
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
    """All files of a library, by path in the library, without byte code: Python itself compares that with the source.

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
