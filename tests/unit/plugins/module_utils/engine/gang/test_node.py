# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gangs of a node: its rank and network, and mistakes that only the node sees."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang import node
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang.network import Network
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang.plan import ONE_NODE, Span
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang.site import Host, Site
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance

BIG = Instance("big", "llama", 5010, nodes=("n1", "n2"), gang_port=5110, rendezvous_port=29510)
MAIN = Instance("main", "llama", 5005)
SITE = Site("n2", ("n1", "n2"), {"n1": Host("192.0.2.1"), "n2": Host("127.0.0.1", "inference_address")})
KEY = "0123456789abcdef"
NO_ROOT = Path("/nonexistent")
"""The root of a node without /proc."""


DECLARED = {"name": "big", "nodes": ["n1", "n2"]}


def found(
    instances: tuple[Any, ...] = (DECLARED,),
    key: str = KEY,
    secrets: dict[str, Any] | None = None,
    **more: str,
) -> str:
    return "\n".join(map(str, node.problems(instances, SITE, key, more, secrets or {}, NO_ROOT)))


def test_a_node_without_a_gang_needs_no_key() -> None:
    assert found(({"name": "main"}, "odd"), "") == ""
    assert found() == ""


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("32768\t60999\n", False),
        ("40000\t50000\n", False),
        ("1024\t60999\n", True),
        ("32768\t65535\n", True),
        ("damaged\n", False),
    ],
)
def test_a_node_whose_kernel_gives_ports_that_the_firewalls_do_not_open_is_refused(
    tmp_path: Path, text: str, refused: bool
) -> None:
    (tmp_path / node.PORT_RANGE_FILE).parent.mkdir(parents=True)
    (tmp_path / node.PORT_RANGE_FILE).write_text(text)
    problems = node.problems([DECLARED], SITE, KEY, {}, {}, tmp_path)
    assert [problem.key for problem in problems] == (["net.ipv4.ip_local_port_range"] if refused else [])
    assert not refused or "must be within 32768 to 60999" in str(problems[0])
    assert node.problems([{"name": "main"}], SITE, KEY, {}, {}, tmp_path) == []


@pytest.mark.parametrize(("now", "wanted", "refused"), [(60999, 65535, "32768 65535"), (65535, 60999, "")])
def test_the_port_range_that_this_run_sets_counts(tmp_path: Path, now: int, wanted: int, refused: str) -> None:
    (tmp_path / node.PORT_RANGE_FILE).parent.mkdir(parents=True)
    (tmp_path / node.PORT_RANGE_FILE).write_text(f"32768\t{now}\n")
    problems = node.problems([DECLARED], replace(SITE, port_range=f"32768 {wanted}"), KEY, {}, {}, tmp_path)
    assert [problem.value for problem in problems] == ([refused] if refused else [])


@pytest.mark.parametrize("key", ["", "short", f"{KEY}\n", "change-me-with-openssl"])
def test_the_gang_key_is_needed_and_never_shown(key: str) -> None:
    text = found(key=key)
    assert "vllm_gang_key: (site variable gang_key) must be 16 characters or more" in text
    assert not key or f"'{key}'" not in text


def test_a_computed_variable_must_not_be_set() -> None:
    assert "VLLM_HOST_IP: is computed for instances over several nodes: set inference_fabric_address" in found(
        VLLM_HOST_IP="x"
    )


@pytest.mark.parametrize("name", ["RAY_AUTH_TOKEN_PATH", "INFERENCE_RAY_TOKEN"])
def test_a_variable_of_an_executor_must_not_be_set(name: str) -> None:
    (problem,) = node.problems([DECLARED], SITE, KEY, {name: "s3cret"}, {}, NO_ROOT)
    assert str(problem).startswith(f"vllm_environment: {name}: is computed") and "s3cret" not in str(problem)
    assert problem.message.endswith("set executor and gang_key instead")


def test_an_instance_must_not_set_a_computed_variable() -> None:
    own = {**DECLARED, "environment": {"VLLM_HOST_IP": "x"}}
    assert found((own,), secrets={"big": "odd"}).startswith("instance big: VLLM_HOST_IP: is computed")
    text = found(secrets={"big": {"VLLM_HOST_IP": "s3cret"}, "main": {"VLLM_HOST_IP": "y"}})
    assert text.startswith("instance big: VLLM_HOST_IP: is computed") and "s3cret" not in text and "main" not in text


def test_an_address_that_the_node_does_not_have_is_refused() -> None:
    site = replace(SITE, hosts={**SITE.hosts, "n2": Host("192.0.2.99", "inference_fabric_address")})
    (problem,) = node.problems([DECLARED], site, KEY, {}, {}, NO_ROOT)
    assert str(problem).startswith("node n2: inference_fabric_address: '192.0.2.99': is no address of this node")
    # Another check covers the form of all members' addresses.
    assert node.problems([DECLARED], replace(SITE, hosts={"n2": Host("nonsense")}), KEY, {}, {}, NO_ROOT) == []


def test_a_member_has_its_rank_its_address_and_its_network(tmp_path: Path) -> None:
    addresses = json.dumps([{"ifname": "lo", "addr_info": [{"local": "127.0.0.1", "prefixlen": 8}]}])
    gang, network = node.member(BIG, SITE, tmp_path, lambda command: Outcome(0, addresses))
    assert gang and (gang.rank, gang.me.address, gang.leader.address) == (1, "127.0.0.1", "192.0.2.1")
    assert (gang.name, gang.gang_port, gang.rendezvous_port, gang.digest) == ("big", 5110, 29510, "")
    assert network.interface == "lo"
    assert node.span(BIG, SITE, network) == Span(2, 1, network)


def test_without_all_addresses_and_ports_there_is_no_gang(tmp_path: Path) -> None:
    for one in (MAIN, replace(BIG, nodes=("n1", "n3")), replace(BIG, gang_port=None)):
        assert node.member(one, SITE, tmp_path) == (None, Network())
    assert node.span(MAIN, SITE, Network()) == ONE_NODE
    assert node.span(replace(BIG, nodes=("n1", "n3")), SITE, Network()) == Span(2, 0)
