# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Installs a command on a node, with the files that it needs from the library. Private to the collection.

The files come from the library that runs this code. Nothing is downloaded.
"""

from __future__ import annotations

import hashlib
import py_compile
import re
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec, resolve_name
from pathlib import Path

from . import files

BASE = __name__.removesuffix("core.node_library")

IMPORT = re.compile(r"^[ \t]*from[ ](\.+)([\w.]*)[ ]import[ ](\([^)]*\)|.*)$", re.MULTILINE)
"""Matches a relative import. The library imports its own files only in this way. A full parse of all files would take
20 times as long in each run; a test compares the results of both."""

LAUNCHER = """\
#!/usr/bin/python3 -I
# Managed by the Ansible collection baremetal.inference.
import sys

sys.path.insert(0, {directory!r})

from {package}.{entry} import main

raise SystemExit(main())
"""


def sources(*starts: str) -> dict[str, str]:
    """The sources of modules of the library, and of all modules and packages that they import from it, by name.

    Raises ImportError if a source is missing.
    """
    found: dict[str, str] = {}
    waiting = list(starts)
    while waiting:
        name = waiting.pop()
        if name in found or not name.startswith(BASE):
            continue
        found[name] = text = source(name)
        waiting += [name.rpartition(".")[0], *imported(name, text)]
    return found


def relative_imports(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """The relative imports of a source: the leading dots, the module after the dots, and the imported names."""
    for dots, module, names in IMPORT.findall(text):
        yield dots, module, re.findall(r"(?:^|,)\s*(\w+)", re.sub(r"#.*", "", names).strip("() \n"))


def imported(name: str, text: str) -> Iterator[str]:
    """The names of the library's modules that a module imports, including modules imported from a package."""
    package = name if is_package(name) else name.rpartition(".")[0]
    for dots, module, names in relative_imports(text):
        origin = resolve_name(f"{dots}{module}", package)
        yield origin
        if origin.startswith(BASE.removesuffix(".")) and is_package(origin):
            yield from (part for one in names if find_spec(part := f"{origin}.{one}"))


def is_package(name: str) -> bool:
    """Whether a module exists and is a package."""
    spec = find_spec(name)
    return spec is not None and spec.submodule_search_locations is not None


def source(name: str) -> str:
    """The source of a module, from a directory or from the archive that Ansible has sent.

    Raises ImportError if it is missing.
    """
    spec = find_spec(name)
    text = spec.loader.get_source(name) if spec and spec.loader and hasattr(spec.loader, "get_source") else None
    if text is None:
        raise ImportError(f"no source of {name}")
    return str(text)


@dataclass(frozen=True)
class Plan:
    """The changes that install or remove a command."""

    library: Path
    wanted: dict[Path, tuple[str, int]]
    """Text and mode of every file. Empty if the command must be removed."""
    before: dict[Path, str]
    """A checksum of every present file."""

    @property
    def after(self) -> dict[Path, str]:
        return {path: _digest(*self.wanted[path]) for path in self.wanted}

    @property
    def changed(self) -> list[Path]:
        after = self.after
        return [path for path in self.wanted if self.before.get(path) != after[path]]

    @property
    def stale(self) -> list[Path]:
        return [path for path in self.before if path not in self.wanted]

    @property
    def files(self) -> list[str]:
        """The paths of the files to write or remove."""
        return sorted(str(path) for path in [*self.changed, *self.stale])

    @property
    def diff(self) -> dict[str, str]:
        """A diff of names and checksums: operators do not read hundreds of lines of code."""
        return {"before": _summary(self.before), "after": _summary(self.after)}

    def apply(self) -> None:
        """Make the changes. Raises OSError."""
        for path in self.changed:
            files.write(path, *self.wanted[path])
            if path.suffix == ".py":
                # Sandboxed services cannot write byte code here, and would compile all files at each start.
                py_compile.compile(str(path), quiet=2)
        for path in self.stale:
            path.unlink()
        for path in self.stale:
            self._remove_abandoned(path.parent)
        if not self.wanted and self.library.is_dir():
            shutil.rmtree(self.library)

    def _remove_abandoned(self, directory: Path) -> None:
        """Remove a directory of the library and its parents, as long as they contain only byte code."""
        while directory.is_relative_to(self.library) and not any(
            path.is_relative_to(directory) for path in self.wanted
        ):
            shutil.rmtree(directory, ignore_errors=True)
            directory = directory.parent


def plan(start: str, library: Path, command: Path, present: bool = True, whole: bool = False) -> Plan:
    """Plan the files so that `command` calls main() of the module `start`.

    The library gets the modules that `start` imports. With `whole`, it gets all files of the library that runs this
    code. Raises ImportError, OSError.
    """
    before = {
        path: _digest(path.read_text(encoding="utf-8", errors="replace"), path.stat().st_mode & 0o7777)
        for path in _present_files(library, command)
    }
    texts = (own() if whole else part(start)) if present else {}
    return Plan(library, _wanted_files(start, texts, library, command) if present else {}, before)


def part(start: str) -> dict[str, str]:
    """The files that a module needs, by path in the library. Raises ImportError."""
    found = {}
    for name, text in sources(start).items():
        place = name.removeprefix(BASE).replace(".", "/")
        found[f"{place}/__init__.py" if is_package(name) else f"{place}.py"] = text
    return found


def own() -> dict[str, str]:
    """The files of the library that runs this code. It is a directory or an archive. Raises OSError."""
    root = Path(__file__).parents[1]
    if root.is_dir():
        return {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in root.rglob("*.py")}
    with zipfile.ZipFile(root) as archive:
        return {path: archive.read(path).decode() for path in archive.namelist()}


def _wanted_files(start: str, texts: Mapping[str, str], library: Path, command: Path) -> dict[Path, tuple[str, int]]:
    wanted = {library / path: (text, 0o644) for path, text in {"__init__.py": "", **texts}.items()}
    launcher = LAUNCHER.format(directory=str(library.parent), package=library.name, entry=start.removeprefix(BASE))
    # The last file: the command must not exist before the files that it needs.
    wanted[command] = (launcher, 0o755)
    return wanted


def _present_files(library: Path, command: Path) -> list[Path]:
    """The files on the node, without byte code: Python writes it and compares it with its source."""
    found = [path for path in library.rglob("*") if not path.is_dir() and "__pycache__" not in path.parts]
    return [*found, command] if command.exists() else found


def _summary(listed: dict[Path, str]) -> str:
    return "".join(f"{digest[:12]} {path}\n" for path, digest in sorted(listed.items()))


def _digest(text: str, mode: int) -> str:
    """A checksum of text and mode."""
    return hashlib.sha256(f"{mode:o} {text}".encode()).hexdigest()
