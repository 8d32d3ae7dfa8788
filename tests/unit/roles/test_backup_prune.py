# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pruning in place of a host that cannot delete, with a stand-in for the module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

VARIABLES: dict[str, Any] = {
    "backup_models_path": "/mnt/models",
    "backup_append_only": True,
    "backup_repository": "rest:https://store:8000/a",
    "backup_password": "very-secret-1",
    "backup_environment": {"RESTIC_REST_USERNAME": "a", "RESTIC_REST_PASSWORD": "very-secret-2"},
    "backup_prune_environment": {"RESTIC_REST_USERNAME": "admin", "RESTIC_REST_PASSWORD": "very-secret-3"},
}

DONE = {"removed": ["aaaaaaaa"], "kept": ["bbbbbbbb", "cccccccc"], "ahead": []}


class Prune:
    """The prune of one host."""

    def __init__(self, stage: Any) -> None:
        self.stage = stage

    def run(self, done: dict[str, Any], *options: str, **changed: Any) -> tuple[bool, str]:
        """Whether the run succeeded, and what it printed."""
        task = {"ansible.builtin.include_role": {"name": "baremetal.inference.backup", "tasks_from": "prune"}}
        play = {"hosts": "a", "vars": {**VARIABLES, **changed}, "tasks": [task]}
        found: tuple[bool, str] = self.stage.run([play], "a", *options, seen=[({"module": "backup_prune"}, done)])
        return found


@pytest.fixture
def prune(staged: Callable[..., Any]) -> Prune:
    return Prune(staged(("backup_prune",)))


def test_old_snapshots_are_removed_with_other_credentials_than_the_hosts_own(prune: Prune) -> None:
    succeeded, output = prune.run(DONE, backup_prune_repository="rest:https://store:8001/a")
    assert succeeded and "a: 1 snapshot removed, 2 kept" in output and "LOOK" not in output, output
    (call,) = prune.stage.calls(module="backup_prune")
    assert (call["repository"], call["host"], call["keep_within"]) == ("rest:https://store:8001/a", "a", "1y")
    assert call["environment"] == VARIABLES["backup_prune_environment"] and "very-secret" not in output


@pytest.mark.once
def test_snapshots_of_the_future_are_reported(prune: Prune) -> None:
    succeeded, output = prune.run({**DONE, "ahead": ["cccccccc"]}, "--check")
    assert succeeded, output
    assert "1 snapshot would be removed, 2 kept. LOOK AT THIS HOST: snapshots dated in the future (cccccccc)" in output


@pytest.mark.once
def test_a_host_that_prunes_itself_is_left_alone_and_fails_no_run(prune: Prune) -> None:
    succeeded, output = prune.run(DONE, backup_append_only=False, backup_prune_environment={})
    assert succeeded, output
    assert "a: backup_append_only is false, so this host removes its old snapshots itself" in output
    assert prune.stage.calls(module="backup_prune") == []


@pytest.mark.once
@pytest.mark.parametrize("given", [VARIABLES["backup_environment"], {}])
def test_pruning_with_the_hosts_own_credentials_is_refused(prune: Prune, given: dict[str, Any]) -> None:
    succeeded, output = prune.run(DONE, backup_prune_environment=given)
    assert not succeeded and "are those of a itself, which cannot delete" in output, output
    assert prune.stage.calls(module="backup_prune") == []
