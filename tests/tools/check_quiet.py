#!/usr/bin/env python3
# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks that a module with a secret inside of a dictionary option is a QuietModule.

Ansible writes the options of each call to the host's journal, a dictionary as one line. In that line, no_log does not
find a secret of several lines: plugins/module_utils/core/quiet_module.py.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from check_closures import UNSENT

ROOT = Path(__file__).parents[2]
MODULES = ROOT / "plugins/modules"

QUIET = "QuietModule"
SENT = "node_call.py"
"""The module that Ansible sends for a module that runs from the node's library."""


def problems(file: str, text: str, sent: str) -> list[str]:
    """Messages about a module; `sent` is the text of node_call.py."""
    tree = ast.parse(text)
    lines = secrets(tree)
    runs = ast.parse(sent) if UNSENT in text else tree
    if not lines or quiet(runs):
        return []
    where = SENT if UNSENT in text else file
    return [f"{file}:{line}: no_log inside of a dictionary option: {where} must be a {QUIET}" for line in lines]


def quiet(tree: ast.Module) -> bool:
    """Whether a module makes a QuietModule, and no AnsibleModule."""
    made = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return QUIET in made and "AnsibleModule" not in made


def secrets(tree: ast.Module) -> list[int]:
    """The lines of `no_log: True` among the options of an option."""
    names: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    names.setdefault(target.id, []).append(node.value)
    found = set()
    for node in ast.walk(tree):
        for key, value in items(node):
            if key == "options":
                found |= set(hidden(value, names, set()))
    return sorted(found)


def hidden(value: ast.expr, names: Mapping[str, list[ast.expr]], seen: set[str]) -> Iterator[int]:
    """The lines of `no_log: True` in a value, and in the values of the names in it."""
    for node in ast.walk(value):
        for key, inner in items(node):
            if key == "no_log" and isinstance(inner, ast.Constant) and inner.value is True:
                yield inner.lineno
        if isinstance(node, ast.Name) and node.id in names and node.id not in seen:
            seen.add(node.id)
            for assigned in names[node.id]:
                yield from hidden(assigned, names, seen)


def items(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The pairs of a dictionary whose keys are texts, also of dict(key=…)."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        yield from ((word.arg, word.value) for word in node.keywords if word.arg)


def main() -> int:
    sent = (MODULES / SENT).read_text()
    found = [
        problem
        for path in sorted(MODULES.glob("*.py"))
        for problem in problems(str(path.relative_to(ROOT)), path.read_text(), sent)
    ]
    print("\n".join(found), file=sys.stderr) if found else None
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
