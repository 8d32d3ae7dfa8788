# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module backup_prune: what it removes and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.backup import restic
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.modules import backup_prune

from ..backup_harness import SNAPSHOT, answer_restic

Call = Callable[..., dict[str, Any]]

OPTIONS: dict[str, Any] = {
    "repository": "rest:http://store:8001/n1",
    "password": "very-secret-1",
    "environment": {"RESTIC_REST_USERNAME": "admin", "RESTIC_REST_PASSWORD": "very-secret-2"},
    "host": "n1",
    "keep_within": "1y",
}


def test_old_snapshots_are_removed(run_module: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    forget = Outcome(0, stdout=json.dumps([{"remove": [SNAPSHOT]}]))
    answers = {"forget": forget, "unlock": Outcome(0), "check": Outcome(0)}
    calls = answer_restic(monkeypatch, answers)
    listed = iter([[SNAPSHOT], [SNAPSHOT], []])
    monkeypatch.setattr(restic.Restic, "snapshots", lambda *_arguments: next(listed))
    predicted = run_module(backup_prune, check=True, **OPTIONS)
    assert not any("--prune" in call for call in calls)
    done = run_module(backup_prune, **OPTIONS)
    assert "--prune" in calls[-1] and calls[-1][calls[-1].index("--keep-within") + 1] == "1y"
    for found in (predicted, done):
        assert (found["changed"], found["removed"], found["kept"]) == (True, ["abababab"], [])
    assert "very-secret" not in json.dumps([calls, predicted, done])
    listed = iter([[]])
    assert run_module(backup_prune, **OPTIONS)["changed"] is False


def test_all_mistakes_are_reported_at_once(run_module: Call) -> None:
    wrong = {"repository": "b2:x", "keep_within": "7", "environment": {"RESTIC_PASSWORD": "very-secret-2"}}
    said = run_module(backup_prune, **{**OPTIONS, **wrong})["msg"]
    for words in (
        "backup_prune_repository: 'b2:x'",
        "backup_keep_within is '7'",
        "backup_prune_environment: RESTIC_PASSWORD",
        "Nothing was pruned",
    ):
        assert words in said


def test_a_missing_restic_and_a_wrong_password_are_errors(run_module: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_restic(monkeypatch, {"snapshots": Outcome(None, failure="not_installed")})
    assert "restic is not installed on this machine" in run_module(backup_prune, **OPTIONS)["msg"]
    answer_restic(monkeypatch, {"snapshots": Outcome(12, stderr="wrong password or no key found")})
    assert "does not open with this password" in run_module(backup_prune, **OPTIONS)["msg"]


def test_refused_credentials_are_an_error_that_names_their_variables(
    run_module: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_restic(monkeypatch, {"snapshots": Outcome(1, stderr="server response unexpected: 401 Unauthorized")})
    said = run_module(backup_prune, **OPTIONS)["msg"]
    assert "The credentials are those of backup_prune_environment, for the server of backup_prune_repository" in said
