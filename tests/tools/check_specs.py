#!/usr/bin/env python3
# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every role's defaults must equal its argument specification: the same names, the same values.

And the action group must name every module: module_defaults that miss one are found out late.
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
ROLES = ROOT / "roles"


def load(path: Path) -> dict:
    """A file of variables, or all files of the directory that stands for it."""
    files = [path] if path.is_file() else sorted(path.with_suffix("").glob("*.yml"))
    return {name: value for file in files for name, value in (yaml.safe_load(file.read_text()) or {}).items()}


def differences(role: Path) -> list[str]:
    """What differs between defaults/main.yml and meta/argument_specs.yml of a role."""
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
    # An entry point of its own may want more than `main`.
    options = {name: option for spec in specs.values() for name, option in spec.get("options", {}).items()}
    for name in sorted(defaults):
        if name not in options:
            found.append(f"{name} is in the defaults, not in the specification")
        elif options[name].get("default") != defaults[name]:
            found.append(f"{name}: default {defaults[name]!r}, specified {options[name].get('default')!r}")
    return found


def left_out() -> list[str]:
    """Modules that the action group does not name, and names that are no modules."""
    named = set(yaml.safe_load((ROOT / "meta/runtime.yml").read_text())["action_groups"]["node"])
    modules = {path.stem for path in (ROOT / "plugins/modules").glob("*.py")}
    return [f"meta/runtime.yml: action group node: {name}" for name in sorted(named ^ modules)]


def main() -> int:
    problems = left_out()
    problems += [f"roles/{role.name}: {text}" for role in sorted(ROLES.iterdir()) for text in differences(role)]
    print("\n".join(problems), file=sys.stderr) if problems else None
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
