# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pruning in place of a node that cannot delete."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.backup import elsewhere, restic
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome

NOW = datetime(2026, 11, 26, tzinfo=UTC).timestamp()
OLD = {"short_id": "aaaaaaaa", "time": "2020-01-01T00:00:00Z"}
GOOD = {"short_id": "bbbbbbbb", "time": "2026-11-25T02:30:00.123456789Z"}
AHEAD = {"short_id": "cccccccc", "time": "2031-01-01T00:00:00Z"}


class Fake:
    """A restic that has `snapshots`, and would remove `removed`."""

    def __init__(self, snapshots: Sequence[Mapping[str, str]], removed: Sequence[Mapping[str, str]] = ()) -> None:
        self.snapshots = list(snapshots)
        self.removed = removed
        self.refuses = False
        self.damaged = False
        self.forget = f"words\n{json.dumps([{'host': 'n1', 'keep': [], 'remove': removed or None}])}\n"
        self.calls: list[list[str]] = []

    def __call__(self, command: Sequence[str], timeout: float, environment: Mapping[str, str]) -> Outcome:
        self.calls.append([word for word in command if word not in ("restic", "--no-cache")])
        if "snapshots" in command:
            return Outcome(0, stdout=json.dumps(self.snapshots))
        if "check" in command and self.damaged:
            return Outcome(1, stderr="Fatal: repository contains errors")
        if "--prune" in command and not self.refuses:
            self.snapshots = [one for one in self.snapshots if one not in self.removed]
        return Outcome(0, stdout=self.forget if "--dry-run" in command else "")

    def prune(self, check: bool = False) -> dict[str, list[str]]:
        target = restic.Restic(restic.Access("/srv/x", "/p", {}), run=self)
        return elsewhere.prune(target, "n1", "90d", 1, NOW, check=check)


def test_old_snapshots_are_removed() -> None:
    fake = Fake([OLD, GOOD], [OLD])
    assert fake.prune(check=True) == {"removed": ["aaaaaaaa"], "kept": ["bbbbbbbb"], "ahead": []}
    assert not any("--prune" in call for call in fake.calls)
    assert fake.prune() == {"removed": ["aaaaaaaa"], "kept": ["bbbbbbbb"], "ahead": []}
    words = ["--host", "n1", "--tag", "inference-node", "--group-by", "host", "--keep-within", "90d"]
    assert fake.calls[-5:-1] == [["unlock"], ["check", "--read-data"], ["unlock"], ["forget", *words, "--prune"]]


def test_a_damaged_repository_is_not_pruned() -> None:
    fake = Fake([OLD, GOOD], [OLD])
    fake.damaged = True
    with pytest.raises(restic.ResticError, match="repository contains errors"):
        fake.prune()
    assert not any("--prune" in call for call in fake.calls)


def test_a_server_that_still_refuses_deletions_is_an_error() -> None:
    """The exit code of restic 0.18 is 0 all the same."""
    fake = Fake([OLD, GOOD], [OLD])
    fake.refuses = True
    with pytest.raises(restic.ResticError, match="snapshots aaaaaaaa of n1 are still there"):
        fake.prune()


def test_a_snapshot_of_the_future_is_reported_as_ahead() -> None:
    assert Fake([GOOD, AHEAD]).prune() == {"removed": [], "kept": ["bbbbbbbb", "cccccccc"], "ahead": ["cccccccc"]}


def test_without_old_snapshots_nothing_is_unlocked_or_pruned() -> None:
    for fake in (Fake([]), Fake([GOOD])):
        assert fake.prune()["removed"] == []
        assert not any("--prune" in call or "unlock" in call for call in fake.calls)


@pytest.mark.parametrize("text", ["1y", "6m", "90d", "36h", "1y6m", "1y0d", "2y5m7d3h"])
def test_a_valid_duration_has_no_problem(text: str) -> None:
    assert elsewhere.duration_problem(text) == ""


@pytest.mark.parametrize("text", ["", "0d", "7", "1w", "d", "1d1y", "-1y", "1y ", "1y\n", "unlimited"])
def test_an_invalid_duration_is_named(text: str) -> None:
    assert f"backup_keep_within is {text!r}: use years" in elsewhere.duration_problem(text)
