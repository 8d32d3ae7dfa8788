# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node's lock, pins, history and swaps, as an update uses them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import history, lock, pins, swaps
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import format_time

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
NEVER = "2026-01-01T00:00:00Z"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path)


def wish(run_id: str, playbook: str = "update-model.yml") -> lock.Lock:
    return lock.Lock(run_id, "mira", "admin1", playbook, format_time(NOW), lock.until(NOW, 300))


def keep(paths: Paths, desired: int, *numbers: int) -> None:
    """Releases on disk, and the inventory's wish."""
    for number in numbers:
        paths.release("main", number).mkdir(parents=True)
    files.write_json(paths.instance("main"), {"schema": 1, "release": desired})


def test_one_run_has_the_lock(paths: Paths) -> None:
    assert lock.read(paths) is None
    assert lock.take(paths, wish("a"), NOW) == (True, None)
    assert lock.take(paths, wish("a"), NOW) == (False, None)
    with pytest.raises(lock.Locked, match=r"run a of update-model.yml by mira on admin1.* -e take_lock=a") as refused:
        lock.take(paths, wish("b"), NOW)
    assert refused.value.holder == wish("a")
    assert lock.release(paths, "b") is False
    assert lock.held(paths, NOW) == lock.read(paths)
    assert lock.release(paths, "a") is True
    assert lock.read(paths) is None


def test_check_mode_only_tells(paths: Paths) -> None:
    assert lock.take(paths, wish("a"), NOW, check=True) == (True, None)
    assert lock.read(paths) is None


def test_a_stale_lock_is_for_the_same_playbook(paths: Paths) -> None:
    lock.take(paths, wish("a"), NOW)
    later = NOW + timedelta(seconds=301)
    assert lock.held(paths, later) is None
    with pytest.raises(lock.Locked, match="no sign of life"):
        lock.take(paths, wish("b", "maintenance.yml"), later)
    changed, adopted = lock.take(paths, wish("c"), later)
    assert changed and adopted is not None and adopted.run_id == "a"


def test_who_takes_no_lock_waits_for_one_in_force(paths: Paths) -> None:
    lock.refuse_while_held(paths, NOW)
    lock.take(paths, wish("a"), NOW)
    with pytest.raises(lock.Locked, match=r"run a of update-model.yml .*run update-model.yml again"):
        lock.refuse_while_held(paths, NOW)
    lock.refuse_while_held(paths, NOW + timedelta(seconds=301))


def test_a_lock_is_taken_by_its_name(paths: Paths) -> None:
    lock.take(paths, wish("a"), NOW)
    changed, adopted = lock.take(paths, wish("b", "maintenance.yml"), NOW, "a")
    assert changed and adopted is not None and adopted.run_id == "a"
    with pytest.raises(lock.Locked):
        lock.take(paths, wish("c"), NOW, "a")


def test_a_damaged_lock_names_its_file(paths: Paths) -> None:
    for text in ("{", "{}", '{"schema": 1, "run_id": "a"}'):
        files.write(paths.lock, text)
        assert lock.held(paths, NOW) is None
        with pytest.raises(ValueError, match=str(paths.lock)):
            lock.take(paths, wish("b"), NOW)


def test_a_pin_holds_until_the_inventory_changes(paths: Paths) -> None:
    keep(paths, 2, 1, 2, 3)
    assert pins.wanted_number(paths, "main") == 2
    assert pins.settle(paths, "main", 1, "rolled back", NEVER) is True
    assert pins.settle(paths, "main", 1, "rolled back", NEVER) is False
    assert pins.wanted_number(paths, "main") == 1
    files.write_json(paths.instance("main"), {"schema": 1, "release": 3})
    assert pins.wanted_number(paths, "main") == 3


def test_what_the_inventory_asks_for_needs_no_pin(paths: Paths) -> None:
    keep(paths, 2, 1, 2)
    pins.settle(paths, "main", 1, "rolled back", NEVER)
    assert pins.settle(paths, "main", 2, "forward again", NEVER) is True
    assert pins.read(paths, "main") is None


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"schema": 1, "release": "x"}'])
def test_a_pin_that_is_damaged_or_leads_nowhere_pins_nothing(paths: Paths, text: str) -> None:
    keep(paths, 2, 1, 2)
    files.write(paths.pin("main"), text)
    assert pins.wanted_number(paths, "main") == 2
    files.write(paths.pin("main"), None)
    pins.settle(paths, "main", 1, "rolled back", NEVER)
    paths.release("main", 1).rmdir()
    assert pins.wanted_number(paths, "main") == 2


def test_the_history_leads_back(paths: Paths) -> None:
    keep(paths, 3, 1, 2, 3)
    assert history.previous(paths, "main", 1) is None
    for number in (1, 2, 3):
        assert history.add(paths, "main", history.Served(number, NEVER, 20.0 + number)) is True
    assert history.previous(paths, "main", 3) == 2
    # Back to 2: what served before that is 3.
    history.add(paths, "main", history.Served(2, NEVER))
    assert history.previous(paths, "main", 2) == 3
    paths.release("main", 3).rmdir()
    assert history.previous(paths, "main", 2) == 1


def test_a_rollback_leads_to_the_same_place_however_often_it_is_asked(paths: Paths) -> None:
    keep(paths, 2, 1, 2, 3)
    for number in (1, 2):
        history.add(paths, "main", history.Served(number, NEVER))

    def target(active: int) -> int | None:
        return history.back_target(paths, "main", active, 2)

    assert target(2) == 1
    # A node that the update has not reached stays.
    assert target(1) == 1
    # Cut off in the middle of the rollback, before and after the switch.
    swaps.begin(paths, "main", swaps.Swap(2, 1, "a", NEVER, back=True))
    assert (target(2), target(1)) == (1, 1)
    # Cut off in the middle of the update: back is where that began.
    swaps.begin(paths, "main", swaps.Swap(1, 2, "a", NEVER))
    assert (target(1), target(2)) == (1, 1)
    swaps.end(paths, "main")
    pins.settle(paths, "main", 1, "rolled back", NEVER, back=True)
    history.add(paths, "main", history.Served(1, NEVER))
    assert target(1) == 1
    # Another model that was set for once is what a rollback takes back.
    pins.settle(paths, "main", 3, "set", NEVER)
    history.add(paths, "main", history.Served(3, NEVER))
    assert target(3) == 1


def test_what_is_put_back_keeps_no_pin_of_what_failed(paths: Paths) -> None:
    keep(paths, 2, 1, 2, 3)
    assert pins.loosen(paths, "main", 2) is False
    pins.settle(paths, "main", 3, "set", NEVER)
    assert pins.loosen(paths, "main", 3) is False
    assert pins.loosen(paths, "main", 2) is True
    assert pins.wanted_number(paths, "main") == 2


def test_the_same_release_again_only_adds_what_was_not_known(paths: Paths) -> None:
    history.add(paths, "main", history.Served(1, "2026-02-02T00:00:00Z", 20.0))
    assert history.add(paths, "main", history.Served(1, NEVER, None, 300.0)) is True
    assert history.read(paths, "main") == [history.Served(1, "2026-02-02T00:00:00Z", 20.0, 300.0)]
    assert history.add(paths, "main", history.Served(1, NEVER)) is False
    assert history.last(paths, "main", 2) is None


def test_a_long_history_is_cut(paths: Paths) -> None:
    for number in range(60):
        history.add(paths, "main", history.Served(number, NEVER))
    assert [entry.release for entry in history.read(paths, "main")] == list(range(10, 60))


def test_a_damaged_history_is_none(paths: Paths) -> None:
    files.write(paths.history("main"), '{"schema": 1, "served": [{"x": 1}]}')
    assert history.read(paths, "main") == []


def test_a_swap_is_noted(paths: Paths) -> None:
    swap = swaps.Swap(1, 2, "a", NEVER)
    assert swaps.read(paths, "main") is None
    assert swaps.begin(paths, "main", swap) is True
    assert swaps.read(paths, "main") == swap
    assert swaps.end(paths, "main") is True
    assert swaps.end(paths, "main") is False
    files.write(paths.swap("main"), "[]")
    assert swaps.read(paths, "main") is None
