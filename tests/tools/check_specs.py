#!/usr/bin/env python3
# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks that the defaults of each role equal its argument specification: the same names and values.

The action group of meta/runtime.yml must name every module: the module_defaults of a play reach no other module.
The examples of the roles' READMEs and molecule's plays must set every variable that their roles require, unless they
load playbooks/vars/roles.yml.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
ROLES = ROOT / "roles"

PREFIX = "baremetal.inference."
EXAMPLE = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
SITE = "vars/roles.yml"
"""The end of the path of the file that sets every variable that a role requires."""


def load(path: Path) -> dict:
    """The variables of a file, or of all files of the directory that has the name of the file without .yml."""
    files = [path] if path.is_file() else sorted(path.with_suffix("").glob("*.yml"))
    return {name: value for file in files for name, value in (yaml.safe_load(file.read_text()) or {}).items()}


def differences(role: Path) -> list[str]:
    """The differences between defaults/main.yml and meta/argument_specs.yml of a role."""
    defaults = load(role / "defaults/main.yml")
    specs = load(role / "meta/argument_specs.yml").get("argument_specs", {})
    if "main" not in specs:
        return ["meta/argument_specs.yml has no entry point main"]
    found = []
    for entry, spec in specs.items():
        if not (role / f"tasks/{entry}.yml").exists():
            found.append(f"entry point {entry} has no tasks/{entry}.yml")
        options = spec.get("options", {})
        for name in sorted(set(options) - set(defaults)):
            if not options[name].get("required"):
                found.append(f"{entry}: {name} is in the specification, not in the defaults")
    # An entry point other than `main` may have more options.
    options = {name: option for spec in specs.values() for name, option in spec.get("options", {}).items()}
    for name in sorted(defaults):
        if name not in options:
            found.append(f"{name} is in the defaults, not in the specification")
        elif options[name].get("default") != defaults[name]:
            found.append(f"{name}: default {defaults[name]!r}, specified {options[name].get('default')!r}")
    return found


def left_out() -> list[str]:
    """Modules that the action group does not name, and names in the action group that are no modules."""
    named = set(yaml.safe_load((ROOT / "meta/runtime.yml").read_text())["action_groups"]["node"])
    modules = {path.stem for path in (ROOT / "plugins/modules").glob("*.py")}
    return [f"meta/runtime.yml: action group node: {name}" for name in sorted(named ^ modules)]


def required() -> dict[str, dict[str, set[str]]]:
    """The variables that each entry point of each role requires."""
    specs = {role.name: load(role / "meta/argument_specs.yml")["argument_specs"] for role in ROLES.iterdir()}
    return {
        role: {
            entry: {name for name, option in spec.get("options", {}).items() if option.get("required")}
            for entry, spec in entries.items()
        }
        for role, entries in specs.items()
    }


def runs(value: Any) -> Iterator[tuple[str, str, set[str]]]:
    """The roles of this collection that a play runs: name, entry point, and the variables that the play sets there."""
    for item in value if isinstance(value, list) else []:
        if not isinstance(item, dict):
            continue
        for key, inner in item.items():
            call = inner if key.rpartition(".")[2] in ("include_role", "import_role") else None
            if key == "role" or call:
                name = str(call["name"] if call else inner)
                if name.startswith(PREFIX):
                    entry = call.get("tasks_from", "main") if call else "main"
                    yield name.removeprefix(PREFIX), entry, set(item.get("vars", {}))
            else:
                yield from runs(inner)


def unset(place: str, text: str, given: set[str], wanted: dict[str, dict[str, set[str]]]) -> list[str]:
    """Variables that a role requires and a play does not set; `given` are those of its inventory."""
    found = []
    plays = yaml.safe_load(text)
    for play in plays if isinstance(plays, list) else []:
        if any(str(file).endswith(SITE) for file in play.get("vars_files", [])):
            continue
        for role, entry, own in runs([play]):
            missing = wanted[role].get(entry, set()) - own - given - set(play.get("vars", {}))
            found += [f"{place}: role {role}, {entry}: requires {name}: set it" for name in sorted(missing)]
    return found


def names(value: Any) -> set[str]:
    """All keys of an inventory."""
    return {name for key, inner in value.items() for name in (key, *names(inner))} if isinstance(value, dict) else set()


def unset_anywhere() -> list[str]:
    """The required variables that examples of the roles' READMEs and molecule's plays do not set."""
    wanted = required()
    found = []
    for role in sorted(ROLES.iterdir()):
        for example in EXAMPLE.findall((role / "README.md").read_text()):
            found += unset(f"roles/{role.name}/README.md", example, set(), wanted)
    for play in sorted((ROOT / "molecule").glob("*/*.yml")):
        inventory = play.with_name("hosts.yml")
        given = names(yaml.safe_load(inventory.read_text())) if inventory.exists() else set()
        found += unset(str(play.relative_to(ROOT)), play.read_text(), given, wanted)
    return found


def main() -> int:
    problems = left_out() + unset_anywhere()
    problems += [f"roles/{role.name}: {text}" for role in sorted(ROLES.iterdir()) for text in differences(role)]
    print("\n".join(problems), file=sys.stderr) if problems else None
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
