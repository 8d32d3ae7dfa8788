# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The releases that have served, and the release that a rollback leads to."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import history, pins, swaps

NEVER = "2026-01-01T00:00:00Z"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path)


def keep(paths: Paths, desired: int, *numbers: int) -> None:
    """Releases on disk, and the release that the inventory asks for."""
    for number in numbers:
        paths.release("main", number).mkdir(parents=True)
    files.write_json(paths.instance("main"), {"schema": 1, "release": desired})


def test_a_rollback_leads_to_the_release_that_served_before(paths: Paths) -> None:
    keep(paths, 3, 1, 2, 3)
    assert history.previous(paths, "main", 1) is None
    for number in (1, 2, 3):
        assert history.add(paths, "main", history.Served(number, NEVER, 20.0 + number)) is True
    assert history.previous(paths, "main", 3) == 2
    # Release 2 serves again. Release 3 served before it.
    history.add(paths, "main", history.Served(2, NEVER))
    assert history.previous(paths, "main", 2) == 3
    paths.release("main", 3).rmdir()
    assert history.previous(paths, "main", 2) == 1


def test_a_repeated_rollback_has_the_same_target(paths: Paths) -> None:
    keep(paths, 2, 1, 2, 3)
    for number in (1, 2):
        history.add(paths, "main", history.Served(number, NEVER))

    def target(active: int) -> int | None:
        return history.back_target(paths, "main", active, 2)

    assert target(2) == 1
    # A node that the update has not reached keeps its release.
    assert target(1) == 1
    # The rollback was cut off before or after release 1 became active.
    swaps.begin(paths, "main", swaps.Swap(2, 1, "a", NEVER, back=True))
    assert (target(2), target(1)) == (1, 1)
    # The update was cut off: the target is the release before the update.
    swaps.begin(paths, "main", swaps.Swap(1, 2, "a", NEVER))
    assert (target(1), target(2)) == (1, 1)
    swaps.end(paths, "main")
    pins.settle(paths, "main", 1, "rolled back", NEVER, back=True)
    history.add(paths, "main", history.Served(1, NEVER))
    assert target(1) == 1
    # A rollback undoes a model that was set with `-e set=…`.
    pins.settle(paths, "main", 3, "set", NEVER)
    history.add(paths, "main", history.Served(3, NEVER))
    assert target(3) == 1


def test_a_release_that_still_serves_keeps_its_time_and_its_measured_values(paths: Paths) -> None:
    history.add(paths, "main", history.Served(1, "2026-02-02T00:00:00Z", 20.0))
    assert history.add(paths, "main", history.Served(1, NEVER, None, 300.0)) is True
    assert history.read(paths, "main") == [history.Served(1, "2026-02-02T00:00:00Z", 20.0, 300.0)]
    assert history.add(paths, "main", history.Served(1, NEVER)) is False
    assert history.last(paths, "main", 2) is None


def test_a_long_history_is_cut(paths: Paths) -> None:
    for number in range(60):
        history.add(paths, "main", history.Served(number, NEVER))
    assert [entry.release for entry in history.read(paths, "main")] == list(range(10, 60))


@pytest.mark.parametrize(
    "entry",
    [
        {"x": 1},
        {"release": [1], "since": NEVER},
        {"release": 1, "since": 5},
        {"release": 1, "since": NEVER, "load_seconds": "20"},
    ],
)
def test_a_damaged_history_is_empty(paths: Paths, entry: dict[str, object]) -> None:
    files.write_json(paths.history("main"), {"schema": 1, "served": [entry]})
    assert history.read(paths, "main") == []


def test_releases_that_no_rollback_leads_to_are_superseded(paths: Paths) -> None:
    keep(paths, 6, *range(1, 9))
    for number in (1, 2, 3, 4):
        history.add(paths, "main", history.Served(number, NEVER))
    files.link(paths.active("main"), "5")
    swaps.begin(paths, "main", swaps.Swap(1, 2, "a", NEVER))
    # 6 is desired, 5 active, 1 and 2 of the swap, 4 served last, 8 is the newest.
    assert history.superseded(paths, 1) == [("main", 3), ("main", 7)]
    assert history.superseded(paths, 0) == []
