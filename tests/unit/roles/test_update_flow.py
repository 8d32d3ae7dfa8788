# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of an update's steps, and the way back from each, on two nodes whose modules are stand-ins.

What the modules do is shown on real nodes, by the scenarios `rolling` and `swap`; not every step can be made to fail
there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance_facts import InstanceFacts
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.settings import NUMBERS

MODULES = (
    "engine_drain",
    "engine_plan",
    "engine_facts",
    "engine_probe",
    "engine_release",
    "engine_service",
    "engine_swap",
    "gateway_facts",
    "node_lock",
)
BRIDGE = {"name": "main_bridge", "port": 5105, "gpus": [], "left": False, "certain": True, "problem": ""}
ITEM = {
    "name": "main",
    "origin": 1,
    "target": 2,
    "interrupted": False,
    "drained_by": "",
    "model": "tiny-b",
    "bridge": BRIDGE,
}
TURN = {"name": "main", "swap": True, "alone": False, "bridge": False, "drain_seconds": None}

DUE_FACTS: dict[str, Any] = {"module": "engine_facts", "gather_subset": ["update"]}
"""A call for what is due."""

WATCH: dict[str, Any] = {"module": "engine_probe", "state": "watched"}
"""A call that watches an engine which serves."""

UPDATE = ("update", "running", "update_report")

Call = dict[str, Any]


class Update:
    """The tasks that swap, of role vllm where no other is named, on the nodes a and b, in this order."""

    def __init__(self, stage: Any) -> None:
        self.stage = stage

    def run(
        self,
        *failures: Call,
        seen: Sequence[tuple[Call, Call]] = (),
        role: str = "vllm",
        tasks: Sequence[str] = UPDATE,
        **extra: Any,
    ) -> tuple[bool, str]:
        """Whether it succeeded, and what was printed."""
        variables = {
            "vllm_instances": [{"name": "main", "model": "tiny-b", "port": 5005, "accelerator": "cpu"}],
            "vllm_nodes": ["a", "b"],
            "vllm_update_gateways": ["a"],
            "vllm_update_run_id": "run1",
            "vllm_image": "registry.example/vllm@sha256:" + "0" * 64,
            "vllm_update_watch_seconds": 1,
            "vllm_store_path": "/mnt/models",
            "vllm_user": "inference",
            "vllm_docker_data_root": "/var/lib/docker",
            "vllm_docker_client_config": "/root/.docker/config.json",
            "maintenance_keep_models": 2,
            "maintenance_ready_seconds": 60,
            "maintenance_store_path": "/mnt/models",
            "__vllm_batches": [[{"host": host, **TURN}] for host in ("a", "b")],
            "__vllm_facts": {"updates": [ITEM]},
            "__vllm_counted": {"counters": {"main": {"at": 10.0}, "side": {}}},
            **extra,
        }
        included = [{"name": f"baremetal.inference.{role}", "tasks_from": name} for name in tasks]
        play = {
            "name": "Swap",
            "hosts": "a:b",
            "vars": variables,
            "tasks": [{"name": "Update", "ansible.builtin.include_role": include} for include in included],
        }
        found: tuple[bool, str] = self.stage.run([play], f"a\nb\ngone {self.stage.gone}", failures=failures, seen=seen)
        return found

    def calls(self, module: str, on: str = "", **values: Any) -> list[Call]:
        """The calls of a module, for a node or for all."""
        found: list[Call] = self.stage.calls(module=module, **({"on": on} if on else {}), **values)
        return found

    def steps(self, on: str) -> list[str]:
        """What was done to a node's engine, and to its bridge, in short."""
        said = []
        for call in self.stage.calls(on=on):
            whose = "bridge " if call.get("name") == "main_bridge" else ""
            if call["module"] == "engine_drain":
                said.append(whose + call.get("state", "drained"))
            elif call["module"] == "engine_swap":
                said.append(f"{call.get('state', 'to')} {call['release']}")
            elif call["module"] == "engine_probe" and "state" not in call:
                said.append(f"{whose}probed")
            elif call["module"] == "engine_service" and "bridge" in call:
                said.append(f"bridge {call.get('state', 'started')}")
            elif call["module"] == "engine_service" and call["state"] == "absent":
                said.append("bridge absent" if call["names"] == ["main_bridge"] else f"{call['names']} absent")
        return said

    def bridges_started(self, on: str) -> list[Call]:
        """How the bridges of a node were started."""
        return [call["bridge"] for call in self.calls("engine_service", on) if "bridge" in call]

    def locks_are_back(self) -> bool:
        return all(self.calls("node_lock", on, state="released") for on in ("a", "b"))


@pytest.fixture
def update(staged: Callable[[Sequence[str]], Any]) -> Update:
    return Update(staged(MODULES))


THERE = ["drained", "idle", "to 2", "probed", "undrained", "proven 2"]
BACK = ["drained", "idle", "to 1", "probed", "undrained", "proven 1"]


@pytest.mark.full
def test_one_after_the_other(update: Update) -> None:
    succeeded, output = update.run()
    assert succeeded, output
    assert update.steps("a") == THERE and update.steps("b") == THERE
    assert output.count("serves release 2") >= 2 and "0 requests for main came meanwhile" in output
    assert "one request alone gets 33.0 tokens/s; a request gets 28.1 tokens/s; 0 requests" in output
    assert update.locks_are_back()


def test_a_release_that_does_not_pass_goes_back_and_the_next_is_not_touched(update: Update) -> None:
    succeeded, output = update.run({"module": "engine_probe", "release": 2})
    assert not succeeded
    assert update.steps("a") == ["drained", "idle", "to 2", "probed", *BACK] and update.steps("b") == []
    assert "it failed on a" in output and "Admit | Try it: engine_probe was told to fail" in output
    assert "main went back to the release that served before" in output
    assert all(f"{host}: main: release 1 (tiny-a) does not serve, drained by update" in output for host in "ab")
    assert update.locks_are_back()


@pytest.mark.once
def test_an_engine_is_watched_for_its_speed_before_it_was_drained(update: Update) -> None:
    succeeded, output = update.run({**WATCH, "on": "a"}, vllm_update_watch_speed_bound=0.4)
    assert not succeeded and "a, main: Admit | Watch it for a while: engine_probe was told to fail" in output
    (watched,) = update.calls(on="a", **WATCH)
    assert (watched["before"], watched["speed_bound"]) == ([{"at": 10.0}, {"at": 20.0}], 0.4)
    order = [(call["module"], call.get("gather_subset")) for call in update.stage.calls()]
    assert order.index(("engine_facts", ["counters"])) < order.index(("engine_drain", None))
    assert update.steps("a") == [*THERE[:-1], *BACK]


@pytest.mark.once
def test_requests_that_fail_at_the_gateway_are_counted_in_the_report(update: Update) -> None:
    counted = ({"module": "gateway_facts", "on": "a"}, {"requests": 40, "failures": 12})
    before = ({"module": "gateway_facts", "on": "a", "wait_for": "serving"}, {"requests": 0, "failures": 0})
    succeeded, output = update.run(seen=[counted, before])
    assert not succeeded and "proven 2" not in update.steps("a") and update.steps("b") == []
    assert (
        "a, main: Admit | Refuse one whose requests fail: 12 of 40 requests that a has sent to main on a since it is"
        " back have failed; vllm_update_error_share allows 0.05 of them."
    ) in output


@pytest.mark.full
@pytest.mark.parametrize(
    ("adopted", "interrupted", "kept"), [("run0", True, True), ("run0", False, False), ("", True, False)]
)
def test_a_preparation_that_fails_keeps_the_lock_of_what_was_cut_off(
    update: Update, adopted: str, interrupted: bool, kept: bool
) -> None:
    succeeded, output = update.run(
        tasks=["update/give_up"],
        __vllm_lock={"adopted": adopted},
        __vllm_facts={"updates": [{**ITEM, "interrupted": interrupted}]},
        ansible_failed_result={"msg": "the disk is full"},
    )
    assert not succeeded and "the disk is full" in output
    assert ("a: run run0 was cut off here, and that is not mended yet" in output) == kept
    assert update.locks_are_back() == (not kept)


@pytest.mark.full
@pytest.mark.parametrize(
    ("adopted", "looked", "drained_by", "kept"),
    [
        ("run0", True, "maintenance", True),
        ("run0", False, "", True),
        ("run0", True, "mira", False),
        ("", True, "maintenance", False),
    ],
)
def test_a_maintenance_keeps_the_lock_of_what_was_cut_off_as_well(
    update: Update, adopted: str, looked: bool, drained_by: str, kept: bool
) -> None:
    looks: dict[str, Any] = (
        {"__maintenance_engines": {"instances": [{"name": "main", "drained_by": drained_by}]}} if looked else {}
    )
    succeeded, output = update.run(
        role="maintenance",
        tasks=["give_up"],
        vllm_update_playbook="maintenance.yml",
        __vllm_lock={"adopted": adopted},
        ansible_failed_result={"msg": "the disk is full"},
        **looks,
    )
    assert not succeeded and "the disk is full" in output
    assert ("stays drained, and the node locked. Mend the above, and run maintenance.yml again" in output) == kept
    assert update.locks_are_back() == (not kept)


@pytest.mark.full
@pytest.mark.parametrize("adopted", ["run0", ""])
def test_leaving_keeps_the_lock_of_what_was_cut_off_as_well(update: Update, adopted: str) -> None:
    succeeded, output = update.run(
        {"module": "engine_drain", "state": "idle"},
        seen=[({"module": "node_lock"}, {"adopted": adopted})],
        tasks=["leave_drain"],
        vllm_update_playbook="decommission.yml",
        vllm_leaving=["main"],
        __vllm_engines={"instances": [ITEM]},
        __vllm_leaving_known=["main"],
    )
    assert not succeeded and "nothing was removed, and requests come again" in output
    assert ("The node stays locked: run run0 was cut off here." in output) == bool(adopted)
    assert update.steps("a")[-1] == "undrained" and update.locks_are_back() == (not adopted)


SAID = {
    "name": "main",
    "gateway": "a",
    "known": True,
    "silent": "",
    "bridge_known": True,
    "keyed": False,
    "up": ["a"],
    "hold_seconds": 120,
}
DUE = {
    "due": True,
    "problems": [],
    "moved": [],
    "keyed": False,
    "runs": "",
    "serving": True,
    "load_seconds": 1.0,
    "drained_until": "",
}
SERVES = InstanceFacts(
    "main", "tiny-b", 1, serving=True, running=True, swapping=False, drained_by="", drain_reason="", load_seconds=1.0
)
WAY = "gone: it cannot be reached, and nobody knows whom it sends requests to: bring it back. If no client can use it"


@pytest.mark.full
def test_an_update_without_a_gateway_s_word_tells_the_way_round(update: Update) -> None:
    succeeded, output = update.run(
        tasks=["update/plan"],
        seen=[
            (DUE_FACTS, {"updates": [{**ITEM, **DUE}]}),
            ({"module": "gateway_facts"}, SAID),
        ],
        vllm_update_gateways=["a", "gone"],
        __vllm_stage={"releases": []},
        vllm_address="192.0.2.11",
        vllm_api_key="key-of-today",
    )
    assert not succeeded and f"This update cannot begin. No engine was touched. - {WAY}" in output, output
    assert """-e '{"vllm_update_gateways": ["a"]}'""" in output
    # What it compares with what runs is what the gateways will be told.
    asked = {"ports": {"main": 5005}, "address": "192.0.2.11", "api_key": "key-of-today", "gateways": True}
    assert all(asked.items() <= call.items() for call in update.calls(**DUE_FACTS))


@pytest.mark.full
def test_a_maintenance_without_a_gateway_s_word_tells_the_way_round(update: Update) -> None:
    succeeded, output = update.run(
        role="maintenance",
        tasks=["prepare"],
        seen=[
            ({"module": "engine_facts"}, {"instances": [SERVES.to_dict()]}),
            ({"module": "gateway_facts"}, SAID),
        ],
        maintenance_gateways=["a", "gone"],
        __maintenance_due_packages={"lines": ["curl 1 -> 2"], "updates": []},
        __maintenance_due_cleanup={},
        __maintenance_due_models={},
        __maintenance_node={"reboot_reasons": []},
    )
    assert not succeeded and f"The maintenance cannot begin. Nothing was changed. - {WAY}" in output, output
    assert """-e '{"vllm_update_gateways": ["a"]}'""" in output


@pytest.mark.full
def test_an_engine_that_does_not_get_its_share_goes_back(update: Update) -> None:
    grows = ({"module": "gateway_facts", "wait_for": "serving"}, {"reached": False, "msg": "it grows"})
    succeeded, output = update.run(seen=[grows], __vllm_batches=[[{"host": "a", **TURN}]])
    assert not succeeded and "a does not give it its full share: it grows" in output
    assert "proven 2" not in update.steps("a")
    # The release before was waited for, too; each time longer than the longest slow start.
    waited = sum(call["seconds"] for call in update.calls("gateway_facts", wait_for="serving"))
    assert waited == 2 * 260 and waited / 2 > NUMBERS["slow_start_seconds"][1]


LOST = ({"module": "gateway_facts", "wait_for": "serving"}, {"gone": True})
"""A gateway that is lost when the engine has been drained already."""


def test_a_gateway_that_is_lost_in_the_middle_leaves_what_has_passed_to_its_clients(update: Update) -> None:
    """To go back would want that gateway's word, too."""
    succeeded, output = update.run(seen=[LOST])
    assert not succeeded and update.steps("a") == THERE and update.steps("b") == []
    assert (
        "a, main: Swap | Go no further without a gateway's word: a cannot be reached, or its HAProxy does not answer:"
        " nobody knows whether it sends requests to main on a again. It stays with its new release."
    ) in output
    assert "main on a serves release 2" in output and "could not be put back" not in output
    assert update.calls(on="a", **WATCH) and update.locks_are_back()


@pytest.mark.full
def test_a_gateway_that_is_silent_says_nothing_of_the_release(update: Update) -> None:
    silent = ({"module": "gateway_facts", "wait_for": "serving"}, {"reached": False, "silent": "refused", "msg": "x"})
    succeeded, output = update.run(seen=[silent])
    assert not succeeded and update.steps("a") == THERE and update.steps("b") == []
    assert "a cannot be reached, or its HAProxy does not answer" in output


@pytest.mark.full
def test_what_goes_back_without_a_gateway_s_word_is_back(update: Update) -> None:
    succeeded, output = update.run({"module": "engine_probe", "release": 2}, seen=[LOST])
    assert not succeeded and update.steps("a") == ["drained", "idle", "to 2", "probed", *BACK]
    assert "main went back to the release that served before" in output and "stays drained" not in output


@pytest.mark.full
def test_a_bridge_without_a_gateway_s_word_replaces_nobody(update: Update) -> None:
    succeeded, output = update.run(seen=[LOST], __vllm_batches=[[ALONE]])
    assert not succeeded and "nobody knows whether it sends requests to main_bridge on a again" in output
    assert update.steps("a") == [*BRIDGED, *UNBRIDGED]


@pytest.mark.full
def test_an_only_replica_goes_back_while_its_clients_are_held(update: Update) -> None:
    """What it works at then is cut off, for all others would be refused."""
    seen: list[tuple[Call, Call]] = [
        ({"module": "engine_drain", "state": "idle"}, {"idle": False, "msg": "1 request runs"}),
        (DUE_FACTS, {"updates": [{"name": "main", "serving": True}]}),
    ]
    # The swap itself cuts nothing off.
    succeeded, output = update.run(
        seen=seen,
        __vllm_facts={"updates": [{**ITEM, "interrupted": True}]},
        __vllm_batches=[[{"host": "a", **TURN, "alone": True, "drain_seconds": 3}]],
    )
    assert not succeeded and "After 3 s, 1 request runs" in output
    assert update.steps("a")[-4:] == BACK[2:] and "to 2" not in update.steps("a")
    assert {call["seconds"] for call in update.calls("engine_drain", "a", state="idle")} <= {2, 3}
    assert "main went back to the release that served before" in output


@pytest.mark.once
def test_a_drain_is_not_waited_for_longer_than_its_requests_are_held(update: Update) -> None:
    """At the gateways and at the engine together. What does not end is left as it was."""
    never = ({"module": "gateway_facts", "wait_for": "drained"}, {"reached": False, "msg": "3 requests are in flight"})
    alone = {"host": "a", **TURN, "alone": True, "drain_seconds": 3}
    succeeded, output = update.run(seen=[never], __vllm_batches=[[alone]])
    assert not succeeded and "After 3 s, a still has requests: 3 requests are in flight" in output
    assert update.steps("a") == ["drained", "undrained"]
    assert {call["seconds"] for call in update.calls("gateway_facts", "a", wait_for="drained")} <= {2, 3}
    late = ({"module": "gateway_facts", "wait_for": "drained"}, {"reached": True, "sleep": 4})
    succeeded, output = update.run(seen=[late], __vllm_batches=[[alone]])
    assert succeeded, output
    # Nothing was left for the engine itself.
    assert [call["seconds"] for call in update.calls("engine_drain", "a", state="idle")] == [2]


@pytest.mark.once
def test_all_go_back_where_that_is_wanted(update: Update) -> None:
    succeeded, output = update.run({**WATCH, "on": "b"}, vllm_update_on_failure="all", vllm_update_watch_seconds=5)
    assert not succeeded and "it failed on b" in output
    assert update.steps("a") == THERE + BACK
    assert update.steps("b") == [*THERE[:-1], *BACK]
    assert update.locks_are_back()
    # Who failed is back before the others leave.
    order = [(call["on"], call["release"]) for call in update.calls("engine_swap", state="proven")]
    assert order == [("a", 2), ("b", 1), ("a", 1)]


@pytest.mark.full
def test_all_that_go_back_go_in_batches_and_not_the_last_one(update: Update) -> None:
    """a and b have gone together, and side, which fails; on the way back nobody else serves main any more."""
    succeeded, output = update.run(
        {"module": "engine_probe", "name": "side", "release": 6},
        {
            "module": "engine_drain",
            "on": "b",
            "name": "main",
            "reason": f"update_model.yml puts back release {ITEM['origin']}",
        },
        vllm_update_on_failure="all",
        __vllm_facts={"updates": [ITEM, {**ITEM, "name": "side", "origin": 5, "target": 6}]},
        __vllm_batches=[[{"host": "a", **TURN}], [{"host": "b", **TURN}], [{"host": "a", **TURN, "name": "side"}]],
    )
    assert not succeeded and "it failed on a" in output
    assert "b, main: was not put back, and serves on with its new release: Drain | Keep requests away" in output
    # Where one cannot go back, the others stay.
    assert update.steps("b") == [*THERE, "drained", "undrained"]
    assert update.steps("a")[: len(THERE)] == THERE and "to 1" not in update.steps("a")
    assert update.locks_are_back()


@pytest.mark.full
@pytest.mark.parametrize(
    "call", [{"module": "gateway_facts", "wait_for": "drained"}, {"module": "engine_drain", "state": "idle"}]
)
def test_what_cannot_be_drained_is_left_as_it_was(update: Update, call: dict[str, str]) -> None:
    succeeded, output = update.run(call)
    assert not succeeded and "was told to fail" in output
    assert update.calls("engine_swap", "a") == [] and update.steps("a")[-1] == "undrained"
    assert update.steps("b") == [] and update.locks_are_back()


@pytest.mark.full
def test_the_last_one_that_serves_is_not_taken(update: Update) -> None:
    """When the plan was made, there was another."""
    succeeded, output = update.run(seen=[({"module": "gateway_facts", "on": "b"}, {"up": ["b"]})])
    assert not succeeded and "a would have nobody left for main without b, who are drained at once" in output
    assert update.steps("a") == THERE and update.steps("b") == []
    assert update.locks_are_back()


@pytest.mark.once
def test_a_batch_does_not_take_the_last_ones_that_serve(update: Update) -> None:
    """When the plan was made, there was a third one. Who does not serve may go."""
    batch = [[{"host": host, **TURN} for host in ("a", "b")]]
    succeeded, output = update.run(__vllm_batches=batch)
    assert not succeeded and "a would have nobody left for main without a, b" in output
    assert update.steps("a") == update.steps("b") == [] and update.locks_are_back()
    succeeded, output = update.run(seen=[({"module": "gateway_facts"}, {"up": ["c"]})], __vllm_batches=batch)
    assert succeeded, output


@pytest.mark.full
def test_what_cannot_go_back_stays_drained_and_is_named(update: Update) -> None:
    succeeded, output = update.run({"module": "engine_swap"})
    assert not succeeded
    assert update.steps("a") == ["drained", "idle", "to 2", "drained", "idle", "to 1"]
    assert "main: could not be put back and stays drained: Back | Switch to the release before" in output
    assert update.locks_are_back()


@pytest.mark.full
def test_a_first_release_that_fails_has_no_way_back(update: Update) -> None:
    succeeded, output = update.run({"module": "engine_probe"}, __vllm_facts={"updates": [{**ITEM, "origin": None}]})
    assert not succeeded and "has never served: there is nothing to go back to" in output
    assert update.steps("a") == ["drained", "idle", "to 2", "probed"]


@pytest.mark.full
def test_a_swap_that_was_cut_off_goes_back_even_where_nothing_was_touched_now(update: Update) -> None:
    succeeded, output = update.run(
        {"module": "gateway_facts", "wait_for": "drained", "on": "a"},
        __vllm_facts={"updates": [{**ITEM, "interrupted": True}]},
    )
    assert not succeeded and "could not be put back and stays drained" in output
    assert "undrained" not in update.steps("a")


@pytest.mark.full
def test_a_run_that_has_lost_its_lock_touches_nothing_more(update: Update) -> None:
    succeeded, output = update.run({"module": "node_lock", "on": "b"})
    assert not succeeded and "node_lock was told to fail" in output
    assert update.steps("b") == []


@pytest.mark.full
def test_every_gateway_is_asked(update: Update) -> None:
    succeeded, output = update.run(vllm_update_gateways=["a", "b"], __vllm_batches=[[{"host": "a", **TURN}]])
    assert succeeded, output
    for state in ("drained", "serving"):
        assert len(update.calls("gateway_facts", "a", wait_for=state)) == 2


@pytest.mark.full
def test_a_gateway_that_does_not_let_go_can_be_cut_off(update: Update) -> None:
    """By force: after the time to drain, requests in flight are lost, and the swap goes on."""
    never = ({"module": "gateway_facts", "wait_for": "drained"}, {"reached": False})
    succeeded, output = update.run(seen=[never], vllm_update_force=True, vllm_update_drain_seconds=1)
    assert succeeded, output
    assert update.steps("a") == THERE and update.steps("b") == THERE


@pytest.mark.full
def test_two_instances_of_a_node_do_not_meet(update: Update) -> None:
    """The second one fails, and only that goes back."""
    succeeded, output = update.run(
        {"module": "engine_probe", "name": "side", "release": 6},
        __vllm_facts={"updates": [ITEM, {**ITEM, "name": "side", "origin": 5, "target": 6}]},
        __vllm_batches=[[{"host": "a", **TURN}], [{"host": "a", **TURN, "name": "side"}]],
    )
    assert not succeeded and "side went back to the release that served before" in output
    assert update.steps("a") == [
        *THERE,
        "drained",
        "idle",
        "to 6",
        "probed",
        *[step.replace("1", "5") for step in BACK],
    ]
    assert "main on a serves release 2" in output


UNFIT = {
    "ok": False,
    "instance": "main",
    "model": "tiny-c",
    "revision": None,
    "gpus": None,
    "devices": [{"name": "CPU"}],
    "estimate": dict.fromkeys(["weights_gib", "overhead_gib", "kv_cache_gib", "spare_gib", "max_concurrency"]),
    "change": {"action": "update", "active": 1, "desired": None, "served": False},
    "problems": [{"key": "max-model-len", "value": 9, "message": "is too long", "fits": [{"max-model-len": 8}]}],
}


def judged(update: Update, on: str, **extra: Any) -> tuple[bool, str]:
    """What becomes of a run where a plan does not fit."""
    seen: list[tuple[Call, Call]] = [
        ({"module": "engine_plan"}, {"plans": [], "problems": []}),
        ({"module": "engine_plan", "on": on}, {"plans": [UNFIT]}),
    ]
    return update.run(tasks=["fit"], seen=seen, **extra)


def test_what_does_not_fit_is_refused_with_the_way_out(update: Update) -> None:
    succeeded, output = judged(update, "b", vllm_update_set={"main": "tiny-c"}, vllm_models_coming={"tiny-c": "f00"})
    assert not succeeded
    assert "b: what this run would start here does not fit. Nothing was changed. main: does not fit" in output
    assert "PROBLEM max-model-len: 9: is too long would fit: max-model-len: 8" in output
    assert "-e vllm_check_fit=false" in output and "a: what this run" not in output
    (call,) = update.calls("engine_plan", "b")
    assert [each["model"] for each in call["instances"]] == ["tiny-c"]
    assert call["coming"] == {"tiny-c": "f00"}


@pytest.mark.full
@pytest.mark.parametrize(
    "said",
    [
        {"vllm_check_fit": False},
        {"vllm_fit_swaps": False},
        {"vllm_update_instances": ["side"]},
        {"vllm_update_model": "x"},
    ],
)
def test_what_is_not_swapped_or_overruled_stops_nobody(update: Update, said: dict[str, Any]) -> None:
    succeeded, output = judged(update, "b", **said)
    assert succeeded, output
    assert len(update.calls("engine_plan")) == (0 if "vllm_check_fit" in said else 2)


def test_what_is_set_for_once_is_written_as_json_is(update: Update) -> None:
    """Ansible itself cuts it at its blank."""
    play = {
        "hosts": "a",
        "roles": ["site_variables"],
        "tasks": [{"ansible.builtin.debug": {"msg": "{{ vllm_update_set.main }} is set"}}],
    }
    said = update.stage.run([play], "a", "--extra-vars", 'set={"main": "tiny-c"}')
    assert said[0] and "tiny-c is set" in said[1], said[1]
    said = update.stage.run([play], "a", "--extra-vars", "set=main:tiny-c")
    assert not said[0] and "set: found main:tiny-c, must be a model for each of some instances" in said[1], said[1]


@pytest.mark.full
def test_what_is_set_for_once_leaves_the_others_to_the_inventory(update: Update) -> None:
    rendered = [{"name": name, "release": release} for name, release in (("main", 7), ("side", 3))]
    _succeeded, output = update.run(
        tasks=["update/plan"], vllm_update_set={"main": "tiny-c"}, __vllm_set={"releases": rendered}
    )
    (call,) = update.calls(on="a", **DUE_FACTS)
    assert (call["targets"], call["unstaged"]) == ({"main": 7}, rendered[:1]), output


ALONE = {"host": "a", **TURN, "alone": True, "bridge": True}
BRIDGED = ["bridge started", "bridge probed", "bridge undrained"]
UNBRIDGED = ["bridge drained", "bridge idle", "bridge absent"]
ONLY_BRIDGE = ({"module": "gateway_facts", "name": "main"}, {"up": ["main_bridge.a"]})


def test_the_only_one_is_swapped_while_a_bridge_serves(update: Update) -> None:
    succeeded, output = update.run(__vllm_batches=[[ALONE]])
    assert succeeded, output
    assert update.steps("a") == [*BRIDGED, *THERE, *UNBRIDGED]
    (started,) = update.bridges_started("a")
    assert started == {"release": 2, "port": 5105, "gpus": []}
    assert update.calls("engine_service", "a", names=["main"], bridge=started)
    assert update.calls("gateway_facts", "a", name="main_bridge", wait_for="serving")
    assert update.calls(on="a", name="main_bridge", **WATCH)
    assert "main on a serves release 2" in output and update.locks_are_back()


@pytest.mark.full
@pytest.mark.parametrize(
    "failing",
    [
        {"module": "engine_probe", "name": "main_bridge", "release": 1},
        {"module": "engine_service", "names": ["main_bridge"], "state": "ready"},
        {**WATCH, "name": "main_bridge"},
    ],
)
def test_a_bridge_that_fails_costs_nothing(update: Update, failing: Call) -> None:
    succeeded, output = update.run(failing, __vllm_batches=[[ALONE]])
    assert not succeeded and f"{failing['module']} was told to fail" in output
    assert update.calls("engine_swap", "a") == [] and update.calls("engine_drain", "a", name="main") == []
    assert update.steps("a")[-3:] == UNBRIDGED and update.locks_are_back()


@pytest.mark.full
def test_what_fails_behind_its_bridge_goes_back_before_that_ends(update: Update) -> None:
    succeeded, output = update.run({"module": "engine_probe", "name": "main", "release": 2}, __vllm_batches=[[ALONE]])
    assert not succeeded and "main went back to the release that served before" in output
    assert update.steps("a") == [*BRIDGED, "drained", "idle", "to 2", "probed", *BACK, *UNBRIDGED]


@pytest.mark.full
def test_an_only_replica_that_others_take_back_has_a_bridge_then_too(update: Update) -> None:
    """Its set has passed; another one has not, and all shall go back."""
    succeeded, output = update.run(
        {"module": "engine_probe", "name": "side", "release": 6},
        vllm_update_on_failure="all",
        vllm_models={"tiny-b": {"golden-prompts": []}},
        __vllm_facts={"updates": [ITEM, {**ITEM, "name": "side", "origin": 5, "target": 6}]},
        __vllm_batches=[[ALONE], [{"host": "b", **TURN, "name": "side"}]],
    )
    assert not succeeded and "it failed on b" in output
    assert update.steps("a") == [*BRIDGED, *THERE, *UNBRIDGED, *BRIDGED, *BACK, *UNBRIDGED]
    assert [(bridge["release"], bridge["port"]) for bridge in update.bridges_started("a")] == [(2, 5105), (1, 5105)]
    asked = [call["models"] for call in update.calls("engine_probe", "a", name="main_bridge") if "models" in call]
    assert asked == [{"tiny-b": {"golden-prompts": []}}, {}]
    assert "main went back to the release that served before" in output and update.locks_are_back()


@pytest.mark.full
def test_a_bridge_stays_where_nobody_else_serves(update: Update) -> None:
    succeeded, output = update.run({"module": "engine_swap"}, seen=[ONLY_BRIDGE], __vllm_batches=[[ALONE]])
    assert not succeeded and "main: could not be put back and stays drained" in output
    assert "main_bridge, which stood in for another, could not be removed" in output
    assert "bridge absent" not in update.steps("a") and "bridge drained" not in update.steps("a")
    assert "it failed on a" in output and "Swap | Switch the release" in output


@pytest.mark.full
def test_the_bridge_of_a_run_that_was_cut_off_serves_until_its_swap_is_finished(update: Update) -> None:
    facts = {"updates": [{**ITEM, "interrupted": True, "bridge": {**BRIDGE, "left": True}}]}
    succeeded, output = update.run(__vllm_facts=facts, __vllm_batches=[[{"host": "a", **TURN}]])
    assert succeeded, output
    assert update.steps("a") == [*THERE, *UNBRIDGED]


@pytest.mark.full
def test_a_bridge_that_is_all_that_was_left_is_removed(update: Update) -> None:
    facts = {"updates": [{**ITEM, "target": 1, "bridge": {**BRIDGE, "left": True}}]}
    succeeded, output = update.run(__vllm_facts=facts, __vllm_batches=[[{"host": "a", **TURN, "swap": False}]])
    assert succeeded, output
    assert update.steps("a") == UNBRIDGED


HANGS = ({"module": "engine_drain", "name": "main_bridge", "state": "idle"}, {"idle": False})
BUSY = ({"module": "gateway_facts", "name": "main_bridge", "wait_for": "drained"}, {"reached": False})
BOTH = ({"module": "gateway_facts", "name": "main"}, {"up": ["a", "main_bridge.a"]})


@pytest.mark.once
def test_a_bridge_that_hangs_is_removed_where_nobody_asks_it(update: Update) -> None:
    """It has failed its probe: no gateway has sent it anything."""
    succeeded, output = update.run(
        {"module": "engine_probe", "name": "main_bridge"}, seen=[HANGS], __vllm_batches=[[ALONE]]
    )
    assert not succeeded and "engine_probe was told to fail" in output
    assert update.steps("a") == ["bridge started", "bridge probed", *UNBRIDGED]
    assert "could not be removed" not in output and update.locks_are_back()


@pytest.mark.full
@pytest.mark.parametrize("seen", [[HANGS, BOTH], [BUSY]])
def test_a_bridge_that_somebody_asks_is_waited_for(update: Update, seen: list[tuple[Call, Call]]) -> None:
    """Of one that is drained already, by a run before, requests may still be in flight at a gateway."""
    facts = {"updates": [{**ITEM, "target": 1, "bridge": {**BRIDGE, "left": True}}]}
    batches = [[{"host": "a", **TURN, "swap": False}]]
    succeeded, output = update.run(seen=seen, __vllm_facts=facts, __vllm_batches=batches, vllm_update_drain_seconds=1)
    assert not succeeded and "main_bridge, which stood in for another, could not be removed" in output
    assert "bridge absent" not in update.steps("a")


def test_a_bridge_whose_instance_is_not_declared_has_a_way_out(update: Update) -> None:
    """An update, which walks what is declared, would not come by."""
    staged = ({"module": "engine_release"}, {"releases": [], "orphans": ["gone"], "bridges": ["gone_bridge"]})
    succeeded, output = update.run(seen=[staged], tasks=["stage"], __vllm_variants={})
    assert succeeded and "a still has gone_bridge, which stood in for an instance" in output, output
    assert "ansible a -b -m baremetal.inference.engine_service -a 'names=INSTANCE_bridge state=absent'" in output
