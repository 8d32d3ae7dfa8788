#!/usr/bin/env python3
# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the imports of files, and the includes of roles: CONTRIBUTING.md, "Layers".

A linter of our own: import-linter needs packages that Python can import, and `plugins/` has no __init__.py.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLUGINS = "plugins"
LIBRARY = "plugins/module_utils"
PACKAGE = "ansible_collections.baremetal.inference.plugins"

LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"core"}),
    frozenset({"debian"}),
    frozenset({"hardware"}),
    frozenset({"models"}),
    frozenset({"store"}),
    frozenset({"engine"}),
    frozenset({"gateway", "monitoring", "backup", "maintenance"}),
    frozenset({"jobs"}),
    frozenset({"accept"}),
    frozenset({"node"}),
    frozenset({"fleet"}),
)
"""Folders of plugins/module_utils: each imports from earlier lines alone, never from a neighbour on its own line."""

RANK = {folder: number for number, line in enumerate(LAYERS) for folder in line}

CONTROLLER = frozenset({"filter", "action", "plugin_utils"})
"""Folders of plugins that run on the controller."""

INCLUDE = re.compile(r"""name:\s*["']?baremetal\.inference\.([a-z_]+)["']?\s*$""")


def statements(text: str) -> Iterator[ast.AST]:
    """All statements of a source, as ast.walk, but without their expressions: these would take most of the time."""
    waiting: deque[ast.AST] = deque([ast.parse(text)])
    while waiting:
        yield (node := waiting.popleft())
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting.extend(getattr(node, field, ()))


def imports(file: str, text: str, known: frozenset[str]) -> Iterator[tuple[int, str]]:
    """The line number and the file of each import from below plugins/."""
    for node in statements(text):
        if not isinstance(node, ast.ImportFrom):
            continue
        module = (node.module or "").split(".") if node.module else []
        if node.level:
            stem = "/".join([*file.split("/")[: -node.level], *module])
        elif (node.module or "").startswith(f"{PACKAGE}."):
            stem = "/".join([PLUGINS, *str(node.module).removeprefix(f"{PACKAGE}.").split(".")])
        else:
            continue
        for target in dict.fromkeys([stem, *(f"{stem}/{alias.name}" for alias in node.names)]):
            yield from ((node.lineno, path) for path in (f"{target}.py", f"{target}/__init__.py") if path in known)


def folder_of(file: str) -> str:
    """The folder of plugins/module_utils with the file; empty for other files, and for files without a folder."""
    inner = file.removeprefix(f"{LIBRARY}/").split("/") if file.startswith(f"{LIBRARY}/") else []
    return inner[0] if len(inner) > 1 else ""


def mistake(file: str, target: str) -> str:
    """The reason why a file must not import another file; empty if it may."""
    if target.startswith("plugins/modules/"):
        if file == target.replace("/modules/", "/action/"):
            return ""
        return "a module is imported by nothing: move the shared part to plugins/module_utils"
    here, there = folder_of(file), folder_of(target)
    if not there or here == there:
        return ""
    if here:
        earlier = [folder for folder, rank in RANK.items() if rank < RANK[here]] if here in RANK else []
        if there not in earlier:
            return f"{here} may import from {', '.join(earlier) or 'nothing'}"
        return "node/ is imported by node/ alone" if there == "node" else ""
    kind = file.split("/")[1]
    if kind in CONTROLLER and there == "node":
        return f"node/ runs on nodes, {kind}/ runs on the controller"
    if kind == "modules" and there == "node":
        return "a module calls the node's library by core/node_call.py"
    if kind == "modules" and there == "fleet":
        return "fleet/ is the controller's alone, a module runs on nodes"
    return ""


def wrong_imports(files: dict[str, str]) -> list[str]:
    """All wrong imports, and all files and folders of the library without a place in the layers."""
    found, known = [], frozenset(files)
    for file, text in files.items():
        if file.startswith(f"{LIBRARY}/") and file != f"{LIBRARY}/__init__.py":
            folder = folder_of(file)
            if folder not in RANK:
                what = f"folder {folder} is" if folder else "file is loose,"
                found.append(f"{file}: {what} not one of {', '.join(RANK)}")
        # A line that imports a file also imports its package: report one mistake once.
        wrong = {
            (line, reason): target for line, target in imports(file, text, known) if (reason := mistake(file, target))
        }
        found += [f"{file}:{line}: imports {target}: {reason}" for (line, reason), target in sorted(wrong.items())]
    return found


def wrong_includes(files: dict[str, str], roles: frozenset[str]) -> list[str]:
    """Each line of a role's files that includes another role."""
    found = []
    for file, text in files.items():
        role = file.split("/")[1]
        for number, line in enumerate(text.splitlines(), 1):
            named = INCLUDE.search(line)
            if named and named[1] in roles - {role}:
                found.append(
                    f"{file}:{number}: role {role} includes role {named[1]}: a playbook decides which roles run"
                )
    return found


def read(pattern: str) -> dict[str, str]:
    """The files of the collection that match, by path."""
    return {str(path.relative_to(ROOT)): path.read_text() for path in sorted(ROOT.glob(pattern))}


def main() -> int:
    roles = frozenset(path.name for path in (ROOT / "roles").iterdir())
    problems = wrong_imports(read("plugins/**/*.py")) + wrong_includes(read("roles/*/**/*.yml"), roles)
    print("\n".join(problems), file=sys.stderr) if problems else None
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
