# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of an update: batches, problems, and lines for the operator."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance_facts import UpdateFacts
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update.plan import Choice, Host, Plan, plan

NO_BRIDGE: dict[str, Any] = {
    "name": "main_bridge",
    "port": None,
    "gpus": [],
    "left": False,
    "certain": True,
    "problem": "it has no bridge_port",
}
BRIDGE = {**NO_BRIDGE, "port": 5105, "problem": ""}


def instance(**more: Any) -> dict[str, Any]:
    facts = {
        "name": "main",
        "model": "new",
        "origin": 1,
        "target": 2,
        "due": True,
        "interrupted": False,
        "serving": True,
        "load_seconds": 40.0,
        "drained_by": "",
        "drained_until": "",
        "runs": "new r1 image",
        "problems": [],
        "bridge": NO_BRIDGE,
        "coming": None,
        "gang": [],
        **more,
    }
    assert UpdateFacts.from_dict(facts).to_dict() == facts
    return facts


def host(*instances: dict[str, Any], up: list[str] | None = None, hold: int = 120) -> dict[str, Any]:
    gateway = {
        "gateway": "gw",
        "known": True,
        "silent": "",
        "bridge_known": True,
        "up": up,
        "hold_seconds": hold,
    }
    seen = [] if up is None else [{**gateway, "name": item["name"]} for item in instances]
    return {"instances": list(instances), "gateways": seen, "unreachable": []}


def order(found: Plan) -> list[list[tuple[str, str]]]:
    return [[(item.host, item.name) for item in batch] for batch in found.batches]


def made(hosts: dict[str, Any], choice: Choice | None = None, allow_downtime: bool = False) -> Plan:
    read = {name: Host.from_dict(facts) for name, facts in hosts.items()}
    return plan(read, [1], choice or Choice(), allow_downtime=allow_downtime)


def test_two_replicas_are_two_batches() -> None:
    up = ["a", "b"]
    found = made({"a": host(instance(), up=up), "b": host(instance(origin=None), up=up)})
    assert found.problems == []
    assert order(found) == [[("a", "main")], [("b", "main")]]
    assert [(item.origin, item.release, item.way) for batch in found.batches for item in batch] == [
        (1, 2, "others"),
        (None, 2, "others"),
    ]
    assert found.lines == [
        "batch 1: main on a from release 1 to 2 (new)",
        "batch 2: main on b: first start, with release 2 (new)",
    ]


GANG = ["a", "b"]


def test_a_gang_is_one_instance_of_its_leader() -> None:
    big = {"name": "big", "gang": GANG}
    found = made(
        {
            "a": host(instance(**big, due=False), up=["a", "c"]),
            "b": host(instance(**big, origin=11, target=12), instance(), up=["b", "c"]),
            "c": host(instance(name="big"), instance(), up=["b", "c"]),
        },
    )
    assert found.problems == []
    turns = [item for batch in found.batches for item in batch if item.name == "big"]
    assert {(item.host, item.origin, item.release) for item in turns} == {("a", 1, 2), ("c", 1, 2)}
    assert any("big on a, b from release 1 to 2" in line for line in found.lines)
    assert not any("big on b" in line for line in found.lines)


def test_a_gang_needs_all_of_its_members_in_the_run() -> None:
    found = made({"b": host(instance(gang=GANG), up=["a", "c"])})
    assert found.problems == ["main spans a, b, and a is not in this run: run the playbook for all members (-l a,b)"]
    assert found.batches == []


def test_a_gang_whose_member_cannot_be_reached_is_left_out() -> None:
    read = {"a": Host.from_dict(host(instance(gang=GANG), up=["a", "c"]))}
    found = plan(read, [1], Choice(), allow_downtime=False, left_out=["b"])
    assert found.problems == [] and found.batches == []
    assert "main spans a, b, and b cannot be reached: main is left out" in found.lines


def test_an_instance_that_is_not_due_has_only_a_line() -> None:
    found = made({"a": host(instance(due=False), up=["a"])})
    assert (found.batches, found.problems, found.lines) == ([], [], ["not due: main on a"])


def test_all_problems_are_reported_at_once() -> None:
    found = made(
        {
            "a": host(instance(problems=["main: the image x is not on this node"]), up=["a"], hold=30),
            "b": host(instance(name="side"), instance(name="other", load_seconds=None), up=[]),
        },
    )
    assert found.problems[0] == "a: main: the image x is not on this node"
    assert (
        "main on a is the only replica that serves. Judged by the last load, the swap may take 74 s. A load from"
        " caches takes less. gw runs with gateway_hold_seconds 30: set gateway_hold_seconds to 74 or more"
        in (found.problems[1])
    )
    assert len(found.problems) == 2


def test_requests_of_the_only_replica_are_held_or_downtime_is_allowed() -> None:
    for hosts, why in (
        ({"a": host(instance())}, "no gateway holds its requests"),
        ({"a": host(instance(load_seconds=None), up=["a"])}, "it is unknown how long its release loads"),
    ):
        (problem,) = made(hosts).problems
        assert why in problem
        assert made(hosts, allow_downtime=True).problems == []
    found = made({"a": host(instance(), up=["a"])})
    assert found.problems == []
    # The gateway holds requests for 120 s, and the swap may take 74 s.
    assert found.batches[0][0].way == "held"
    found = made({"a": host(instance(), up=["a"])}, allow_downtime=True)
    assert found.batches[0][0].way == "downtime"
    assert "; clients may find no engine meanwhile, because no bridge can serve: " in found.lines[0]


def test_without_a_gateway_a_node_that_reports_a_serving_engine_counts_as_a_replica() -> None:
    found = made({"a": host(instance()), "b": host(instance())})
    assert found.problems == [] and [(batch[0].way, batch[0].vouched) for batch in found.batches] == [
        ("others", True),
        ("others", True),
    ]
    found = made({"a": host(instance()), "b": host(instance(serving=False))}, allow_downtime=True)
    assert [(batch[0].host, batch[0].way, batch[0].vouched) for batch in found.batches] == [
        ("b", "unchanged", False),
        ("a", "others", True),
    ]


def test_a_replica_must_be_up_at_all_gateways() -> None:
    hosts = {name: host(instance(), up=["a", "b"]) for name in "ab"}
    # gw2 has lost b, so a is its last server. b comes first, because fewer gateways send it requests.
    hosts["a"]["gateways"].append({**hosts["a"]["gateways"][0], "gateway": "gw2", "up": ["a"]})
    assert [(batch[0].host, batch[0].way) for batch in made(hosts).batches] == [("b", "others"), ("a", "others")]


def test_each_gateway_counts_for_itself() -> None:
    """gw has only a, and gw2 has only b. So the swap of a takes the last server from gw."""
    hosts = {name: host(instance(load_seconds=400.0), up=["a"]) for name in "ab"}
    for facts in hosts.values():
        facts["gateways"].append({**facts["gateways"][0], "gateway": "gw2", "up": ["b"]})
    found = made(hosts)
    # When a serves again, both gateways have a.
    assert [(batch[0].host, batch[0].way) for batch in found.batches] == [("a", "held"), ("b", "others")]
    (problem,) = found.problems
    assert problem.startswith(
        "main on a is the only replica that serves. Judged by the last load, the swap may take 470 s."
    )


def test_nodes_that_cannot_be_reached_are_named_and_counted() -> None:
    read = {"a": Host.from_dict(host(instance(), up=["a", "dead"]))}
    found = plan(read, [1], Choice(), allow_downtime=False, left_out=["dead", "gone"])
    assert found.problems == [] and found.batches[0][0].way == "others"
    assert found.lines == [
        "dead cannot be reached, and is left out: it gets requests for main (by gw)",
        "gone cannot be reached, and is left out: no gateway sends it requests",
        "batch 1: main on a from release 1 to 2 (new)",
    ]


def test_only_chosen_instances_are_in_the_plan() -> None:
    hosts = {"a": host(instance(), instance(name="side", model="other"), up=["a", "z"])}
    assert order(made(hosts, Choice(("side",)))) == [[("a", "side")]]
    assert order(made(hosts, Choice(model="new"))) == [[("a", "main")]]
    (problem,) = made(hosts, Choice(("sied",))).problems
    assert "did you mean 'side'" in problem


def test_a_line_names_a_swap_that_was_cut_off_and_a_drain() -> None:
    (line,) = made({"a": host(instance(interrupted=True, drained_by="mira@a"), up=["a", "b"])}).lines
    assert "finishing a swap that was cut off; stays drained by mira@a" in line


def test_a_wrong_size_of_a_batch_is_a_problem() -> None:
    found = plan({"a": Host.from_dict(host(instance(), up=["a", "b"]))}, ["many"], Choice(), allow_downtime=False)
    assert found.problems == ["update_batches contains 'many': use a whole number from 1, or 1% to 100%"]


def test_a_swap_that_was_cut_off_must_be_in_the_run() -> None:
    hosts = {"a": host(instance(interrupted=True), instance(name="side"), up=["a", "b"])}
    (problem,) = made(hosts, Choice(("side",))).problems
    assert problem.startswith("main on a: a swap was cut off, and this run does not include the instance")
    assert made(hosts).problems == []


def test_an_unfinished_update_of_a_gang_with_an_unreachable_member_has_a_next_step() -> None:
    """The run is already for all instances."""
    read = {"a": Host.from_dict(host(instance(interrupted=True, gang=GANG), up=["a", "c"]))}
    found = plan(read, [1], Choice(), allow_downtime=False, left_out=["b"])
    assert found.problems == [
        "main on a: a swap was cut off, and b cannot be reached: repair b, or exclude a with -l, then run this playbook"
        " again"
    ]


def test_an_unfinished_update_of_an_undeclared_instance_has_a_next_step() -> None:
    unfinished = {
        "a swap was cut off": (instance(target=None, due=False, interrupted=True), "finish the swap"),
        "an update has left a bridge": (
            instance(target=None, due=False, bridge={**BRIDGE, "left": True}),
            "remove the bridge",
        ),
    }
    for left, (facts, step) in unfinished.items():
        assert made({"a": host(facts, up=["a", "b"])}).problems == [
            f"main on a: {left}, and the inventory does not declare the instance: declare it again, {step} with"
            " baremetal.inference.update_model for all instances, then remove the instance with"
            " baremetal.inference.decommission"
        ]


def test_a_drain_that_would_end_during_the_swap_is_a_problem() -> None:
    until = "2026-11-21T05:00:00Z"
    (problem,) = made({"a": host(instance(drained_by="mira@a", drained_until=until), up=["b"])}).problems
    assert f"is drained by mira@a until {until}" in problem


def test_an_instance_without_a_server_at_a_gateway_is_a_problem() -> None:
    hosts = {"a": host(instance(), up=["b"])}
    hosts["a"]["gateways"][0]["known"] = False
    (problem,) = made(hosts).problems
    assert "gw has no server for main on a: run baremetal.inference.site" in problem


def test_a_gateway_that_does_not_answer_is_one_problem() -> None:
    hosts = {"a": host(instance(), up=["a", "b"])}
    dead = {"gateway": "gw2", "known": False, "silent": "HAProxy does not answer: refused", "up": []}
    hosts["a"]["gateways"].append({**hosts["a"]["gateways"][0], **dead})
    (problem,) = made(hosts).problems
    assert problem == (
        "gw2: HAProxy does not answer: refused: start it. If no client uses this gateway meanwhile, leave it out:"
        """ -e '{"update_gateways": ["gw"]}'"""
    )


def test_a_gateway_that_cannot_be_reached_is_the_only_problem() -> None:
    """Only an answer of this gateway would show whether the instance is the last server."""
    hosts = {"a": {**host(instance(), up=["a"], hold=0), "unreachable": ["gw2"]}, "b": host(instance(), up=["a"])}
    found = made(hosts)
    assert found.problems == [
        "gw2: the gateway cannot be reached, so it is unknown where it sends requests: repair its connection. If no"
        """ client uses this gateway meanwhile, leave it out: -e '{"update_gateways": ["gw"]}'"""
    ]
    assert found.batches == []
    # The site has no other gateway.
    (problem,) = made({"a": {**host(instance()), "unreachable": ["gw"]}}).problems
    assert problem.endswith("""-e '{"update_gateways": []}'""")


def test_a_release_number_must_mean_the_same_release_on_all_nodes() -> None:
    hosts = {name: host(instance(runs=f"new {name}"), up=["a", "b"]) for name in "ab"}
    (problem,) = made(hosts, Choice(release=3)).problems
    assert "release 3 of main is not the same on all nodes" in problem
    assert made(hosts).problems == []


@pytest.mark.parametrize(
    ("bridge", "gateway", "bridged", "said"),
    [
        ({}, {}, True, "side by side: a bridge serves meanwhile, on port 5105"),
        ({"certain": False}, {}, True, "side by side, if both fit: a bridge"),
        ({"gpus": ["2", "3"]}, {}, True, "on port 5105 and GPU 2, 3"),
        (
            {"problem": "the node has 1.0 GiB left"},
            {},
            False,
            "hold requests meanwhile, because no bridge can serve: the node has 1.0 GiB left",
        ),
        (
            {},
            {"bridge_known": False},
            False,
            "because no bridge can serve: gw has no server for the bridge: run baremetal.inference.site",
        ),
    ],
)
def test_the_only_replica_has_a_bridge_if_the_bridge_fits(
    bridge: dict[str, Any], gateway: dict[str, Any], bridged: bool, said: str
) -> None:
    hosts = {"a": host(instance(bridge={**BRIDGE, **bridge}), up=["a"])}
    hosts["a"]["gateways"][0] |= gateway
    found = made(hosts)
    (item,) = found.batches[0]
    assert found.problems == [] and said in found.lines[0]
    assert item.way == ("bridge" if bridged else "held")


def test_with_a_bridge_a_load_may_take_any_time() -> None:
    hosts = {"a": host(instance(bridge=BRIDGE, load_seconds=None), up=["a"], hold=10)}
    assert made(hosts).problems == []
    hosts = {"a": host(instance(bridge={**BRIDGE, "problem": "no GPU is free"}, load_seconds=400.0), up=["a"])}
    (problem,) = made(hosts).problems
    assert "the swap may take 470 s" in problem
    assert problem.endswith(". A bridge would serve meanwhile, but main cannot have one yet: no GPU is free")


def test_a_gateway_that_does_not_run_with_the_inventorys_value_needs_a_run_of_site_first() -> None:
    hosts = {"a": {**host(instance(load_seconds=100.0), up=["a"]), "holds": {"gw": 300}}}
    (problem,) = made(hosts).problems
    assert "gw runs with gateway_hold_seconds 120, and the inventory has 300 already: first run" in problem
    assert "baremetal.inference.site -l gw. Or add a replica" in problem and "set gateway_hold_seconds" not in problem


def test_an_instance_with_other_replicas_needs_no_bridge() -> None:
    found = made({"a": host(instance(bridge=BRIDGE), up=["a", "b"])})
    assert found.batches[0][0].way == "others" and "side by side" not in found.lines[0]
    assert found.lines == ["batch 1: main on a from release 1 to 2 (new)"]


def test_without_a_gateway_a_bridge_would_serve_no_client() -> None:
    (problem,) = made({"a": host(instance(bridge=BRIDGE))}).problems
    assert "no gateway holds its requests meanwhile" in problem


def test_a_leftover_bridge_that_serves_counts_as_a_server() -> None:
    """A run was killed while the bridge served in place of the instance."""
    left = instance(bridge={**BRIDGE, "left": True}, interrupted=True, serving=False)
    found = made({"a": host(left, up=["main_bridge.a"])})
    (item,) = found.batches[0]
    assert found.problems == [] and item.way == "unchanged"


def test_a_leftover_bridge_is_removed_without_a_swap() -> None:
    left = instance(due=False, target=1, bridge={**BRIDGE, "left": True})
    found = made({"a": host(left, up=["a"], hold=0)})
    (item,) = found.batches[0]
    assert found.problems == [] and (item.origin, item.release, item.way) == (1, 1, "unchanged")
    assert found.lines == ["batch 1: main on a: the leftover bridge of an earlier update is removed"]


def test_a_leftover_bridge_must_be_in_the_run() -> None:
    left = instance(due=False, bridge={**BRIDGE, "left": True})
    hosts = {"a": host(left, instance(name="side"), up=["a", "b"])}
    (problem,) = made(hosts, Choice(("side",))).problems
    assert problem.startswith("main on a: an update has left a bridge, and this run does not include the instance")
    assert problem.endswith("first remove the bridge, with baremetal.inference.update_model for all instances")
    # If the swap was cut off as well, the problem names the swap.
    left["interrupted"] = True
    (problem,) = made(hosts, Choice(("side",))).problems
    assert problem.startswith("main on a: a swap was cut off")
