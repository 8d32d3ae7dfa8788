# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module engine_swap: a swap begins, ends, or is not due."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import swap_settings
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import drains, releases, swaps
from ansible_collections.baremetal.inference.plugins.module_utils.engine.swap_terms import Terms
from ansible_collections.baremetal.inference.plugins.module_utils.node.calls import engine_swap

Swap = Callable[..., dict[str, Any]]

NOW = "2026-11-21T03:15:02Z"


@pytest.fixture
def swap(two_instances: Paths, monkeypatch: pytest.MonkeyPatch, run_module: Callable[..., dict[str, Any]]) -> Swap:
    """Calls the module for `main`, which runs release 1 and also has release 2."""
    monkeypatch.setattr(engine_swap, "Paths", lambda: two_instances)
    first = releases.text_of(two_instances, "main", 1)

    def renumbered(number: int) -> Any:
        return replace(first, release=replace(first.release, number=number, id="another"))

    releases.stage(two_instances, "main", "another", renumbered, pytest.fail)
    two_instances.swap_settings.parent.mkdir(parents=True, exist_ok=True)
    terms = {"drain_seconds": 900, "watch_seconds": 5}
    two_instances.swap_settings.write_text(swap_settings.text({"node": "n1", "gateways": [], "terms": terms}))
    return lambda **given: run_module(engine_swap, **{"name": "main", "run_id": "run1", **given})


def test_a_swap_is_recorded_with_the_terms_of_run_and_node(swap: Swap, two_instances: Paths) -> None:
    assert swap(release=2, check=True)["changed"] and swaps.read(two_instances, "main") is None
    found = swap(release=2, terms={"watch_seconds": 7, "vouched": True}, reason="by mira", counted={"at": 1.0})
    assert (found["changed"], found["ended"], found["run_id"]) == (True, False, "run1")
    recorded = swaps.read(two_instances, "main")
    assert recorded and (recorded.origin, recorded.target, recorded.run_id, recorded.back, recorded.pin) == (
        1,
        2,
        "run1",
        False,
        True,
    )
    assert recorded.terms == Terms(drain_seconds=900, watch_seconds=7, vouched=True)
    assert (recorded.reason, recorded.notes["counted"], recorded.step) == ("by mira", [{"at": 1.0}], swaps.BEGUN)
    # The module does not touch the engine.
    assert releases.active_number(two_instances, "main") == 1


def test_a_missing_release_is_refused(swap: Swap) -> None:
    said = swap(release=9)
    assert said["failed"] and "main has no release 9; it has 1, 2" in said["msg"]


def test_missing_swap_settings_are_an_error_that_names_the_playbook_to_run(swap: Swap, two_instances: Paths) -> None:
    two_instances.swap_settings.unlink()
    said = swap(release=2)
    assert said["failed"] and "run baremetal.inference.site" in said["msg"]


def test_the_end_of_a_swap_is_reported_despite_damaged_swap_settings(swap: Swap, two_instances: Paths) -> None:
    ended(two_instances, outcome=swaps.RETURNED, failure="swap.json is damaged")
    two_instances.swap_settings.write_text("{")
    assert swap(state="awaited")["failure"] == "swap.json is damaged"


def test_a_run_waits_for_the_swap_that_a_killed_run_has_begun(
    swap: Swap, two_instances: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    swap(release=2, run_id="run0")
    monkeypatch.setattr(engine_swap.request, "runs", lambda name: True)
    found = swap(release=2)
    assert (found["changed"], found["ended"], found["run_id"]) == (False, False, "run0")
    said = swap(release=1)
    assert said["failed"] and "main is being swapped for release 2 (begun)" in said["msg"]


def test_a_release_that_serves_needs_no_swap_and_its_old_drain_is_removed(swap: Swap, two_instances: Paths) -> None:
    releases.commit(two_instances, "main", 1)
    found = swap(release=1)
    assert (found["changed"], found["ended"], found["outcome"]) == (False, True, "done")
    assert found["line"] == "main already serves release 1" and found["failure"] == ""
    drains.drain(two_instances, ["main"], drains.Drain(drains.UPDATE, "release 2 comes", NOW))
    assert swap(release=1, check=True)["changed"] is True
    assert drains.read(two_instances, "main", datetime.now(UTC)) is not None
    assert swap(release=1)["changed"] is True
    assert drains.read(two_instances, "main", datetime.now(UTC)) is None


def ended(paths: Paths, **more: Any) -> None:
    """Write the report of a swap that has ended."""
    given = {"origin": 1, "target": 2, "run_id": "run1", "since": NOW, "ended": NOW, "outcome": swaps.DONE, **more}
    swaps.end(paths, "main", swaps.Report(**given))


def test_a_finished_swap_is_reported_in_one_line(swap: Swap, two_instances: Paths) -> None:
    ended(two_instances, load_seconds=21.0, drained_seconds=24.4, tokens_per_second=33.0, requests_meanwhile=40)
    found = swap(state="awaited")
    assert (found["ended"], found["outcome"], found["failure"], found["changed"]) == (True, "done", "", False)
    assert found["line"] == (
        "main on n1 serves release 2. Drained for 24 s, of which it loaded for 21 s; one request alone gets 33.0"
        " tokens/s; 40 requests for main came meanwhile"
    )


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            {"unheard": ("gw2",)},
            "cannot tell whether gw2 sends requests to main on n1, because gw2 cannot be reached, or HAProxy there does"
            " not answer. main stays with release 2",
        ),
        (
            {"kept_bridge": "it is busy"},
            "main_bridge could not be removed (it is busy): the next swap",
        ),
    ],
)
def test_a_finished_swap_with_open_work_is_a_failure(
    swap: Swap, two_instances: Paths, more: dict[str, Any], words: str
) -> None:
    ended(two_instances, **more)
    found = swap(state="awaited")
    assert found["outcome"] == "done" and found["failure"].startswith(words)


@pytest.mark.parametrize("outcome", [swaps.RETURNED, swaps.REFUSED])
def test_a_failed_swap_is_reported_with_its_failure(swap: Swap, two_instances: Paths, outcome: str) -> None:
    ended(two_instances, outcome=outcome, failure="the probe failed", words=("a line",))
    found = swap(state="awaited")
    assert (found["ended"], found["outcome"], found["failure"]) == (True, outcome, "the probe failed")
    assert found["words"] == ["a line"] and found["line"] == ""


def test_a_refusal_names_the_term_that_would_allow_the_swap(swap: Swap, two_instances: Paths) -> None:
    ended(two_instances, outcome=swaps.REFUSED, failure="busy", permission="force")
    assert swap(state="awaited")["permission"] == "force"


def test_a_returned_swap_is_reported_with_its_open_work(swap: Swap, two_instances: Paths) -> None:
    ended(two_instances, outcome=swaps.RETURNED, failure="the probe failed", unproven="disk full")
    assert swap(state="awaited")["failure"] == (
        "the probe failed. release 1 serves, but is not marked as proven (disk full): inferctl swap main --to 1"
    )


def test_a_swap_without_a_report_is_not_called_stuck(
    swap: Swap, two_instances: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_swap.request, "IDLE_LOOKS", 1)
    monkeypatch.setattr(engine_swap.request, "runs", lambda name: False)
    found = swap(state="awaited")
    assert (found["ended"], found["outcome"]) == (True, "unknown")
    assert "the outcome of the swap is unknown" in found["failure"]
    stuck = swaps.Swap(1, 2, "run1", NOW, step=swaps.STUCK, failure="neither starts")
    swaps.write(two_instances, "main", stuck)
    found = swap(state="awaited")
    assert (found["outcome"], found["failure"]) == ("stuck", "neither starts")


def test_a_wait_for_a_swap_ends_after_its_seconds(
    swap: Swap, two_instances: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    swap(release=2)
    monkeypatch.setattr(engine_swap.request, "runs", lambda name: True)
    found = swap(state="awaited", seconds=0)
    assert (found["ended"], found["step"], found["msg"]) == (False, "begun", "main: begun")
