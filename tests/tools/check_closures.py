#!/usr/bin/env python3
# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits the imports of each module: Ansible parses all of them once per module and run, and sends them to every node.

A module that needs more of the library runs from the library on the node: CONTRIBUTING.md, "Where do I add".
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Mapping
from pathlib import PurePosixPath

from check_layers import LIBRARY, imports, read

FILES = 40
KIB = 250
"""The limits of a module's imports, without its own file: number of files, and size in KiB."""

NEARLY = 0.8

UNSENT = "node_call.refuse("
"""The mark of a module that Ansible does not send, because the node's library runs it."""

Graph = Mapping[str, tuple[str, ...]]
"""The files that each file imports."""


def graph(files: Mapping[str, str]) -> Graph:
    """The imports of each file, with the packages of the imported files."""
    known = frozenset(files)
    found = {}
    for file, text in files.items():
        targets = dict.fromkeys(target for _line, target in imports(file, text, known))
        packages = [f"{folder}/__init__.py" for target in targets for folder in PurePosixPath(target).parents]
        found[file] = tuple(dict.fromkeys([*targets, *(package for package in packages if package in known)]))
    return found


def closure(start: str, edges: Graph, without: str = "") -> dict[str, str]:
    """All direct and indirect imports of a file, each with the file that imports it on the shortest way."""
    found: dict[str, str] = {}
    waiting = deque([start])
    while waiting:
        file = waiting.popleft()
        for target in edges[file]:
            if target not in found and target not in (start, without):
                found[target] = file
                waiting.append(target)
    return found


def chain(start: str, end: str, found: Mapping[str, str]) -> list[str]:
    """The shortest chain of imports from one file to another."""
    way = [end]
    while way[-1] != start:
        way.append(found[way[-1]])
    return way[::-1]


def kib(closed: Mapping[str, str], files: Mapping[str, str]) -> float:
    """The size of files, in KiB."""
    return sum(len(files[file].encode()) for file in closed) / 1024


def heaviest(start: str, edges: Graph, files: Mapping[str, str]) -> str:
    """The import whose removal saves most. Of imports that save nearly as much, the farthest from the module."""
    closed = closure(start, edges)
    whole = kib(closed, files)
    saved = {file: whole - kib(closure(start, edges, without=file), files) for file in closed}
    most = [file for file in closed if saved[file] >= NEARLY * max(saved.values())]
    return max(most, key=lambda file: (len(chain(start, file, closed)), saved[file]))


def problems(files: Mapping[str, str]) -> list[str]:
    """Messages about modules with too many imports, with the chain to the import whose removal saves most."""
    edges, found = graph(files), []
    for module, text in files.items():
        if not module.startswith("plugins/modules/") or UNSENT in text:
            continue
        closed = closure(module, edges)
        size = kib(closed, files)
        if len(closed) <= FILES and size <= KIB:
            continue
        heavy = heaviest(module, edges, files)
        rest = closure(module, edges, without=heavy)
        way = " -> ".join(file.removeprefix(f"{LIBRARY}/") for file in chain(module, heavy, closed))
        found.append(
            f"{module}: imports {len(closed)} files, {size:.0f} KiB: at most {FILES} files, {KIB} KiB. The largest "
            f"part comes by {way}. Without this import, {len(rest)} files, {kib(rest, files):.0f} KiB remain. Import "
            "less, or have the library of the node run the module (node/calls)"
        )
    return found


def main() -> int:
    found = problems(read("plugins/**/*.py"))
    print("\n".join(found), file=sys.stderr) if found else None
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
