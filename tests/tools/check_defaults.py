#!/usr/bin/env python3
# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks that only plugins/module_utils/core/defaults.py has the value of a shared default, and that the default of its
role has the same value or is empty.

Of the Python files in plugins/, only module_utils/core/paths.py may have paths of the collection's files on a node.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
HOME = "plugins/module_utils/core/defaults.py"
PATHS = "plugins/module_utils/core/paths.py"
MADE = "plugins/module_utils/models/config/class_defaults.py"
"""Sizes of models, made by `make catalogue`. A size may equal a port that is a default."""
OWN_PATHS = ("/etc/inference", "/var/lib/inference")

LEAST_NUMBER = 5000
"""Smaller numbers are too common to be recognised as a default: times, counts."""

FALLBACK = re.compile(r"\b([a-z][a-z0-9_]*) \| default\(('[^']+'|[0-9]+)(?:, true)?\)")
"""A variable with a literal as its default."""


def shared(text: str) -> dict[str, int | float | str]:
    """The values of defaults.py, by the variable of the role."""
    names: dict[str, int | float | str] = {}
    table: dict[str, int | float | str] = {}
    for node in ast.parse(text).body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Constant)
        ):
            names[node.targets[0].id] = node.value.value  # type: ignore[assignment]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict):
            for key, value in zip(node.value.keys, node.value.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(value, ast.Name):
                    table[str(key.value)] = names[value.id]
    return table


def differing(table: Mapping[str, int | float | str], defaults: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Roles with another default than the shared one. `defaults` are the roles' variables by file."""
    return [
        f"{file}: {name} is {variables[name]!r}, {HOME} says {table[name]!r}"
        for file, variables in defaults.items()
        for name in variables
        if name in table and variables[name] not in (table[name], "")
    ]


def second_homes(table: Mapping[str, int | float | str], files: Mapping[str, str], roles: frozenset[str]) -> list[str]:
    """Copies of a shared value, or of the default of a role's variable. `roles` are all roles' variables."""
    found = []
    for file, text in files.items():
        if file in (HOME, MADE):
            continue
        for line, message in in_python(table, file, text) if file.endswith(".py") else in_yaml(table, text, roles):
            found.append(f"{file}:{line}: {message}")
    return found


def in_python(table: Mapping[str, int | float | str], file: str, text: str) -> Iterator[tuple[int, str]]:
    """Literals of a Python file that copy a shared default or path."""
    known = {value: name for name, value in table.items() if is_recognised(value)}
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, (int, str)) or isinstance(node.value, bool):
            continue
        if node.value in known:
            yield node.lineno, f"{node.value!r} is the default of {known[node.value]}: import it from core/defaults.py"
        elif (
            file != PATHS
            and isinstance(node.value, str)
            and node.value.startswith(OWN_PATHS)
            and "\n" not in node.value
        ):
            yield node.lineno, f"{node.value!r} is a path of the collection's own: take it from core/paths.py"


def in_yaml(table: Mapping[str, int | float | str], text: str, roles: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Literals of a file of variables, tasks or a template that copy a default."""
    known = {str(value): name for name, value in table.items() if is_recognised(value)}
    for number, line in enumerate(text.splitlines(), 1):
        code = line.partition(" #")[0] if not line.lstrip().startswith("#") else ""
        owner = re.match(r"([a-z0-9_]+):", code)
        for value, name in known.items():
            if re.search(rf"(?<![\w./-]){re.escape(value)}(?![\w./-])", code) and not (owner and owner[1] == name):
                yield (
                    number,
                    f"{value} is the default of {name}: read it by the filter site_default, or require the variable",
                )
        for name, value in FALLBACK.findall(code):
            if name in roles:
                yield number, f"{value} is a second default of {name}: read it by the filter site_default"


def is_recognised(value: int | float | str) -> bool:
    """Whether a value alone is recognised as a default: a path, a port."""
    return value.startswith("/") if isinstance(value, str) else value >= LEAST_NUMBER


def main() -> int:
    table = shared((ROOT / HOME).read_text())
    places = [*ROOT.glob("roles/*/defaults/main.yml"), *ROOT.glob("roles/*/defaults/main/*.yml")]
    defaults = {str(path.relative_to(ROOT)): yaml.safe_load(path.read_text()) or {} for path in sorted(places)}
    patterns = (
        "plugins/**/*.py",
        "playbooks/**/*.yml",
        *(f"roles/*/{part}/**/*" for part in ("defaults", "vars", "tasks", "templates")),
    )
    files = {
        str(path.relative_to(ROOT)): path.read_text()
        for pattern in patterns
        for path in sorted(ROOT.glob(pattern))
        if path.is_file()
    }
    variables = frozenset(name for found in defaults.values() for name in found)
    problems = differing(table, defaults) + second_homes(table, files, variables)
    print("\n".join(problems), file=sys.stderr) if problems else None
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
