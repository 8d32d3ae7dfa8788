#!/usr/bin/env python3
# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the tables of docs/hardware.md from compatibility.json, which the code reads, too.

Without an option, the program fails if the tables in the guide differ. With --write, it writes the tables.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DATA = ROOT / "plugins/module_utils/hardware/driver/compatibility.json"
GUIDE = ROOT / "docs/hardware.md"

BEGIN = "<!-- tables: made from compatibility.json by tests/tools/hardware_tables.py -->"
END = "<!-- end of tables -->"

MODULES = {"impossible": "proprietary only", "supported": "open or proprietary", "required": "open only"}


def table(heads: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows))


def branches(entry: dict[str, Any]) -> str:
    """The branches that support an architecture, in words."""
    first = f"{entry['first_branch']} and later" if entry["first_branch"] else ""
    last = f"up to {entry['last_branch']}" if entry["last_branch"] else ""
    return ", ".join(filter(None, (first, last))) or "all"


def render(data: dict[str, Any]) -> str:
    """The part of the guide between the two comments."""
    architectures = [
        [entry["name"], ", ".join(entry["compute_capabilities"]), MODULES[entry["open_module"]], branches(entry)]
        for entry in data["architectures"]
    ]
    lifetimes = [
        [str(entry["branch"]), entry["kind"], entry["cuda"], entry["end_of_life"] or "not known"]
        for entry in data["branches"]
    ]
    debian = [
        [
            f"{entry['release']} ({entry['codename']})",
            str(entry["branch"]),
            entry["version"],
            " or ".join(entry["flavors"]),
            f"`nvidia-{entry['series']}-…`" if entry["series"] else "plain names",
        ]
        for entry in data["debian"]
    ]
    since = {name: rule["branch"] for name, rule in data["rules"].items()}
    names = ("minimum", "excluded", "docker_with_cdi")
    toolkit, excluded, docker = (data["container_toolkit"][name]["version"] for name in names)
    rest = f"""\
- The open kernel module is NVIDIA's default from branch {since["open_by_default_from"]} on, and the only one from \
{since["open_only_from"]} on.
- NVIDIA's repository has packages for computing alone from branch {since["compute_packages_from"]} on.
- GPUs in containers need the container toolkit {toolkit} or later, but not {excluded}; Docker supports CDI from \
{docker} on."""
    parts = [
        table(["GPUs", "compute capability", "kernel module", "branches"], architectures),
        table(["branch", "kind", "CUDA", "NVIDIA's updates until"], lifetimes),
        table(["Debian", "branch", "version", "kernel module", "packages"], debian),
        rest,
    ]
    return "\n\n".join([BEGIN, *parts, END])


def main() -> int:
    text = GUIDE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    wanted = before + render(json.loads(DATA.read_text(encoding="utf-8"))) + after
    if "--write" in sys.argv[1:]:
        GUIDE.write_text(wanted, encoding="utf-8")
    elif text != wanted:
        name = Path(__file__).relative_to(ROOT)
        print(f"{GUIDE.relative_to(ROOT)}: the tables differ from {DATA.name}: run {name} --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
