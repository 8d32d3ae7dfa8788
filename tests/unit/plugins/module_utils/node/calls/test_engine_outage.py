# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module engine_outage: what it reports of an outage, and how it fails. test_outage.py tests the outage itself."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import swap_settings
from ansible_collections.baremetal.inference.plugins.module_utils.node.calls import engine_outage
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.outage import Outage, Refused
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.proof import Unfit

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def outage(two_instances: Paths, monkeypatch: pytest.MonkeyPatch, run_module: Run) -> Run:
    """Calls the module for `main`, on a node without gateways."""
    monkeypatch.setattr(engine_outage, "Paths", lambda: two_instances)
    two_instances.swap_settings.parent.mkdir(parents=True, exist_ok=True)
    two_instances.swap_settings.write_text(swap_settings.text({"node": "n1", "gateways": []}))
    return lambda **given: run_module(
        engine_outage, **{"names": ["main"], "owner": "maintenance", "reason": "a new disk", **given}
    )


def test_remaining_requests_are_reported_as_not_reached(outage: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[float, Collection[str]]] = []

    def requests(_self: Outage, seconds: float, last: Collection[str]) -> list[str]:
        seen.append((seconds, list(last)))
        return ["gw1 does not know of the drain of main", "main has 3 connections of clients"]

    monkeypatch.setattr(Outage, "requests", requests)
    found = outage(seconds=7, last=["main"])
    assert (found["changed"], found["reached"]) == (True, False) and len(found["words"]) == 2
    assert found["msg"] == "gw1 does not know of the drain of main; main has 3 connections of clients"
    assert seen == [(7, ["main"])]
    monkeypatch.setattr(Outage, "requests", lambda *_given: [])
    assert outage()["reached"] is True and outage()["changed"] is False
    # Check mode does not wait.
    monkeypatch.setattr(Outage, "requests", lambda *_given: pytest.fail("check mode waited"))
    assert outage(check=True)["reached"] is True


def test_the_end_of_an_outage_waits_until_gateways_send_full_shares(
    outage: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Outage, "requests", lambda *_given: [])
    monkeypatch.setattr(Outage, "share", lambda _self, seconds: ["gw1 has n1 as DOWN"])
    outage()
    monkeypatch.setattr(engine_outage.proof, "accept", lambda *_given: None)
    found = outage(state="ended")
    assert (found["changed"], found["reached"], found["msg"]) == (True, False, "gw1 has n1 as DOWN")
    assert outage(state="ended", check=True)["reached"] is True


@pytest.mark.parametrize(
    "error", [Refused("gw1 would have no server left"), Unfit("it is not fit"), OSError("disk full")]
)
def test_an_error_of_the_outage_fails_the_call(outage: Run, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def refuse(*_given: object, **_more: object) -> bool:
        raise error

    monkeypatch.setattr(Outage, "begin", refuse)
    said = outage()
    assert said["failed"] and said["msg"] == str(error)


def test_a_call_without_names_needs_no_swap_settings(outage: Run, two_instances: Paths) -> None:
    two_instances.swap_settings.unlink()
    assert outage(names=[])["reached"] is True
    said = outage()
    assert said["failed"] and "run baremetal.inference.site" in said["msg"]
