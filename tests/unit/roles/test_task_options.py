# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible warns in each run about a task whose options are one template: a fact of the host could replace an option."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]


def tasks(found: Any) -> Iterator[dict[str, Any]]:
    """The tasks of a file of tasks or plays, also those of blocks."""
    for item in found if isinstance(found, list) else []:
        yield item
        for part in ("block", "rescue", "always", "pre_tasks", "tasks", "post_tasks"):
            yield from tasks(item.get(part))


def test_the_options_of_a_task_are_no_template() -> None:
    """`module_defaults` takes a dictionary of options that several tasks share."""
    files = [path for part in ("roles/*/tasks", "playbooks") for path in ROOT.glob(f"{part}/**/*.yml")]
    read = [(path, task) for path in files for task in tasks(yaml.safe_load(path.read_text()))]
    assert len(read) > 300
    found = [
        f"{path.relative_to(ROOT)}: {task['name']}"
        for path, task in read
        for key, options in task.items()
        if key.startswith("baremetal.inference.") and isinstance(options, str)
    ]
    assert found == []
