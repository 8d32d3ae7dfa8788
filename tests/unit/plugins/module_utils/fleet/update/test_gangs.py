# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A gang as one instance of a plan."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance_facts import BridgeFacts, UpdateFacts
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update.gangs import Missing, fold, server

NODES = ("n1", "n2", "n3")


def facts(name: str = "big", gang: tuple[str, ...] = NODES, **more: Any) -> UpdateFacts:
    values: dict[str, Any] = {"model": "m", "runs": "m r i", "origin": 1, "target": 2, "due": False, **more}
    return UpdateFacts(
        name=name,
        gang=gang,
        **{"interrupted": False, "serving": True, "load_seconds": 9.0, "problems": (), **values},
        drained_by="",
        drained_until="",
        bridge=BridgeFacts(f"{name}_bridge", None),
    )


def test_fold_leaves_an_instance_on_one_node_as_it_is() -> None:
    known = {"n1": {"main": facts("main", ())}}
    assert fold(known).known == known


def test_a_gang_is_due_if_any_member_is() -> None:
    known = {node: {"big": facts(due=node == "n3", origin=int(node[1]))} for node in NODES}
    found = fold(known)
    assert found.missing == [] and not found.lines
    assert (found.known["n2"], found.known["n3"]) == ({}, {})
    item = found.known["n1"]["big"]
    assert item.due and item.origin == 1 and item.problems == ()


def test_a_problem_of_a_follower_is_a_problem_of_the_gang() -> None:
    known = {node: {"big": facts()} for node in NODES}
    known["n2"]["big"] = facts(problems=("big: the image x is missing",), interrupted=True)
    known["n3"]["big"] = facts(due=True, runs="other r i")
    item = fold(known).known["n1"]["big"]
    assert item.interrupted
    assert item.problems == (
        "n2: big: the image x is missing",
        "n3 must run other r i, and n1 must run m r i: run baremetal.inference.site on all members",
    )


def test_a_due_gang_needs_all_members_in_the_run() -> None:
    known = {node: {"big": facts(due=True)} for node in ("n1", "n2")}
    found = fold(known)
    assert found.missing == [
        Missing(
            "big",
            "m",
            "big spans n1, n2, n3, and n3 is not in this run: run the playbook for all members (-l n1,n2,n3)",
        )
    ]
    assert fold({"n1": {"big": facts()}}).missing == [], "a gang that is not due stops no other update"
    left = fold(known, ["n3", "n9"])
    assert left.missing == [] and "n3 cannot be reached" in left.lines["n1", "big"]


def test_replicas_of_one_set_may_be_gangs_or_not() -> None:
    other = ("n4", "n5")
    known = {node: {"big": facts(gang=gang)} for gang in (NODES, other, ()) for node in gang or ("n6",)}
    assert {node for node, items in fold(known).known.items() if items} == {"n1", "n4", "n6"}


def test_the_server_of_a_gang_is_its_leader() -> None:
    assert server("n2", "big", NODES) == ("big", "n1")
    assert server("n2", "main", ()) == ("main", "n2")
