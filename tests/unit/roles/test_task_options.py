# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible warns in each run about a task whose options are one template: a fact of the host could replace an option."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ONE_TEMPLATE = re.compile(r"^\s*(?:- )?baremetal\.inference\.\w+: *[\"'>|{]")


def test_the_options_of_a_task_are_no_template() -> None:
    """`module_defaults` takes a dictionary of options that several tasks share."""
    files = [path for part in ("roles/*/tasks", "playbooks") for path in ROOT.glob(f"{part}/**/*.yml")]
    assert len(files) > 100
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if ONE_TEMPLATE.match(line)
    ]
    assert found == []
