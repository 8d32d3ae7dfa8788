# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which node swaps next during an update, which node goes back, and the report."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update import outcomes
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update.outcomes import Run

BATCH = [{"host": host, "name": "main", "origin": 1, "release": 2, "way": "others", "vouched": False} for host in "ab"]
DONE = {"name": "main", "origin": 1, "release": 2, "outcome": "done", "line": "main on a serves release 2."}
FAILED = {**DONE, "outcome": "returned", "line": "", "failure": "the probe failed."}


def run(
    playing: str = "ab", outdated_gateways: dict[str, str] | None = None, left_out: tuple[str, ...] = (), **kept: Any
) -> Run:
    """Nodes a and b with their recorded outcomes. `playing`: the nodes that the controller still reaches."""
    nodes = outcomes.read(["a", "b"], playing, kept)
    return Run(nodes, "baremetal.inference.update_model", outdated_gateways or {}, left_out)


def test_every_node_swaps_until_a_node_fails() -> None:
    assert outcomes.turn(BATCH, "b", run(a={"swaps": [DONE]})) == BATCH[1]
    assert outcomes.turn(BATCH, "c", run()) == {}
    assert outcomes.turn(BATCH, "b", run(a={"swaps": [FAILED]})) == {}
    assert outcomes.turn(BATCH, "b", run(a={"problem": "the lock is lost"})) == {}
    # The instance serves, but a gateway has not confirmed it: the update stops as well.
    assert outcomes.turn(BATCH, "b", run(a={"swaps": [{**DONE, "failure": "gw2 is away"}]})) == {}


def test_a_node_stops_the_others_only_if_the_node_is_lost_during_its_swap() -> None:
    assert outcomes.turn(BATCH, "b", run("b", a={"swaps": [DONE], "under_way": ""})) == BATCH[1]
    assert outcomes.turn(BATCH, "b", run("b")) == BATCH[1]
    lost = run("b", a={"under_way": "main"})
    assert outcomes.turn(BATCH, "b", lost) == {} and lost.failed == ["a"]
    assert (
        "a, main: the node became unreachable during the swap. It ends the swap by itself, with the new or the old"
        " release: inferctl status on a shows which" in outcomes.failure("b", lost)
    )


def test_an_instance_goes_back_once() -> None:
    failed = run(a={"swaps": [DONE]}, b={"swaps": [FAILED]})
    assert outcomes.way_back(BATCH, "a", failed) == {**BATCH[0], "origin": 2, "release": 1}
    # The failed swap has returned already.
    assert outcomes.way_back(BATCH, "b", failed) == {}
    returned = run(a={"swaps": [DONE, {**DONE, "release": 1, "returns": True}]}, b={"swaps": [FAILED]})
    assert outcomes.way_back(BATCH, "a", returned) == {}


@pytest.mark.parametrize(("origin", "release"), [(None, 2), (1, 1)])
def test_an_instance_without_an_earlier_release_does_not_go_back(origin: int | None, release: int) -> None:
    batch = [{**BATCH[0], "origin": origin, "release": release}]
    assert outcomes.way_back(batch, "a", run(a={"swaps": [DONE]})) == {}


STAYS = "could not return to the old release, and still serves the new one: "
DRAINED = "could not return to the old release, and the new one does not serve either: the instance stays drained: "
UNSEEN = "the run has not seen the old release serve again: "


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("refused", STAYS),
        ("returned", STAYS),
        ("stuck", DRAINED),
        ("failed", UNSEEN),
        ("unknown", UNSEEN),
    ],
)
def test_after_a_failed_return_the_other_instances_do_not_go_back(outcome: str, words: str) -> None:
    stays = {**DONE, "returns": True, "outcome": outcome, "failure": "this is why"}
    assert outcomes.way_back(BATCH, "b", run(a={"swaps": [DONE, stays]}, b={"swaps": [DONE]})) == {}
    failed = run(a={"swaps": [DONE, stays]}, b={"swaps": [FAILED]})
    assert f"\na, main: {words}this is why\n" in outcomes.failure("a", failed)
    assert outcomes.lines("a", failed) == ["main on a serves release 2."]


def test_a_return_that_a_gateway_has_not_confirmed_is_a_return() -> None:
    returned = {**DONE, "release": 1, "returns": True, "failure": "gw1 is away"}
    went = run(a={"swaps": [DONE, returned]}, b={"swaps": [FAILED]})
    assert "\na, main: gw1 is away\n" in outcomes.failure("a", went)
    assert outcomes.lines("a", went)[1:] == ["main on a went back to the release that served before"]


def test_a_run_that_went_well_has_lines_and_no_failure() -> None:
    went = run(a={"swaps": [DONE]}, b={"swaps": [{**DONE, "line": ""}]})
    assert outcomes.lines("a", went) == ["main on a serves release 2."]
    assert outcomes.lines("b", went) == ["main on b serves release 2"]
    assert outcomes.failure("a", went) == ""


@pytest.mark.parametrize(
    ("outcome", "end"),
    [
        ("returned", " The old release serves again."),
        ("refused", " The instance was not changed."),
        ("stuck", " The return to the old release failed, too: the instance stays drained."),
        ("failed", ""),
    ],
)
def test_each_outcome_has_its_text(outcome: str, end: str) -> None:
    failed = run(a={"swaps": [{**FAILED, "outcome": outcome}]}, left_out=("c",))
    assert outcomes.failure("a", failed) == (
        f"baremetal.inference.update_model stopped: it failed on a.\na, main: the probe failed.{end}\n"
        "c could not be reached at the start of the run, and was not updated:"
        " run baremetal.inference.update_model again when the node answers\n"
        "The lines above list what runs on each node. When the cause is removed, run"
        " baremetal.inference.update_model again."
    )
    back = ["main on a went back to the release that served before"] if outcome == "returned" else []
    assert outcomes.lines("a", failed) == back


@pytest.mark.parametrize(
    ("permission", "words"),
    [("force", "update_force=true cuts requests"), ("allow_downtime", "-e allow_downtime=true swaps anyway.")],
)
def test_a_refusal_names_the_variable_of_the_playbooks(permission: str, words: str) -> None:
    refused = {**FAILED, "outcome": "refused", "permission": permission}
    said = outcomes.failure("a", run(a={"swaps": [refused]}))
    assert "the probe failed. The instance was not changed. -e " in said and words in said


def test_an_instance_that_went_back_has_a_line() -> None:
    went = run(a={"swaps": [DONE, {**DONE, "release": 1, "returns": True}]}, b={"swaps": [FAILED]})
    assert outcomes.lines("a", went)[1:] == ["main on a went back to the release that served before"]


def test_gateways_without_the_new_model_names_fail_the_run() -> None:
    said = outcomes.failure("a", run(outdated_gateways={"gw2": "Refresh: x"}, a={"swaps": [DONE]}))
    assert said == (
        "baremetal.inference.update_model has swapped all due instances, but some gateways do not have the new model"
        " names.\n"
        "gw2 still has the model names from before the run: Refresh:"
        " x\nWhen the cause is removed, run baremetal.inference.update_model again."
    )


def test_a_node_that_was_lost_outside_its_swap_is_named() -> None:
    said = outcomes.failure("b", run("b", a={}, b={"swaps": [FAILED]}))
    again = "run baremetal.inference.update_model again when the node answers"
    assert f"a became unreachable during the run, and was not updated: {again}" in said
    said = outcomes.failure("b", run("b", left_out=("c",), a={"swaps": [DONE]}, b={"swaps": [FAILED]}))
    assert f"a became unreachable during the run, after the swap of main: {again}" in said
    assert f"c could not be reached at the start of the run, and was not updated: {again}" in said
    assert "b: the lock is lost" in outcomes.failure("b", run(b={"problem": "the lock is lost"}))


def test_the_state_has_a_line_for_each_instance() -> None:
    serves = {"name": "main", "release": 2, "model": "tiny-b", "serving": True, "drained_by": ""}
    engines = {"a": {"instances": [serves, {**serves, "release": None, "serving": False, "drained_by": "mira"}]}}
    assert outcomes.state({**engines, "b": {"msg": "no route to host"}}) == [
        "a: main: release 2 (tiny-b) serves",
        "a: main: release none (tiny-b) does not serve, drained by mira",
        "b: its instances are unknown: no route to host",
    ]
