# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pins: a release that stays although the inventory asks for another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import pins

NEVER = "2026-01-01T00:00:00Z"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path)


def keep(paths: Paths, desired: int, *numbers: int) -> None:
    """Releases on disk, and the release that the inventory asks for."""
    for number in numbers:
        paths.release("main", number).mkdir(parents=True)
    files.write_json(paths.instance("main"), {"schema": 1, "release": desired})


def test_a_pin_lasts_until_the_inventory_changes(paths: Paths) -> None:
    keep(paths, 2, 1, 2, 3)
    assert pins.wanted_number(paths, "main") == 2
    assert pins.settle(paths, "main", 1, "rolled back", NEVER) is True
    assert pins.settle(paths, "main", 1, "rolled back", NEVER) is False
    assert pins.wanted_number(paths, "main") == 1
    files.write_json(paths.instance("main"), {"schema": 1, "release": 3})
    assert pins.wanted_number(paths, "main") == 3


def test_a_pin_is_outdated_if_the_inventory_now_asks_for_a_third_release(paths: Paths) -> None:
    keep(paths, 2, 1, 2, 3)
    assert pins.outdated(paths, "main", 2) is False
    pins.settle(paths, "main", 1, "rolled back", NEVER)
    assert (pins.outdated(paths, "main", 2), pins.outdated(paths, "main", 3)) == (False, True)


def test_a_release_that_the_inventory_asks_for_needs_no_pin(paths: Paths) -> None:
    keep(paths, 2, 1, 2)
    pins.settle(paths, "main", 1, "rolled back", NEVER)
    assert pins.settle(paths, "main", 2, "forward again", NEVER) is True
    assert pins.read(paths, "main") is None


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"schema": 1, "release": "x"}'])
def test_a_damaged_pin_and_a_pin_of_a_removed_release_pin_nothing(paths: Paths, text: str) -> None:
    keep(paths, 2, 1, 2)
    files.write(paths.pin("main"), text)
    assert pins.wanted_number(paths, "main") == 2
    files.write(paths.pin("main"), None)
    pins.settle(paths, "main", 1, "rolled back", NEVER)
    paths.release("main", 1).rmdir()
    assert pins.wanted_number(paths, "main") == 2


def test_a_pin_of_another_release_than_the_one_that_serves_is_removed(paths: Paths) -> None:
    keep(paths, 2, 1, 2, 3)
    assert pins.loosen(paths, "main", 2) is False
    pins.settle(paths, "main", 3, "set", NEVER)
    assert pins.loosen(paths, "main", 3) is False
    assert pins.loosen(paths, "main", 2) is True
    assert pins.wanted_number(paths, "main") == 2


def test_a_pin_has_its_reason_in_its_text(paths: Paths) -> None:
    keep(paths, 2, 1, 2)
    pins.settle(paths, "main", 1, "rolled back", NEVER, back=True)
    pin = pins.read(paths, "main")
    assert pin is not None and pin.back
    assert str(pin) == f"release 1 instead of 2 since {NEVER}: rolled back"
