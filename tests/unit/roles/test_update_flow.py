# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an update does around the swaps that nodes carry out, on two nodes whose modules are stand-ins.

The scenarios `rolling` and `swap` test the modules on real nodes. Some failures cannot be caused there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance_facts import InstanceFacts

MODULES = (
    "engine_image",
    "node_agent",
    "node_tool",
    "engine_drain",
    "engine_plan",
    "engine_facts",
    "engine_outage",
    "engine_release",
    "engine_service",
    "engine_swap",
    "gateway_facts",
    "model_variants",
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
TURN = {"name": "main", "origin": 1, "release": 2, "way": "others", "vouched": False}
SIDE = {"name": "side", "origin": 5, "release": 6, "way": "others", "vouched": False}

DUE_FACTS: dict[str, Any] = {"module": "engine_facts", "gather_subset": ["update", "counters"]}
"""A call that reads which swaps are due."""

AWAITED: dict[str, Any] = {"module": "engine_swap", "state": "awaited"}
"""A call that waits for the end of a swap."""

UPDATE = (("update", "main"), ("vllm", "running"), ("update", "report"))

ENGINES = "{{ dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, 'vllm_engines'))) }}"

Call = dict[str, Any]


class Update:
    """Tasks of roles, by default those of the role update that swap, on the nodes a and b, in this order."""

    def __init__(self, stage: Any) -> None:
        self.stage = stage

    def run(
        self,
        *failures: Call,
        seen: Sequence[tuple[Call, Call]] = (),
        role: str = "update",
        tasks: Sequence[str] = (),
        parts: Sequence[tuple[str, str]] = UPDATE,
        nodes: str = "a\nb",
        options: Sequence[str] = (),
        **extra: Any,
    ) -> tuple[bool, str]:
        """Whether the play succeeded, and what was printed."""
        variables = {
            "vllm_instances": [{"name": "main", "model": "tiny-b", "port": 5005, "accelerator": "cpu"}],
            "vllm_nodes": ["a", "b"],
            "vllm_image": "registry.example/vllm@sha256:" + "0" * 64,
            "vllm_store_path": "/mnt/models",
            "vllm_user": "inference",
            "vllm_docker_data_root": "/var/lib/docker",
            "vllm_docker_client_config": "/root/.docker/config.json",
            "update_names": ["main"],
            "update_gateways": ["a"],
            "update_run_id": "run1",
            "update_engines": ENGINES,
            "maintenance_keep_models": 2,
            "maintenance_ready_seconds": 60,
            "maintenance_store_path": "/mnt/models",
            "__update_batches": [[{"host": host, **TURN}] for host in ("a", "b")],
            "__update_facts": {"updates": [ITEM], "counters": {"main": {"at": 10.0}}},
            **extra,
        }
        named = [(role, name) for name in tasks] or parts
        included = [{"name": f"baremetal.inference.{role}", "tasks_from": name} for role, name in named]
        play = {
            "name": "Swap",
            "hosts": "a:b",
            "vars": variables,
            "tasks": [{"name": "Update", "ansible.builtin.include_role": include} for include in included],
        }
        hosts = f"{nodes}\ngone {self.stage.gone}"
        found: tuple[bool, str] = self.stage.run([play], hosts, *options, failures=failures, seen=seen)
        return found

    def calls(self, module: str, on: str = "", **values: Any) -> list[Call]:
        """The calls of a module, for a node or for all."""
        found: list[Call] = self.stage.calls(module=module, **({"on": on} if on else {}), **values)
        return found

    def swaps(self, on: str) -> list[str]:
        """The swaps of a node: which began, and which were waited for."""
        return [
            f"{call['name']} {call.get('state') or call['release']}"
            for call in self.stage.calls(module="engine_swap", on=on)
        ]

    def locks_are_released(self) -> bool:
        return all(self.calls("node_lock", on, state="released") for on in ("a", "b"))


@pytest.fixture
def update(staged: Callable[[Sequence[str]], Any]) -> Update:
    return Update(staged(MODULES))


THERE = ["main 2", "main awaited"]
BACK = ["main 1", "main awaited"]


def ended(outcome: str, failure: str = "the probe failed", **which: Any) -> tuple[Call, Call]:
    """The end of a swap. `which`: the node, or the instance, that swaps."""
    return ({**AWAITED, **which}, {"outcome": outcome, "failure": failure})


@pytest.mark.once
def test_instances_swap_one_after_the_other(update: Update) -> None:
    succeeded, output = update.run(update_watch_seconds=5, update_user="mira")
    assert succeeded, output
    assert update.swaps("a") == update.swaps("b") == THERE
    assert "main on a serves release 2" in output and "main on b serves release 2" in output
    begun = update.calls("engine_swap", "a")[0]
    assert (begun["run_id"], begun["back"], begun["pin"]) == ("run1", False, True)
    assert (begun["reason"], begun["counted"]) == ("baremetal.inference.update_model by mira", {"at": 10.0})
    assert begun["terms"] == {
        "drain_seconds": 1800,
        "watch_seconds": 5,
        "speed_bound": 0.5,
        "watch_speed_bound": 0.25,
        "error_share": 0.05,
        "force": False,
        "allow_downtime": False,
        "vouched": False,
    }
    assert update.locks_are_released()


def test_a_swap_that_goes_back_stops_the_batches(update: Update) -> None:
    succeeded, output = update.run(seen=[ended("returned", on="a")])
    assert not succeeded and update.swaps("a") == THERE and update.swaps("b") == []
    assert "baremetal.inference.update_model stopped: it failed on a. a, main: the probe failed" in output
    assert "main on a went back to the release that served before" in output
    assert all(f"{host}: main: release 1 (tiny-a) does not serve, drained by update" in output for host in "ab")
    assert update.locks_are_released()


@pytest.mark.full
@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("refused", "The instance was not changed."),
        ("stuck", "The return to the old release failed, too: the instance stays drained."),
        ("done", ""),
    ],
)
def test_a_refused_stuck_or_unconfirmed_swap_stops_the_batches(update: Update, outcome: str, words: str) -> None:
    """A swap that is done may have a failure, too: a gateway has not confirmed the new release."""
    succeeded, output = update.run(seen=[ended(outcome, on="a")])
    assert not succeeded and f"a, main: the probe failed {words}".strip() in output
    assert update.swaps("b") == [] and update.locks_are_released()


@pytest.mark.once
def test_a_swap_that_does_not_begin_stops_the_batches(update: Update) -> None:
    succeeded, output = update.run({"module": "engine_swap", "on": "a"})
    assert not succeeded and "a, main: Swap | Start the swap: engine_swap was told to fail" in output
    assert update.swaps("a") == ["main 2"] and update.swaps("b") == []
    assert update.locks_are_released()


@pytest.mark.full
def test_a_release_that_serves_already_needs_no_wait(update: Update) -> None:
    nothing = ({"module": "engine_swap", "on": "a"}, {"ended": True, "outcome": "done", "line": "main serves already"})
    succeeded, output = update.run(seen=[nothing])
    assert succeeded and "main serves already" in output, output
    assert update.swaps("a") == ["main 2"] and update.swaps("b") == THERE


@pytest.mark.full
def test_a_rollback_has_no_speed_bounds(update: Update) -> None:
    succeeded, output = update.run(update_back=True, update_playbook="baremetal.inference.rollback_model")
    assert succeeded, output
    begun = update.calls("engine_swap", "a")[0]
    assert begun["back"] and begun["pin"] and begun["reason"].startswith("baremetal.inference.rollback_model by")
    terms = begun["terms"]
    assert (terms["speed_bound"], terms["watch_speed_bound"], terms["watch_seconds"]) == (0, 0, 60)


@pytest.mark.full
def test_a_swap_gets_the_vouch_of_its_batch(update: Update) -> None:
    succeeded, output = update.run(__update_batches=[[{"host": "a", **TURN, "vouched": True}]])
    assert succeeded, output
    assert update.calls("engine_swap", "a")[0]["terms"]["vouched"] is True


@pytest.mark.once
def test_all_instances_go_back_if_update_rollback_is_all(update: Update) -> None:
    succeeded, output = update.run(seen=[ended("returned", on="b")], update_rollback="all")
    assert not succeeded and "it failed on b" in output
    assert update.swaps("a") == THERE + BACK and update.swaps("b") == THERE
    assert "main on a went back to the release that served before" in output
    returned = update.calls("engine_swap", "a", release=1)[0]
    # The old release is not pinned, and the bounds of the update do not apply to it.
    assert (returned["back"], returned["pin"]) == (True, False)
    terms = returned["terms"]
    assert (terms["speed_bound"], terms["watch_speed_bound"], terms["watch_seconds"]) == (0, 0, 0)
    assert update.locks_are_released()


@pytest.mark.full
def test_instances_go_back_in_reverse_order_until_one_of_them_cannot(update: Update) -> None:
    """main swaps on a and b, then side fails on a. On the way back, b is the last that serves main."""
    refused = {"ended": True, "outcome": "refused", "failure": "it is the last"}
    last = ({"module": "engine_swap", "on": "b", "release": 1}, refused)
    succeeded, output = update.run(
        seen=[ended("returned", name="side"), last],
        update_rollback="all",
        __update_batches=[[{"host": "a", **TURN}], [{"host": "b", **TURN}], [{"host": "a", **SIDE}]],
    )
    assert not succeeded and "it failed on a" in output
    assert "b, main: could not return to the old release, and still serves the new one: it is the last" in output
    assert update.swaps("b") == [*THERE, "main 1"] and update.swaps("a") == [*THERE, "side 6", "side awaited"]
    assert update.locks_are_released()


@pytest.mark.full
def test_a_failed_swap_leaves_the_other_instance_of_the_node_on_its_new_release(update: Update) -> None:
    """The second instance fails, and only this instance goes back."""
    succeeded, output = update.run(
        seen=[ended("returned", name="side")],
        __update_batches=[[{"host": "a", **TURN}], [{"host": "a", **SIDE}]],
    )
    assert not succeeded and "side on a went back to the release that served before" in output
    assert update.swaps("a") == [*THERE, "side 6", "side awaited"] and "main on a serves release 2" in output


def test_a_run_that_has_lost_its_lock_changes_no_node(update: Update) -> None:
    succeeded, output = update.run({"module": "node_lock", "on": "b", "playbook": "baremetal.inference.update_model"})
    assert not succeeded and "b: node_lock was told to fail" in output
    assert update.swaps("a") == update.swaps("b") == []


@pytest.mark.once
def test_a_node_that_becomes_unreachable_while_it_swaps_stops_the_other_nodes(update: Update) -> None:
    succeeded, output = update.run(seen=[({**AWAITED, "on": "a"}, {"gone": True})])
    assert not succeeded and update.swaps("b") == []
    assert (
        "a, main: the node became unreachable during the swap. It ends the swap by itself, with the new or the old"
        in output
    )


@pytest.mark.once
def test_a_node_that_becomes_unreachable_outside_of_its_swap_stops_no_other_node(update: Update) -> None:
    lost = ({"module": "node_lock", "on": "a", "playbook": "baremetal.inference.update_model"}, {"gone": True})
    succeeded, output = update.run(seen=[lost])
    # Ansible itself reports the lost node at the end.
    assert not succeeded and "unreachable=1" in output
    assert update.swaps("a") == [] and update.swaps("b") == THERE and "main on b serves release 2" in output
    assert "baremetal.inference.update_model stopped" not in output


@pytest.mark.full
@pytest.mark.parametrize(
    ("adopted", "unfinished", "kept"), [("run0", True, True), ("run0", False, False), ("", True, False)]
)
def test_a_preparation_that_fails_keeps_the_lock_of_an_interrupted_run(
    update: Update, adopted: str, unfinished: bool, kept: bool
) -> None:
    succeeded, output = update.run(
        tasks=["give_up"],
        update_playbook="baremetal.inference.maintenance",
        update_unfinished=unfinished,
        __update_lock={"adopted": adopted},
        ansible_failed_result={"msg": "the disk is full"},
    )
    assert not succeeded and "a: stopped. The failed task above names the cause. No engine was touched." in output
    assert "the disk is full" not in output, "the failed task has printed it"
    assert ("a: run run0 was cut off here, and its work is not over" in output) == kept
    assert (
        "stays drained, and the node locked. Remove the cause, and run baremetal.inference.maintenance again" in output
    ) == kept
    assert update.locks_are_released() == (not kept)


@pytest.mark.full
def test_renamed_variables_are_refused_with_their_new_names(update: Update) -> None:
    succeeded, output = update.run(tasks=["lock"], vllm_update_watch_seconds=3)
    assert (
        not succeeded
        and "a: vllm_update_watch_seconds is now called update_watch_seconds. Rename the variables" in output
    )
    assert update.calls("node_lock") == []


@pytest.mark.full
@pytest.mark.parametrize("adopted", ["run0", ""])
def test_a_removal_that_fails_keeps_the_lock_of_an_interrupted_run(update: Update, adopted: str) -> None:
    succeeded, output = update.run(
        {"module": "engine_outage"},
        seen=[({"module": "node_lock"}, {"adopted": adopted})],
        tasks=["remove_drain"],
        update_playbook="baremetal.inference.decommission",
        update_removed_instances=[ITEM],
    )
    assert (
        not succeeded
        and "nothing was removed, and the instances get requests again. engine_outage was told to fail" in output
    )
    assert ("The node stays locked: run run0 was cut off here." in output) == bool(adopted)
    assert update.calls("engine_drain", "a", state="undrained", name="main")
    assert update.locks_are_released() == (not adopted)


@pytest.mark.full
@pytest.mark.parametrize(("allowed", "last"), [(True, ["main"]), (False, [])])
def test_an_instance_is_drained_before_its_removal(update: Update, allowed: bool, last: list[str]) -> None:
    succeeded, output = update.run(
        tasks=["remove_drain"], update_removed_instances=[ITEM], update_allow_downtime=allowed
    )
    assert succeeded, output
    (call,) = update.calls("engine_outage", "a")
    assert (call["names"], call["owner"], call["last"]) == (["main"], "decommission", last)
    assert not update.locks_are_released()


@pytest.mark.full
def test_only_force_cuts_off_requests_of_a_removed_instance(update: Update) -> None:
    busy = ({"module": "engine_outage"}, {"reached": False, "msg": "main has 3 connections of clients"})
    given: dict[str, Any] = {"update_removed_instances": [ITEM], "update_drain_seconds": 20}
    succeeded, output = update.run(seen=[busy], tasks=["remove_drain"], **given)
    assert not succeeded and "main has 3 connections of clients" in output
    succeeded, output = update.run(seen=[busy], tasks=["remove_drain"], update_force=True, **given)
    assert succeeded, output


SAID = {
    "name": "main",
    "gateway": "a",
    "known": True,
    "silent": "",
    "bridge_known": True,
    "up": ["a"],
    "hold_seconds": 120,
}
DUE = {
    "due": True,
    "problems": [],
    "coming": None,
    "runs": "",
    "serving": True,
    "load_seconds": 1.0,
    "drained_until": "",
}
SERVES = InstanceFacts(
    "main", "tiny-b", 1, serving=True, running=True, swapping=False, drained_by="", drain_reason="", load_seconds=1.0
)
WAY = (
    "gone: the gateway cannot be reached, so it is unknown where it sends requests: repair its connection. If no client"
)


@pytest.mark.full
def test_an_update_without_a_gateways_answer_reports_the_workaround(update: Update) -> None:
    succeeded, output = update.run(
        tasks=["plan"],
        seen=[
            (DUE_FACTS, {"updates": [{**ITEM, **DUE}]}),
            ({"module": "gateway_facts"}, SAID),
        ],
        update_gateways=["a", "gone"],
    )
    assert not succeeded and f"The update cannot begin. No engine was touched. - {WAY}" in output, output
    assert """-e '{"update_gateways": ["a"]}'""" in output


@pytest.mark.full
def test_a_gateway_that_runs_with_an_older_hold_needs_site_first(update: Update) -> None:
    succeeded, output = update.run(
        tasks=["plan"],
        seen=[
            (DUE_FACTS, {"updates": [{**ITEM, **DUE}]}),
            ({"module": "gateway_facts"}, {**SAID, "hold_seconds": 20, "bridge_known": False}),
        ],
        nodes="a",
        update_gateway_holds={"a": 300},
    )
    assert not succeeded and "a runs with gateway_hold_seconds 20, and the inventory has 300 already" in output, output


def test_a_node_that_could_not_prepare_stops_the_plan(update: Update) -> None:
    succeeded, output = update.run(tasks=["plan"], nodes="a update_gave_up=full\nb")
    words = "a could not prepare the update: the failed tasks above name the cause. No engine was touched."
    assert not succeeded and words in output
    assert update.calls("engine_facts") == []


@pytest.mark.once
def test_a_plan_reports_an_excluded_node_that_gets_requests(update: Update) -> None:
    succeeded, output = update.run(
        tasks=["plan"],
        seen=[
            (DUE_FACTS, {"updates": [{**ITEM, **DUE}]}),
            ({"module": "gateway_facts"}, {**SAID, "up": ["a", "b", "c"]}),
        ],
        update_left_out=["c"],
    )
    assert succeeded, output
    assert "c cannot be reached, and is left out: it gets requests for main (by a)" in output
    assert "batch 1: main on a from release 1 to 2 (tiny-b)" in output and "batch 2: main on b" in output


@pytest.mark.full
def test_a_maintenance_without_a_gateways_answer_reports_the_workaround(update: Update) -> None:
    succeeded, output = update.run(
        role="maintenance",
        tasks=["prepare"],
        __maintenance_engines={"instances": [SERVES.to_dict()]},
        maintenance_seen={"gateways": [SAID], "unreachable": ["gone"]},
        __maintenance_due_packages={"lines": ["curl 1 -> 2"], "updates": []},
        __maintenance_due_cleanup={},
        __maintenance_due_models={},
        __maintenance_node={"reboot_reasons": [], "rails_due": []},
    )
    assert not succeeded and f"The maintenance cannot begin. Nothing was changed. - {WAY}" in output, output
    assert """-e '{"update_gateways": ["a"]}'""" in output


UNFIT = {
    "ok": False,
    "instance": "main",
    "model": "tiny-c",
    "revision": None,
    "gpus": None,
    "devices": [{"name": "CPU"}],
    "estimate": dict.fromkeys(["weights_gib", "overhead_gib", "kv_cache_gib", "spare_gib", "max_concurrency"]),
    "change": {"action": "update", "active": 1, "desired": None, "served": False},
    "problems": [
        {
            "check": "length",
            "key": "max-model-len",
            "value": 9,
            "message": "is too long",
            "fits": [{"max-model-len": 8}],
        }
    ],
}


def judged(update: Update, on: str, **extra: Any) -> tuple[bool, str]:
    """Check the fit, where the plan of the node `on` does not fit."""
    seen: list[tuple[Call, Call]] = [
        ({"module": "engine_plan"}, {"plans": [], "problems": [], "gangs": []}),
        ({"module": "engine_plan", "on": on}, {"plans": [UNFIT]}),
    ]
    return update.run(role="vllm", tasks=["fit"], seen=seen, **extra)


def test_an_engine_that_does_not_fit_is_refused_with_settings_that_fit(update: Update) -> None:
    succeeded, output = judged(update, "b", vllm_set={"main": "tiny-c"}, vllm_models_coming={"tiny-c": "f00"})
    assert not succeeded
    assert "b: engines that this run would start here do not fit. Nothing was changed. main: does not fit" in output
    assert "PROBLEM max-model-len: 9: is too long would fit: max-model-len: 8" in output
    assert "-e vllm_check_fit=false" in output and "a: engines that this run" not in output
    (call,) = update.calls("engine_plan", "b")
    assert [each["model"] for each in call["instances"]] == ["tiny-c"]
    assert call["coming"] == {"tiny-c": "f00"}


@pytest.mark.full
@pytest.mark.parametrize(
    "said",
    [
        {"vllm_check_fit": False},
        {"vllm_fit_swaps": False},
        {"vllm_fit_instances": ["side"]},
        {"vllm_fit_model": "x"},
    ],
)
def test_an_unfit_engine_that_does_not_swap_or_is_overruled_stops_no_node(update: Update, said: dict[str, Any]) -> None:
    succeeded, output = judged(update, "b", **said)
    assert succeeded, output
    assert len(update.calls("engine_plan")) == (0 if "vllm_check_fit" in said else 2)


def test_the_value_of_the_variable_set_must_be_json(update: Update) -> None:
    """Ansible splits the value at its blank. The filter set_models joins the parts."""
    play = {
        "hosts": "a",
        "roles": ["site_variables"],
        "tasks": [{"ansible.builtin.debug": {"msg": "{{ vllm_set.main }} is set"}}],
    }
    said = update.stage.run([play], "a", "--extra-vars", 'set={"main": "tiny-c"}')
    assert said[0] and "tiny-c is set" in said[1], said[1]
    said = update.stage.run([play], "a", "--extra-vars", "set=main:tiny-c")
    assert not said[0] and "set: found main:tiny-c, must be a dictionary of models by instance" in said[1], said[1]


@pytest.mark.full
@pytest.mark.parametrize("check", [False, True])
def test_the_variable_set_leaves_the_other_instances_to_the_inventory(update: Update, check: bool) -> None:
    """In check mode, only the module's result has the releases that would have been staged."""
    kept = {"pending": False, "pin": ""}
    staged = [{"name": name, "release": 2, "wanted": 2, **kept} for name in ("main", "side")]
    chosen = [{"name": name, "release": release, **kept} for name, release in (("main", 7), ("side", 3))]
    more: Call = {"orphans": [], "bridges": [], "places": {}, "due": False, "id": "image"}
    _succeeded, output = update.run(
        parts=[("vllm", "prepare"), ("update", "plan")],
        seen=[
            ({"module": "engine_release"}, {"releases": staged, **more}),
            ({"module": "engine_release", "desired": False}, {"releases": chosen, **more}),
            ({"module": "engine_image"}, {"missing": []}),
            (DUE_FACTS, {"updates": []}),
        ],
        vllm_set={"main": "tiny-c"},
        update_targets="{{ vllm_targets }}",
        update_unstaged="{{ vllm_unstaged }}",
        options=["--check"] if check else [],
    )
    (call,) = update.calls(on="a", **DUE_FACTS)
    assert call["targets"] == ({"main": 7, "side": 2} if check else {"main": 7}), output
    assert call["unstaged"] == ([*staged, chosen[0]] if check else chosen[:1])
    (first, second) = update.calls("engine_release", "a")
    assert (first["desired"], second["desired"]) == (True, False)
    assert [each["model"] for each in second["instances"]] == ["tiny-c"]


def test_a_bridge_whose_instance_is_not_declared_is_reported_with_a_command(update: Update) -> None:
    """No update removes this bridge: updates read only declared instances."""
    staged = ({"module": "engine_release"}, {"releases": [], "orphans": ["gone"], "bridges": ["gone_bridge"]})
    succeeded, output = update.run(seen=[staged], role="vllm", tasks=["stage"], __vllm_variants={})
    assert succeeded and "a still has gone_bridge, which served for an instance" in output, output
    assert "ansible a -b -m baremetal.inference.engine_service -a 'names=INSTANCE_bridge state=absent'" in output
