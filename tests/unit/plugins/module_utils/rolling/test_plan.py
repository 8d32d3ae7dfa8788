# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an update says before it begins."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.rolling.plan import Choice, Plan, plan


def instance(**more: Any) -> dict[str, Any]:
    return {
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
        **more,
    }


def host(*instances: dict[str, Any], up: list[str] | None = None, hold: int = 120) -> dict[str, Any]:
    gateway = {"gateway": "gw", "known": True, "up": up, "hold_seconds": hold}
    seen = [] if up is None else [{**gateway, "name": item["name"]} for item in instances]
    return {"instances": list(instances), "gateways": seen}


def order(found: Plan) -> list[list[tuple[str, str]]]:
    return [[(item["host"], item["name"]) for item in batch] for batch in found.batches]


def made(hosts: dict[str, Any], choice: Choice | None = None, allow_downtime: bool = False) -> Plan:
    return plan(hosts, [1], choice or Choice(), allow_downtime=allow_downtime)


def test_two_nodes() -> None:
    up = ["a", "b"]
    found = made({"a": host(instance(), up=up), "b": host(instance(origin=None), up=up)})
    assert found.problems == []
    assert order(found) == [[("a", "main")], [("b", "main")]]
    assert [(item["alone"], item["drain_seconds"]) for batch in found.batches for item in batch] == [(False, None)] * 2
    assert found.lines == [
        "batch 1: main on a from release 1 to 2 (new)",
        "batch 2: main on b for the first time to 2 (new)",
    ]


def test_nothing_due() -> None:
    found = made({"a": host(instance(due=False), up=["a"])})
    assert (found.batches, found.problems, found.lines) == ([], [], ["not due: main on a"])


def test_every_reason_against_it_at_once() -> None:
    found = made(
        {
            "a": host(instance(problems=["main: the image x is not on this node"]), up=["a"], hold=30),
            "b": host(instance(name="side"), instance(name="other", load_seconds=None), up=[]),
        },
    )
    assert found.problems[0] == "a: main: the image x is not on this node"
    assert (
        "main on a is the only replica that serves; its swap takes about 74 s, gateway_hold_seconds is 30"
        in (found.problems[1])
    )
    assert len(found.problems) == 2


def test_the_only_replica() -> None:
    for hosts, why in (
        ({"a": host(instance())}, "there is no gateway that would hold requests"),
        ({"a": host(instance(load_seconds=None), up=["a"])}, "nobody knows how long its release loads"),
    ):
        (problem,) = made(hosts).problems
        assert why in problem
        assert made(hosts, allow_downtime=True).problems == []
    found = made({"a": host(instance(), up=["a"])})
    assert found.problems == []
    # 120 s are held, 74 of which the swap needs itself.
    assert (found.batches[0][0]["alone"], found.batches[0][0]["drain_seconds"]) == (True, 46)
    found = made({"a": host(instance(), up=["a"])}, allow_downtime=True)
    assert (found.batches[0][0]["alone"], found.batches[0][0]["drain_seconds"]) == (True, None)


def test_a_replica_must_be_up_at_all_gateways() -> None:
    hosts = {name: host(instance(), up=["a", "b"]) for name in "ab"}
    # Another gateway has lost b: a is the last one there, and b, which nobody misses, comes first.
    hosts["a"]["gateways"].append({**hosts["a"]["gateways"][0], "gateway": "gw2", "up": ["a"]})
    assert [batch[0]["host"] for batch in made(hosts).batches] == ["b", "a"]


def test_a_choice() -> None:
    hosts = {"a": host(instance(), instance(name="side", model="other"), up=["a", "z"])}
    assert order(made(hosts, Choice(("side",)))) == [[("a", "side")]]
    assert order(made(hosts, Choice(model="new"))) == [[("a", "main")]]
    (problem,) = made(hosts, Choice(("sied",))).problems
    assert "did you mean 'side'" in problem


def test_what_was_cut_off_and_what_stays_drained_is_said() -> None:
    (line,) = made({"a": host(instance(interrupted=True, drained_by="mira@a"), up=["a", "b"])}).lines
    assert "finishing a swap that was cut off; stays drained by mira@a" in line


def test_a_wrong_size_is_a_problem_like_others() -> None:
    found = plan({"a": host(instance(), up=["a", "b"])}, ["many"], Choice(), allow_downtime=False)
    assert found.problems == ["update_batches holds 'many', which is no size: write a number from 1, or 1% to 100%"]


def test_a_swap_that_was_cut_off_is_not_passed_over() -> None:
    hosts = {"a": host(instance(interrupted=True), instance(name="side"), up=["a", "b"])}
    (problem,) = made(hosts, Choice(("side",))).problems
    assert problem.startswith("main on a: a swap was cut off, and this run leaves it out")
    assert made(hosts).problems == []


def test_a_drain_that_would_end_in_the_middle() -> None:
    until = "2026-11-21T05:00:00Z"
    (problem,) = made({"a": host(instance(drained_by="mira@a", drained_until=until), up=["b"])}).problems
    assert f"is drained by mira@a until {until}" in problem


def test_an_instance_that_a_gateway_does_not_know() -> None:
    hosts = {"a": host(instance(), up=["b"])}
    hosts["a"]["gateways"][0]["known"] = False
    (problem,) = made(hosts).problems
    assert "main on a is not known to gw: run site.yml" in problem


def test_a_number_that_means_different_things() -> None:
    hosts = {name: host(instance(runs=f"new {name}"), up=["a", "b"]) for name in "ab"}
    (problem,) = made(hosts, Choice(release=3)).problems
    assert "release 3 of main is not the same on all nodes" in problem
    assert made(hosts).problems == []
