# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The batches of a maintenance, and the problems that forbid it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update.maintenance import (
    Followed,
    Host,
    MaintenancePlan,
    PlannedNode,
    Terms,
    plan_maintenance,
)

from ...conftest import instance_facts

SIZES = ("1", "25%", "50%", "100%")


def node(*names: str, up: tuple[str, ...] | None = None, hold: int = 120, **more: Any) -> dict[str, Any]:
    """A node whose work needs a drain. `up`: the servers of each of its sets that are up at the gateway."""
    item = {**more.pop("item", {})}
    gateway = {"gateway": "gw", "silent": "", "up": list(up or ()), "hold_seconds": hold}
    seen = [{"name": name, "known": True, "bridge_known": True, **gateway} for name in names]
    return {
        "due": ["update curl 1 -> 2"],
        "drain": True,
        "reboot": False,
        "gateway": False,
        "instances": [instance_facts(name, **item) for name in names],
        "gateways": seen if up is not None else [],
        "unreachable": [],
        **more,
    }


def fleet(count: int, **more: Any) -> dict[str, dict[str, Any]]:
    names = tuple(f"n{number}" for number in range(1, count + 1))
    return {name: node("main", up=names, **more) for name in names}


def order(made: MaintenancePlan) -> list[list[str]]:
    return [[item.host for item in batch] for batch in made.batches]


def plan(
    hosts: dict[str, dict[str, Any]], sizes: tuple[str, ...] = SIZES, seconds: int = 90, **more: Any
) -> MaintenancePlan:
    read = {name: Host.from_dict(facts) for name, facts in hosts.items()}
    return plan_maintenance(read, Terms(sizes, seconds, **more))


def test_batches_have_the_declared_sizes() -> None:
    made = plan(fleet(9))
    assert order(made) == [["n1"], ["n2", "n3"], ["n4", "n5", "n6", "n7"], ["n8", "n9"]]
    assert made.problems == []
    assert made.lines[0] == "batch 1: n1: update curl 1 -> 2, drained"


def test_one_replica_of_a_set_keeps_serving() -> None:
    assert order(plan(fleet(2), ("100%",))) == [["n1"], ["n2"]]
    assert order(plan(fleet(3), ("100%",))) == [["n1", "n2"], ["n3"]]


def gangs(*, others: bool = True, **more: Any) -> dict[str, dict[str, Any]]:
    """n1 leads a gang with n2; n3 has another replica."""
    up = ("n1", "n3") if others else ("n1",)
    item = {"gang": ("n1", "n2")}
    hosts = {name: node("main", up=up, item=item, **more) for name in ("n1", "n2")}
    return {**hosts, "n3": node("main", up=up, **more)} if others else hosts


def test_a_batch_has_only_one_member_of_a_gang_and_then_no_other_replica() -> None:
    made = plan(gangs(), ("100%",))
    assert made.problems == []
    assert not any(turn.alone for batch in made.batches for turn in batch)
    # Neither two members at once, nor a member and the other replica.
    assert sorted(order(made)) == [["n1"], ["n2"], ["n3"]]
    turns = {turn.host: turn.gangs for batch in made.batches for turn in batch}
    assert turns == {"n1": [], "n2": [Followed("main", "n1")], "n3": []}


@pytest.mark.parametrize("host", ["n1", "n2"])
def test_a_lone_gang_is_held_or_refused_for_any_member(host: str) -> None:
    hosts = gangs(others=False)
    hosts = {name: facts if name == host else {**facts, "due": []} for name, facts in hosts.items()}
    made = plan(hosts)
    assert made.problems == [] and [turn.alone for batch in made.batches for turn in batch] == [["main"]]
    hosts[host]["reboot"] = True
    (problem,) = plan(hosts).problems
    assert f"main on {host} is the only replica that serves at gw, and a reboot takes longer" in problem
    assert plan(hosts, allow_downtime=True).problems == []


def test_a_gang_is_drained_on_its_leader_which_must_be_in_the_run() -> None:
    hosts = gangs()
    del hosts["n1"]
    (problem,) = plan(hosts).problems
    assert problem == (
        "main on n2 follows n1, where the gang is drained, and n1 is not in this run: run the playbook with -l n1,n2"
    )
    hosts["n2"]["drain"] = False
    assert plan(hosts).problems == []


def test_nodes_whose_work_needs_no_drain_share_a_batch() -> None:
    made = plan(fleet(3, drain=False), ("100%",))
    assert order(made) == [["n1", "n2", "n3"]]
    assert not any(item.drain or item.alone for item in made.batches[0])
    assert "drained" not in made.lines[0]


def test_a_node_without_work_is_in_no_batch() -> None:
    hosts = fleet(2) | {"n3": node("main", up=("n1", "n2"), due=[], drain=False)}
    made = plan(hosts)
    assert order(made) == [["n1"], ["n2"]]
    assert "nothing is due on n3" in made.lines


@pytest.mark.parametrize(
    ("silent", "gone", "problem"),
    [
        ("HAProxy does not answer: refused", [], "gw: HAProxy does not answer: refused: start it. If no client"),
        ("", ["gw2"], "gw2: the gateway cannot be reached, so it is unknown where it sends requests: repair"),
    ],
)
def test_a_gateway_that_does_not_answer_is_a_problem_with_a_next_step(
    silent: str, gone: list[str], problem: str
) -> None:
    hosts = fleet(2)
    hosts["n1"]["gateways"][0] |= {"silent": silent, "up": []}
    hosts["n1"]["unreachable"] = gone
    made = plan(hosts)
    (said,) = made.problems
    assert said.startswith(problem) and 'leave it out: -e \'{"update_gateways": [' in said
    assert made.batches == []
    # If no node is drained, the gateways need not answer.
    for facts in hosts.values():
        facts["drain"] = False
    assert plan(hosts).problems == []


def test_a_node_that_does_not_serve_comes_first() -> None:
    hosts = {name: node("main", up=("n1", "n2")) for name in ("n1", "n2", "n3")}
    assert order(plan(hosts)) == [["n3"], ["n1"], ["n2"]]
    # Then n3 serves, so n1 and n2 may share a batch.
    assert order(plan(hosts, ("1", "100%"))) == [["n3"], ["n1", "n2"]]


def test_nodes_with_different_sets_share_a_batch() -> None:
    hosts = {
        "n1": node("a", up=("n1", "n2")),
        "n2": node("a", up=("n1", "n2")),
        "n3": node("b", up=("n3", "n4")),
        "n4": node("b", up=("n3", "n4")),
    }
    assert order(plan(hosts, ("100%",))) == [["n1", "n3"], ["n2", "n4"]]


def test_requests_of_an_only_replica_are_held() -> None:
    made = plan({"n1": node("main", up=("n1",))})
    assert made.problems == []
    assert made.batches == [[PlannedNode("n1", drain=True, alone=["main"], drain_seconds=30)]]


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (
            node("main", up=("n1",), hold=60),
            "up to 90 s (maintenance_work_seconds). gw runs with gateway_hold_seconds 60:",
        ),
        ({**node("main", up=("n1",), hold=60), "holds": {"gw": 300}}, "the inventory has 300 already: first run"),
        (node("main"), "no gateway holds its requests"),
        (node("main", up=("n1",), reboot=True), "a reboot takes longer"),
        (node("main", up=("n1", "n2"), reboot=True, gateway=True), "n1 is also a gateway"),
        (node("main", up=("n1", "n2"), item={"swapping": True}), "run baremetal.inference.update_model first"),
    ],
)
def test_work_that_clients_would_notice_or_that_meets_a_swap_is_refused(facts: dict[str, Any], words: str) -> None:
    (problem,) = plan({"n1": facts}).problems
    assert words in problem


@pytest.mark.parametrize("reboot", [True, False])
def test_allowed_downtime_is_no_problem(reboot: bool) -> None:
    made = plan({"n1": node("main", up=("n1",), hold=0, reboot=reboot, gateway=True)}, allow_downtime=True)
    assert made.problems == [] and made.batches[0][0].drain_seconds is None


def test_a_run_that_failed_is_continued() -> None:
    left = node("main", up=("n2",), due=[], drain=False, item={"serving": False, "drained_by": "maintenance"})
    made = plan({"n1": left, "n2": node("main", up=("n2",), due=[], drain=False)})
    assert made.batches == [[PlannedNode("n1", drain=True, alone=[], drain_seconds=None)]]
    assert made.lines[0] == "batch 1: n1: continues an earlier run that was cut off or failed, drained"


def test_a_node_without_instances_is_in_a_batch() -> None:
    made = plan({"n1": node()})
    assert made.problems == [] and order(made) == [["n1"]]


@pytest.mark.parametrize("sizes", [(), ("0",), ("half",)])
def test_an_invalid_size_is_a_problem(sizes: tuple[str, ...]) -> None:
    (problem,) = plan(fleet(1), sizes).problems
    assert "maintenance_batches" in problem


def test_a_node_that_cannot_be_reached_is_named_and_counted() -> None:
    read = {"n1": Host.from_dict(node("main", up=("n1", "dead")))}
    made = plan_maintenance(read, Terms(SIZES, 90), ["dead"])
    assert made.problems == [] and made.batches == [[PlannedNode("n1", drain=True, alone=[], drain_seconds=None)]]
    assert made.lines[0] == "dead cannot be reached, and is left out: it gets requests for main (by gw)"


def test_each_gateway_keeps_a_server() -> None:
    hosts = fleet(3)
    for facts in hosts.values():
        facts["gateways"].append({**facts["gateways"][0], "gateway": "gw2", "up": ["n1", "n2"]})
    # By gw alone, n1 and n2 could share a batch.
    assert order(plan(hosts, ("100%",))) == [["n1", "n3"], ["n2"]]
    hosts["n1"]["gateways"][1]["up"] = ["n1"]
    (problem,) = plan({"n1": hosts["n1"]}, seconds=130).problems
    assert problem.startswith("main on n1 is the only replica that serves at gw2, and the work takes up to 130 s")


@given(
    st.lists(st.sets(st.sampled_from("abc"), max_size=3), min_size=1, max_size=7),
    st.lists(st.lists(st.booleans(), min_size=7, max_size=7), min_size=1, max_size=3),
    st.lists(st.sampled_from(["1", "2", "50%", "100%"]), min_size=1, max_size=3),
)
def test_every_node_is_in_one_batch_and_only_a_set_marked_as_alone_loses_its_last_server_at_a_gateway(
    nodes: list[set[str]], gateways: list[list[bool]], sizes: list[str]
) -> None:
    """Each gateway has lost some nodes, and sends the other nodes requests for all of their sets."""
    up = {
        (f"gw{number}", name): {f"n{index}" for index, names in enumerate(nodes) if name in names and sends[index]}
        for number, sends in enumerate(gateways)
        for name in "abc"
    }
    hosts = {}
    for index, names in enumerate(nodes):
        facts = node(*sorted(names), up=())
        facts["gateways"] = [
            {**facts["gateways"][0], "gateway": gateway, "name": name, "up": sorted(serving)}
            for (gateway, name), serving in up.items()
            if name in names
        ]
        hosts[f"n{index}"] = facts
    made = plan(hosts, tuple(sizes))
    assert sorted(host for batch in order(made) for host in batch) == sorted(hosts)
    for batch in made.batches:
        going = {turn.host for turn in batch}
        for (_gateway, name), serving in up.items():
            if serving and serving <= going:
                # A node with a set that is marked as alone is the only node of the set in the batch.
                (turn,) = [turn for turn in batch if name in hosts_sets(nodes, turn.host)]
                assert name in turn.alone
            serving |= {host for host in going if name in hosts_sets(nodes, host)}


def hosts_sets(nodes: list[set[str]], host: str) -> set[str]:
    return nodes[int(host[1:])]
