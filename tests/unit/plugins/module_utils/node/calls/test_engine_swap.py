# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module engine_swap: begun, proven, and begun again after a run that was cut off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import load_time
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import history, pins, releases, swaps
from ansible_collections.baremetal.inference.plugins.module_utils.node.calls import engine_swap

Swap = Callable[..., dict[str, Any]]


@pytest.fixture
def swap(two_instances: Paths, monkeypatch: pytest.MonkeyPatch, run_module: Callable[..., dict[str, Any]]) -> Swap:
    """Calls the module for `main`, which runs release 1 and has a second one."""
    monkeypatch.setattr(engine_swap, "Paths", lambda: two_instances)
    monkeypatch.setattr(load_time, "seconds", lambda name: 40.0)
    first = releases.text_of(two_instances, "main", 1)
    releases.stage(two_instances, "main", "another", lambda number: renumbered(first, number), pytest.fail)
    return lambda **given: run_module(engine_swap, name="main", **given)


def renumbered(kept: Any, number: int) -> Any:
    """The same as a release of another number and identity."""
    return replace(kept, release=replace(kept.release, number=number, id="another"))


def test_a_swap_is_noted_before_its_release_starts(swap: Swap, two_instances: Paths) -> None:
    assert swap(release=2, run_id="run1", check=True)["changed"] and swaps.read(two_instances, "main") is None
    assert releases.active_number(two_instances, "main") == 1
    found = swap(release=2, run_id="run1")
    assert (found["changed"], found["origin"]) == (True, 1)
    noted = swaps.read(two_instances, "main")
    assert noted and (noted.origin, noted.target, noted.run_id, noted.back) == (1, 2, "run1", False)
    assert releases.active_number(two_instances, "main") == 2
    assert swap(release=2, run_id="run1")["changed"] is False


def test_a_swap_that_was_cut_off_goes_back_to_what_really_ran(swap: Swap, two_instances: Paths) -> None:
    swap(release=2)
    assert swap(release=1, back=True)["origin"] == 1
    noted = swaps.read(two_instances, "main")
    assert noted and noted.back and releases.active_number(two_instances, "main") == 1


def test_what_proved_itself_is_kept_and_ends_the_swap(swap: Swap, two_instances: Paths) -> None:
    swap(release=2)
    found = swap(release=2, state="proven", tokens_per_second=33.0, reason="update_model.yml by mira")
    assert (found["changed"], found["load_seconds"], found["pinned"]) == (True, 40.0, False)
    assert swaps.read(two_instances, "main") is None and releases.current_number(two_instances, "main") == 2
    served = history.last(two_instances, "main", 2)
    assert served and (served.load_seconds, served.tokens_per_second) == (40.0, 33.0)


def test_another_release_than_the_one_that_runs_is_not_proven(swap: Swap, two_instances: Paths) -> None:
    said = swap(release=2, state="proven")
    assert said["failed"] and "names release 1, and not 2" in said["msg"]
    assert releases.current_number(two_instances, "main") is None


@pytest.mark.parametrize("pin", [True, False])
def test_what_the_inventory_does_not_ask_for_is_pinned(swap: Swap, two_instances: Paths, pin: bool) -> None:
    desired = two_instances.instance("main")
    desired.parent.mkdir(parents=True, exist_ok=True)
    desired.write_text('{"schema": 1, "name": "main", "release": 1}')
    swap(release=2)
    found = swap(release=2, state="proven", pin=pin, reason="a try")
    assert found["pinned"] == pin
    assert (pins.in_force(two_instances, "main", 1) is not None) == pin
