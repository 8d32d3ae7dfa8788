# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module backup_facts: the snapshots of a node, and the results of its jobs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.backup import jobs, state
from ansible_collections.baremetal.inference.plugins.module_utils.backup.places import Places
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.modules import backup, backup_facts

from ..backup_harness import NODE, SNAPSHOT, TimerSystemd, answer_restic

Call = Callable[..., dict[str, Any]]


def test_a_node_without_backups_is_an_error_that_names_the_playbook(call_backup: Call) -> None:
    assert "baremetal.inference.backup" in call_backup(backup_facts)["msg"]


def test_facts_have_the_snapshots_and_the_last_jobs(
    call_backup: Call, timers: TimerSystemd, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_backup(backup, **NODE)
    calls = answer_restic(monkeypatch, {"snapshots": Outcome(0, stdout=json.dumps([SNAPSHOT]))})
    state.end(places, jobs.open_node(places)[0], "backup", 4000.0)
    found = call_backup(backup_facts)
    assert [snapshot["id"] for snapshot in found["snapshots"]] == ["abababab"] and found["changed"] is False
    assert "n1" in calls[-1] and found["state"]["backup"]["succeeded"] == 4000.0
    assert found["repository"] == "/srv/x" and "very-secret" not in json.dumps(found)
    call_backup(backup_facts, host="n2")
    assert "n2" in calls[-1] and "n1" not in calls[-1]


def test_a_repository_that_fails_is_reported(
    call_backup: Call, timers: TimerSystemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_backup(backup, **NODE)
    answer_restic(monkeypatch, {"snapshots": Outcome(12, stderr="wrong password or no key found")})
    found = call_backup(backup_facts)
    assert found["failed"] is True and "password" in found["msg"]
