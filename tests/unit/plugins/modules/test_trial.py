# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module trial: ends what is on trial, and nothing in check mode."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian.trial import TrialError
from ansible_collections.baremetal.inference.plugins.modules import trial

from .conftest import RunModule


class Pending:
    """A change on trial, and what was done with it."""

    def __init__(self, pending: bool = True) -> None:
        self.pending = pending
        self.names: list[str] = []
        self.done: list[str] = []

    def __call__(self, name: str) -> Pending:
        self.names.append(name)
        return self

    def confirm(self) -> None:
        if not self.pending:
            raise TrialError("The trial was over before it was confirmed: the old state is back.")
        self.done.append("confirm")

    def rollback(self) -> bool:
        self.done.append("rollback")
        return self.pending


@pytest.fixture
def pending(monkeypatch: pytest.MonkeyPatch) -> Pending:
    found = Pending()
    monkeypatch.setattr(trial, "Trial", found)
    return found


@pytest.mark.parametrize("phase", ["confirm", "rollback"])
def test_check_mode_predicts_and_ends_nothing(pending: Pending, run_module: RunModule, phase: str) -> None:
    assert run_module(trial, check=True, name="ssh", phase=phase)["changed"]
    assert pending.done == []
    assert run_module(trial, name="ssh", phase=phase)["changed"]
    assert (pending.done, pending.names) == ([phase], ["ssh", "ssh"])


def test_a_trial_that_was_over_is_not_confirmed(pending: Pending, run_module: RunModule) -> None:
    pending.pending = False
    found = run_module(trial, name="admins", phase="confirm")
    assert (found["failed"], "the old state is back" in found["msg"]) == (True, True)


def test_there_may_be_nothing_to_bring_back(pending: Pending, run_module: RunModule) -> None:
    pending.pending = False
    assert run_module(trial, name="admins", phase="rollback")["changed"] is False
