# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module engine_drain: an owner drains, waits and undrains, and leaves the drains of others alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import drains
from ansible_collections.baremetal.inference.plugins.module_utils.node.calls import engine_drain

from ....modules.conftest import RunModule

Drain = Callable[..., dict[str, Any]]


@pytest.fixture
def drain(two_instances: Paths, monkeypatch: pytest.MonkeyPatch, run_module: RunModule) -> Drain:
    """Calls the module for `main`, which runs, as owner `update`."""
    monkeypatch.setattr(engine_drain, "Paths", lambda: two_instances)
    monkeypatch.setattr(engine_drain, "POLL_SECONDS", 0)
    return lambda **given: run_module(engine_drain, **{"name": "main", "owner": "update", **given})


def recorded(paths: Paths) -> tuple[str, str] | None:
    found = drains.read(paths, "main", datetime.now(UTC))
    return (found.owner, found.reason) if found else None


def test_a_drain_is_recorded_and_taken_back(drain: Drain, two_instances: Paths) -> None:
    assert drain(reason="release 2 comes", check=True)["changed"] and recorded(two_instances) is None
    found = drain(reason="release 2 comes")
    assert (found["changed"], found["drained_by"]) == (True, "update")
    assert recorded(two_instances) == ("update", "release 2 comes")
    assert drain(reason="release 2 comes")["changed"] is False
    assert drain(reason="release 3 comes")["changed"] is True
    assert recorded(two_instances) == ("update", "release 3 comes")
    found = drain(state="undrained")
    assert (found["changed"], found["drained_by"], recorded(two_instances)) == (True, "", None)
    assert drain(state="undrained")["changed"] is False


def test_the_drain_of_another_owner_stays(drain: Drain, two_instances: Paths) -> None:
    drain(owner="mira", reason="a test")
    for given in ({"reason": "release 2 comes"}, {"state": "undrained"}):
        found = drain(**given)
        assert (found["changed"], found["drained_by"]) == (False, "mira")
    assert recorded(two_instances) == ("mira", "a test")


@pytest.mark.parametrize(
    ("counted", "idle", "in_flight", "words"),
    [
        ([0, 0], True, 0, ""),
        ([3, 0, 0], True, 0, ""),
        ([2, 2, 2], False, 2, "main is not idle: 2 requests are in flight"),
        ([None, None, None], False, None, "main is not idle: it does not tell"),
    ],
)
def test_an_engine_is_idle_when_it_had_no_request_twice(
    drain: Drain,
    monkeypatch: pytest.MonkeyPatch,
    counted: list[int | None],
    idle: bool,
    in_flight: int | None,
    words: str,
) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(engine_drain.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(engine_drain.idle, "in_flight", lambda paths, release: counted.pop(0))
    found = drain(state="idle", seconds=3)
    assert (found["idle"], found["in_flight"], found["msg"], counted) == (idle, in_flight, words, [])


def test_an_engine_that_does_not_run_has_no_request(drain: Drain) -> None:
    assert drain(name="other", state="idle")["idle"] is True
