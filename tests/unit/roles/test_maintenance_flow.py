# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role maintenance drains and undrains two nodes around its work. The modules are stand-ins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]

MODULES = (
    "apt_packages",
    "engine_drain",
    "engine_outage",
    "engine_service",
    "model_clean",
    "node_cleanup",
    "node_facts",
    "node_lock",
    "rdma_settings",
)

Call = dict[str, Any]

INSTANCE = {"name": "main", "release": 1, "serving": True, "running": True, "drained_by": "", "model": "tiny-a"}
TURN: Call = {"drain": True, "alone": [], "drain_seconds": None, "gangs": []}
NODE = {
    "reboot_reasons": [],
    "rails_due": [],
    "driver": False,
    "certificates": [],
    "damaged": [],
    "disks": [],
    "models": 1,
    "checks": [],
    "problems": [],
}
OUTAGE: Call = {"module": "engine_outage", "state": "ended"}


class Maintenance:
    """Batches and report of role maintenance, on the nodes a and b, in this order."""

    def __init__(self, stage: Any) -> None:
        self.stage = stage

    def run(self, *failures: Call, seen: Sequence[tuple[Call, Call]] = (), **extra: Any) -> tuple[bool, str]:
        """Whether the play succeeded, and what was printed."""
        variables = {
            "maintenance_store_path": "/mnt/models",
            "maintenance_keep_models": 2,
            "maintenance_ready_seconds": 60,
            "maintenance_run_id": "run1",
            "maintenance_parts": ["updates"],
            "maintenance_instances": ["main"],
            "maintenance_unfinished": False,
            "__maintenance_engines": {"instances": [INSTANCE]},
            "__maintenance_batches": [[{"host": host, **TURN}] for host in "ab"],
            "__maintenance_node": NODE,
            "__maintenance_due_packages": {"lines": []},
            **extra,
        }
        included = [{"name": "baremetal.inference.maintenance", "tasks_from": name} for name in ("main", "report")]
        tasks = [{"name": "Work", "ansible.builtin.include_role": include} for include in included]
        answered = [({"module": "node_facts"}, NODE), ({"module": "apt_packages"}, {"lines": ["curl 1 -> 2"]}), *seen]
        play = {"name": "Maintain", "hosts": "a:b", "vars": variables, "tasks": tasks}
        found: tuple[bool, str] = self.stage.run([play], "a\nb", failures=failures, seen=answered)
        return found

    def steps(self, on: str) -> list[str]:
        """What was done on a node, in short."""
        words = {
            "engine_outage": "away",
            "apt_packages": "updated",
            "engine_drain": "drained",
            "rdma_settings": "rails",
            "machine_reboot": "rebooted",
        }
        return [call.get("state", words[call["module"]]) for call in self.stage.calls(on=on) if call["module"] in words]


@pytest.fixture
def maintenance(staged: Callable[[Sequence[str]], Any]) -> Maintenance:
    return Maintenance(staged(MODULES))


def test_a_node_gets_no_requests_during_its_maintenance(maintenance: Maintenance) -> None:
    succeeded, output = maintenance.run()
    assert succeeded, output
    assert maintenance.steps("a") == maintenance.steps("b") == ["away", "updated", "ended"]
    (away,) = maintenance.stage.calls(module="engine_outage", on="a", reason="maintenance of the node")
    assert (away["names"], away["owner"], away["last"], away["seconds"]) == (["main"], "maintenance", [], 20)


GANG = [{"name": "big", "leader": "a"}]
FOLLOWS: Call = {
    "maintenance_instances": ["main", "big"],
    "__maintenance_engines": {"instances": [INSTANCE, {**INSTANCE, "name": "big"}]},
    "__maintenance_batches": [[{"host": "b", **TURN, "gangs": GANG}]],
}


def test_a_gang_is_drained_on_its_leader_before_the_work_and_undrained_after(maintenance: Maintenance) -> None:
    succeeded, output = maintenance.run(**FOLLOWS)
    assert succeeded, output
    assert maintenance.steps("b") == ["away", "away", "updated", "ended", "ended"]
    own, gang, _back, ended = maintenance.stage.calls(module="engine_outage", on="b")
    assert own["names"] == ["main"] and "at" not in own
    assert (gang["names"], gang["at"], gang["reason"]) == (["big"], "a", "maintenance of b, a member of the gang")
    assert (ended["names"], ended["at"], ended["state"]) == (["big"], "a", "ended")


@pytest.mark.parametrize(
    ("failing", "state"),
    [({"module": "engine_outage", "names": ["big"]}, "undrained"), ({"module": "apt_packages"}, "drained")],
    ids=["the gang is not drained", "the work fails"],
)
def test_a_gang_stays_drained_only_if_its_member_was_changed(
    maintenance: Maintenance, failing: Call, state: str
) -> None:
    succeeded, _output = maintenance.run({**failing, "on": "b"}, **FOLLOWS)
    assert not succeeded
    own, gang = maintenance.stage.calls(module="engine_drain", on="b")
    assert (own["name"], gang["name"], gang["at"]) == ("main", "big", "a")
    assert {own["state"], gang["state"]} == {state}


def test_a_node_that_cannot_be_drained_drains_no_gang(maintenance: Maintenance) -> None:
    succeeded, output = maintenance.run({"module": "engine_outage", "names": ["main"], "on": "b"}, **FOLLOWS)
    assert not succeeded and "engine_outage was told to fail" in output and "One or more items" not in output
    (own,) = maintenance.stage.calls(module="engine_outage", on="b")
    assert own["names"] == ["main"]


@pytest.fixture
def rebooting(staged: Callable[..., Any]) -> Maintenance:
    """Roles that ask a stand-in for the reboot: Ansible's own module would reboot this machine."""
    name = "roles/maintenance/tasks/reboot_node.yml"
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text.count("ansible.builtin.reboot:") == 1
    texts = {name: text.replace("ansible.builtin.reboot:", "baremetal.inference.machine_reboot:")}
    return Maintenance(staged((*MODULES, "machine_reboot", "nvidia_driver_facts"), texts))


def reboot(maintenance: Maintenance, *failures: Call, planned: bool, reasons: int = 1, **more: Any) -> tuple[bool, str]:
    """A maintenance that may reboot the node a. `more`: more values of the turn of a, and whether a is a gateway."""
    gateway = more.pop("gateway", False)
    found = {**NODE, "reboot_reasons": ["linux-image-6.12"] * reasons, "driver": True}
    return maintenance.run(
        *failures,
        seen=[({"module": "node_facts"}, found)],
        maintenance_parts=["updates", "reboot"],
        maintenance_reboot_allowed=True,
        maintenance_is_gateway=gateway,
        __maintenance_here={"reboot": planned},
        __maintenance_batches=[[{"host": "a", **TURN, **more}]],
        __maintenance_node=NODE,
    )


def test_a_reboot_that_is_due_comes_after_the_updates_and_before_requests(rebooting: Maintenance) -> None:
    succeeded, output = reboot(rebooting, planned=True, alone=["main"])
    assert succeeded and '"rebooted": "yes"' in output, output
    assert rebooting.steps("a") == ["away", "updated", "rebooted", "ended"]
    (call,) = rebooting.stage.calls(module="machine_reboot", on="a")
    assert call["reboot_timeout"] == 1800 and "/proc/1/stat" in call["boot_time_command"]
    (checked,) = rebooting.stage.calls(module="nvidia_driver_facts", on="a")
    assert checked["gather_subset"] == ["kernel_check"]


@pytest.mark.parametrize(
    ("turn", "reboots"),
    [
        ({"planned": False}, True),
        ({"planned": False, "alone": ["main"]}, False),
        pytest.param({"planned": False, "gateway": True}, False, marks=pytest.mark.full),
        pytest.param({"planned": False, "drain": False}, False, marks=pytest.mark.full),
        pytest.param({"planned": True, "reasons": 0}, False, marks=pytest.mark.full),
    ],
    ids=["others serve", "the only replica", "a gateway", "not drained", "not due"],
)
def test_a_reboot_waits_if_not_due_or_clients_would_notice(rebooting: Maintenance, turn: Call, reboots: bool) -> None:
    succeeded, output = reboot(rebooting, **turn)
    assert succeeded, output
    assert ("rebooted" in rebooting.steps("a")) == reboots


def test_a_node_whose_next_kernel_has_no_driver_is_not_rebooted(rebooting: Maintenance) -> None:
    succeeded, output = reboot(rebooting, {"module": "nvidia_driver_facts"}, planned=True)
    assert not succeeded and "a stays drained: Reboot | Check that every kernel that may boot has the driver" in output
    assert rebooting.steps("a") == ["away", "updated", "drained"]


def test_a_reboot_that_fails_is_not_reported_as_done(rebooting: Maintenance) -> None:
    succeeded, output = reboot(rebooting, {"module": "machine_reboot"}, planned=True)
    assert not succeeded and "a stays drained: Reboot | Reboot, and wait: machine_reboot was told to fail" in output
    assert '"rebooted"' not in output


@pytest.fixture
def examined(staged: Callable[..., Any]) -> Maintenance:
    """Roles that repeat the doctor without a pause."""
    name = "roles/maintenance/tasks/fit.yml"
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text.count("delay: 5") == 1
    return Maintenance(staged(MODULES, {name: text.replace("delay: 5", "delay: 0")}))


DOCTOR: Call = {"module": "node_facts", "gather_subset": ["doctor"]}


@pytest.mark.once
def test_a_check_that_fails_since_the_work_keeps_the_node_drained(examined: Maintenance) -> None:
    old, new = ({"name": name, "status": "fail", "message": f"{name} is bad"} for name in ("system-disk", "gpu-count"))
    found = (DOCTOR, {**NODE, "checks": [old, new]})
    succeeded, output = examined.run(seen=[found], __maintenance_node={**NODE, "checks": [old]})
    assert not succeeded and "gpu-count: gpu-count is bad. Run inferctl doctor" in " ".join(output.split()), output
    assert "system-disk is bad" not in output
    assert examined.steps("a") == ["away", "updated", "drained"]
    # The agent needs a moment to see an engine that was restarted.
    assert len(examined.stage.calls(on="a", **DOCTOR)) == 7


@pytest.mark.full
def test_a_doctor_that_cannot_run_keeps_the_node_drained(examined: Maintenance) -> None:
    succeeded, output = examined.run({**DOCTOR, "on": "a"})
    assert not succeeded and "a stays drained: Fit | Run the doctor: node_facts was told to fail" in output, output


@pytest.mark.full
def test_an_engine_that_loads_too_long_is_reported(maintenance: Maintenance) -> None:
    loads = ({"module": "engine_service"}, {"loading": ["main"], "msg": "still loading: main: weights"})
    succeeded, output = maintenance.run(seen=[loads])
    failed = "a stays drained: Fit | Wait until every engine that must serve answers: still loading: main: weights"
    assert not succeeded and failed in output, output


MTU = "rail 0 (rocep65s0f0/1): mtu: 1500 -> 9000"


def test_the_plan_drains_a_node_whose_rails_wait(maintenance: Maintenance) -> None:
    instance = {**INSTANCE, "swapping": False, "drain_reason": "", "load_seconds": 1.0}
    variables = {
        "maintenance_store_path": "/mnt/models",
        "maintenance_keep_models": 2,
        "maintenance_ready_seconds": 60,
        "maintenance_parts": ["rails"],
        "__maintenance_engines": {"instances": [instance]},
        "__maintenance_node": {**NODE, "rails_due": "{{ [line] if inventory_hostname == 'b' else [] }}"},
        "__maintenance_due_packages": {"lines": [], "updates": []},
        "line": MTU,
    }
    include = {"name": "baremetal.inference.maintenance", "tasks_from": "prepare"}
    play = {"hosts": "a:b", "vars": variables, "tasks": [{"ansible.builtin.include_role": include}]}
    succeeded, output = maintenance.stage.run([play], "a\nb")
    assert succeeded and f"batch 1: b: set {MTU}, drained" in output and "nothing is due on a" in output, output


def test_rails_that_wait_are_set_while_the_node_has_no_requests(maintenance: Maintenance) -> None:
    due = {**NODE, "rails_due": [MTU]}
    more: Call = {"__maintenance_node": due, "maintenance_parts": ["updates", "rails"]}
    succeeded, output = maintenance.run(seen=[({"module": "rdma_settings"}, {"changes": [MTU]})], **more)
    assert succeeded and f'"set": [ "{MTU}" ]' in " ".join(output.split()), output
    assert maintenance.steps("a") == ["away", "updated", "rails", "ended"]
    (call,) = maintenance.stage.calls(module="rdma_settings", on="a")
    assert call["recorded"] is True and "settings" not in call


def test_rails_that_cannot_be_set_keep_the_node_drained(maintenance: Maintenance) -> None:
    due = {**NODE, "rails_due": [MTU]}
    more: Call = {"__maintenance_node": due, "maintenance_parts": ["updates", "rails"]}
    succeeded, output = maintenance.run({"module": "rdma_settings", "on": "a"}, **more)
    assert not succeeded and "a stays drained: Work | Make the settings of the rails" in output
    assert maintenance.steps("a")[-1] == "drained" and maintenance.steps("b") == []


@pytest.mark.full
def test_rails_are_left_alone_without_their_tag(maintenance: Maintenance) -> None:
    succeeded, output = maintenance.run(__maintenance_node={**NODE, "rails_due": [MTU]})
    assert succeeded and "rails" not in maintenance.steps("a"), output


@pytest.mark.full
def test_a_node_with_damaged_models_fails_the_run_after_its_work(maintenance: Maintenance) -> None:
    found = {**NODE, "damaged": ["tiny-a: config.json differs"]}
    succeeded, output = maintenance.run(seen=[({"module": "node_facts"}, found)], __maintenance_node=found)
    assert not succeeded and "baremetal.inference.maintenance stopped" not in output
    assert maintenance.steps("a") == maintenance.steps("b") == ["away", "updated", "ended"]
    assert "a: " in output and "tiny-a: config.json differs" in output


@pytest.mark.full
def test_work_that_clients_do_not_notice_drains_no_instance(maintenance: Maintenance) -> None:
    batches = [[{"host": "a", **TURN, "drain": False}]]
    succeeded, output = maintenance.run(__maintenance_batches=batches)
    assert succeeded, output
    assert all(call["names"] == [] for call in maintenance.stage.calls(module="engine_outage", on="a"))


@pytest.mark.full
def test_the_only_replica_drains_no_longer_than_its_requests_are_held(maintenance: Maintenance) -> None:
    busy = (
        {"module": "engine_outage", "reason": "maintenance of the node"},
        {"reached": False, "msg": "3 connections"},
    )
    batches = [[{"host": "a", **TURN, "alone": ["main"], "drain_seconds": 30}]]
    succeeded, output = maintenance.run(seen=[busy], __maintenance_batches=batches)
    assert not succeeded and "3 connections" in output
    calls = maintenance.stage.calls(module="engine_outage", on="a")
    assert sum(call["seconds"] for call in calls) <= 30 and calls[0]["last"] == ["main"]


@pytest.mark.once
def test_a_node_that_was_not_changed_gets_requests_again(maintenance: Maintenance) -> None:
    succeeded, output = maintenance.run({"module": "engine_outage", "on": "a"})
    failed = "Work | Drain the node, and the gangs that it follows: engine_outage was told to fail"
    assert not succeeded and f"a is not drained by this run: {failed}" in output
    assert maintenance.steps("a") == ["away", "undrained"] and maintenance.steps("b") == []
    assert "b was not touched" in output


@pytest.mark.full
def test_a_node_that_an_earlier_run_left_drained_stays_drained(maintenance: Maintenance) -> None:
    left = {"instances": [{**INSTANCE, "drained_by": "maintenance"}]}
    succeeded, output = maintenance.run(
        {"module": "engine_outage", "on": "a"}, __maintenance_engines=left, maintenance_unfinished=True
    )
    assert not succeeded and "a stays drained" in output
    assert maintenance.steps("a") == ["away", "drained"]


@pytest.mark.once
@pytest.mark.parametrize("failing", [{"module": "apt_packages"}, OUTAGE])
def test_a_node_whose_work_failed_stays_drained_and_stops_the_other_nodes(
    maintenance: Maintenance, failing: Call
) -> None:
    succeeded, output = maintenance.run({**failing, "on": "a"})
    assert not succeeded and "baremetal.inference.maintenance stopped: it failed on a. a stays drained" in output
    assert maintenance.steps("a")[-1] == "drained" and maintenance.steps("b") == []
    (drained,) = maintenance.stage.calls(module="engine_drain", on="a")
    assert drained["reason"].startswith("maintenance of a failed: Work | ")


@pytest.mark.full
def test_a_gateway_that_does_not_send_requests_again_fails_the_node(maintenance: Maintenance) -> None:
    short = (OUTAGE, {"reached": False, "msg": "gw gives a 40 % of its share"})
    succeeded, output = maintenance.run(seen=[({**short[0], "on": "a"}, short[1])])
    assert not succeeded and "gw gives a 40 % of its share" in output
    # The longest slow start takes 180 s.
    assert sum(call["seconds"] for call in maintenance.stage.calls(on="a", **OUTAGE)) >= 260
    assert maintenance.steps("b") == []


@pytest.mark.full
def test_a_run_that_has_lost_its_lock_changes_no_node(maintenance: Maintenance) -> None:
    succeeded, output = maintenance.run({"module": "node_lock", "on": "b"})
    assert not succeeded and "it failed on b" in output
    assert maintenance.steps("a") == maintenance.steps("b") == []


@pytest.mark.once
@pytest.mark.parametrize(
    ("lost", "others"),
    [
        ({"module": "apt_packages", "on": "a"}, []),
        ({"module": "node_lock", "on": "a"}, ["away", "updated", "ended"]),
    ],
)
def test_a_node_that_becomes_unreachable_stops_other_nodes_only_in_its_own_turn(
    maintenance: Maintenance, lost: Call, others: list[str]
) -> None:
    succeeded, output = maintenance.run(seen=[(lost, {"gone": True})], maintenance_left_out=["c"])
    assert not succeeded and "unreachable=1" in output
    assert maintenance.steps("b") == others
    assert ("baremetal.inference.maintenance stopped: it failed on a." in output) == (not others)
    assert ("c could not be reached when the run began." in output) == (not others)
