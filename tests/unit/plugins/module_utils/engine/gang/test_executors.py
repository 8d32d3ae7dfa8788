# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The executor of a gang: its name, its ports, its secret."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang import executors
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import RESERVED_PORTS

from .test_members import gang

BIG: dict[str, Any] = {"name": "big", "port": 5010, "gang_port": 5110, "rendezvous_port": 29510, "executor": "ray"}
KEYS = ("port", "bridge_port", "gang_port", "rendezvous_port")


def test_the_default_executor_and_unknown_executors_have_no_name() -> None:
    assert executors.names() == ["mp", "ray"]
    assert executors.normal("ray") == "ray"
    for name in ("mp", None, "slurm", ["ray"]):
        assert executors.normal(name) == "" and executors.of(name) is None


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, ""),
        ({"executor": None}, ""),
        ({"executor": "mp"}, ""),
        ({"executor": "rya"}, "executor: 'rya': must be one of mp, ray: did you mean 'ray'?"),
        ({"executor": True}, "must be one of mp, ray"),
        (
            {"rendezvous_port": 32700},
            "rendezvous_port: 32700: is the first of 128 ports that executor ray needs: take 32640 or",
        ),
        ({"rendezvous_port": 32640}, ""),
        ({"rendezvous_port": 65500}, "is the first of 128 ports"),
        ({"rendezvous_port": "x"}, ""),
        ({"rendezvous_port": 32700, "executor": "mp"}, ""),
        ({"executor_dashboard": True}, ""),
        ({"executor_dashboard": False, "executor": None}, ""),
        ({"executor_dashboard": "yes"}, "executor_dashboard: 'yes': must be true or false"),
        ({"executor_dashboard": 1}, "executor_dashboard: 1: must be true or false"),
        ({"executor_dashboard": True, "executor": "mp"}, "belongs to another executor than mp"),
        ({"executor_dashboard": True, "executor": None}, "belongs to another executor than mp"),
    ],
)
def test_each_mistake_of_the_executor_is_reported(changes: dict[str, Any], text: str) -> None:
    found = "\n".join(map(str, executors.problems("instance big", {**BIG, **changes})))
    assert text in found and bool(text) == bool(found)


def test_all_mistakes_are_reported_at_once() -> None:
    wrong = {**BIG, "executor_dashboard": "yes", "rendezvous_port": 32700}
    assert [one.key for one in executors.problems("x", wrong)] == ["executor_dashboard", "rendezvous_port"]
    assert len(executors.problems("x", {**wrong, "executor": "slurm"})) == 2


def test_ray_needs_128_ports_and_mp_only_the_rendezvous_port() -> None:
    assert executors.ports(BIG) == range(29510, 29638)
    assert executors.opened(BIG) == ["29510-29629"]
    plain = {**BIG, "executor": "mp"}
    assert len(executors.ports(plain)) == 0 and executors.opened(plain) == [29510]
    assert executors.opened({"name": "big"}) == []
    assert not set(executors.ports(BIG)) & set(RESERVED_PORTS)


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"name": "main", "port": 29511}, "the ports to 29637 that executor ray needs: port 29511 is port of main"),
        ({"name": "main", "port": 5005, "bridge_port": 29600}, "29600 is bridge_port of main"),
        ({"name": "large", "rendezvous_port": 29520}, "29520 is rendezvous_port of large"),
        ({**BIG, "gang_port": 29512}, "29512 is gang_port of big"),
        (BIG, ""),
        # Another check reports a port that two instances have.
        ({"name": "large", "rendezvous_port": 29510}, ""),
        ({"name": "main", "port": 29638}, ""),
    ],
)
def test_a_port_of_ray_that_an_instance_has_is_a_mistake(other: dict[str, Any], text: str) -> None:
    found = "\n".join(map(str, executors.conflicts("instance big", BIG, [(other["name"], other)], KEYS)))
    assert text in found and bool(text) == bool(found)
    assert not text or found.endswith(": take another rendezvous_port, or another port there")
    assert list(executors.conflicts("x", {**BIG, "executor": "mp"}, [(other["name"], other)], KEYS)) == []


def test_each_gang_has_its_own_secret_for_ray() -> None:
    """The secret is the same on each member, differs between gangs and keys, and does not contain the key."""
    key = "0123456789abcdef"
    one = executors.secret(key, gang())
    assert one == executors.secret(key, gang(1)) and len(one) == 64 and key not in one
    others = [
        executors.secret(key + "x", gang()),
        executors.secret(key, replace(gang(), name="y")),
        executors.secret(key, gang(nodes=3)),
    ]
    assert len({one, *others}) == 4
