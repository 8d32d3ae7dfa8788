# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module engine_drain: an owner drains and undrains, and leaves the drains of others alone."""

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
    """Calls the module as owner `update`, for the instance `main`, which runs."""
    monkeypatch.setattr(engine_drain, "Paths", lambda: two_instances)
    return lambda **given: run_module(engine_drain, **{"name": "main", "owner": "update", **given})


def recorded(paths: Paths) -> tuple[str, str] | None:
    found = drains.read(paths, "main", datetime.now(UTC))
    return (found.owner, found.reason) if found else None


def test_an_owner_drains_and_undrains(drain: Drain, two_instances: Paths) -> None:
    found = drain(reason="release 2 comes", check=True)
    assert (found["changed"], found["drained_by"], recorded(two_instances)) == (True, "update", None)
    found = drain(reason="release 2 comes")
    assert (found["changed"], found["drained_by"]) == (True, "update")
    assert recorded(two_instances) == ("update", "release 2 comes")
    assert drain(reason="release 2 comes")["changed"] is False
    assert drain(reason="release 3 comes")["changed"] is True
    assert recorded(two_instances) == ("update", "release 3 comes")
    found = drain(state="undrained", check=True)
    assert (found["changed"], found["drained_by"]) == (True, "") and recorded(two_instances)
    found = drain(state="undrained")
    assert (found["changed"], found["drained_by"], recorded(two_instances)) == (True, "", None)
    assert drain(state="undrained")["changed"] is False


def test_the_drain_of_another_owner_stays(drain: Drain, two_instances: Paths) -> None:
    drain(owner="mira", reason="a test")
    for given in ({"reason": "release 2 comes"}, {"state": "undrained"}):
        found = drain(**given)
        assert (found["changed"], found["drained_by"]) == (False, "mira")
    assert recorded(two_instances) == ("mira", "a test")
