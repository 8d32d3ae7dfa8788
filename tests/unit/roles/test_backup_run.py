# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role backup reports of a backup that an operator asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import Stage

FILE = "roles/backup/tasks/run.yml"
START = ["systemctl", "start", "inference-backup.service"]
STATUS = ["inference-backup", "status", "--json"]
DAMAGED = "inference-backup: /var/lib/inference-backup/state.json is not of schema 1. Remove it"
LOCKED = {"jobs": {"backup": {"ok": False, "error": "the repository is locked"}}}


@pytest.mark.once
@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({"rc": 1, "stdout": "", "stderr": DAMAGED}, DAMAGED),
        ({"rc": 1, "stdout": json.dumps(LOCKED), "stderr": ""}, "the repository is locked"),
        ({"rc": 1, "stdout": json.dumps({"jobs": {}}), "stderr": ""}, "Job for inference-backup.service failed."),
    ],
)
def test_a_backup_that_failed_is_reported_with_its_reason(
    staged: Callable[..., Stage], status: dict[str, Any], reason: str
) -> None:
    text = (Path(__file__).parents[3] / FILE).read_text()
    stage = staged(
        ["backup_facts"], {FILE: text.replace("ansible.builtin.command:", "baremetal.inference.backup_facts:")}
    )
    included = {"name": "baremetal.inference.backup", "tasks_from": "run"}
    variables = {"backup_models_path": "/mnt/models"}
    tasks = [{"name": "Run", "ansible.builtin.include_role": included, "vars": variables}]
    seen = [
        ({"argv": START}, {"rc": 1, "stderr": "Job for inference-backup.service failed."}),
        ({"argv": STATUS}, status),
    ]
    succeeded, output = stage.run([{"name": "Run", "hosts": "all", "tasks": tasks}], "one", seen=seen)
    assert not succeeded
    assert f"one: no backup was made. {reason}" in output, output
