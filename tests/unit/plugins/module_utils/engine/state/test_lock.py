# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock of a node: which run has it, and how another run gets it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import lock
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import format_time

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path)


def holder(run_id: str, playbook: str = "baremetal.inference.update_model") -> lock.Lock:
    return lock.Lock(run_id, "mira", "admin1", playbook, format_time(NOW), lock.until(NOW, 300))


def test_one_run_has_the_lock(paths: Paths) -> None:
    assert lock.read(paths) is None
    assert lock.take(paths, holder("a"), NOW) == (True, None)
    assert lock.take(paths, holder("a"), NOW) == (False, None)
    with pytest.raises(
        lock.Locked, match=r"run a of baremetal.inference.update_model by mira on admin1.* -e take_lock=a"
    ) as refused:
        lock.take(paths, holder("b"), NOW)
    assert refused.value.holder == holder("a")
    assert lock.release(paths, "b") is False
    assert lock.held(paths, NOW) == lock.read(paths)
    assert lock.release(paths, "a") is True
    assert lock.read(paths) is None


def test_check_mode_takes_no_lock(paths: Paths) -> None:
    assert lock.take(paths, holder("a"), NOW, check=True) == (True, None)
    assert lock.read(paths) is None


def test_only_the_same_playbook_takes_over_a_stale_lock(paths: Paths) -> None:
    lock.take(paths, holder("a"), NOW)
    later = NOW + timedelta(seconds=301)
    assert lock.held(paths, later) is None
    with pytest.raises(lock.Locked, match="no sign of life"):
        lock.take(paths, holder("b", "baremetal.inference.maintenance"), later)
    changed, adopted = lock.take(paths, holder("c"), later)
    assert changed and adopted is not None and adopted.run_id == "a"


@pytest.mark.parametrize("file", ["update_model.yml", "update-model.yml"])
def test_an_update_takes_over_a_stale_lock_that_names_the_file_of_its_playbook(paths: Paths, file: str) -> None:
    lock.take(paths, holder("a", file), NOW)
    with pytest.raises(
        lock.Locked, match=r"run a of baremetal.inference.update_model .*run baremetal.inference.update_model again"
    ):
        lock.refuse_while_held(paths, NOW)
    changed, adopted = lock.take(paths, holder("b"), NOW + timedelta(seconds=301))
    assert changed and adopted is not None and adopted.run_id == "a"


def test_a_run_that_takes_no_lock_is_refused_while_a_lock_is_in_force(paths: Paths) -> None:
    lock.refuse_while_held(paths, NOW)
    lock.take(paths, holder("a"), NOW)
    with pytest.raises(
        lock.Locked, match=r"run a of baremetal.inference.update_model .*run baremetal.inference.update_model again"
    ):
        lock.refuse_while_held(paths, NOW)
    lock.refuse_while_held(paths, NOW + timedelta(seconds=301))


def test_a_run_that_names_the_run_id_takes_over_a_lock_in_force(paths: Paths) -> None:
    lock.take(paths, holder("a"), NOW)
    changed, adopted = lock.take(paths, holder("b", "baremetal.inference.maintenance"), NOW, "a")
    assert changed and adopted is not None and adopted.run_id == "a"
    with pytest.raises(lock.Locked):
        lock.take(paths, holder("c"), NOW, "a")


def test_a_damaged_lock_names_its_file(paths: Paths) -> None:
    for text in ("{", "{}", '{"schema": 1, "run_id": "a"}'):
        files.write(paths.lock, text)
        assert lock.held(paths, NOW) is None
        with pytest.raises(ValueError, match=str(paths.lock)):
            lock.take(paths, holder("b"), NOW)


def test_a_refusal_names_only_options_that_the_caller_has(paths: Paths) -> None:
    """`inferctl swap` has no option take_lock, and no playbook continues a swap that an operator started by hand."""
    by_hand = holder("b", lock.BY_HAND)
    later = NOW + timedelta(seconds=301)
    lock.take(paths, by_hand, NOW)
    with pytest.raises(lock.Locked, match=r"inferctl status shows its step\.$"):
        lock.take(paths, holder("a"), NOW)
    with pytest.raises(lock.Locked, match=r"Then: baremetal.inference.update_model with -e take_lock=b\.$"):
        lock.take(paths, holder("a"), later)
    lock.release(paths, "b")
    lock.take(paths, holder("a"), NOW)
    with pytest.raises(
        lock.Locked, match=r"Run baremetal.inference.update_model again, which goes on from where it stopped\.$"
    ):
        lock.take(paths, by_hand, later)
