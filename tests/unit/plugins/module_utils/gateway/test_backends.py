# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which engines answer to which name."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.addresses import AddressError
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance_facts import BridgeFacts, UpdateFacts
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.backends import (
    Backend,
    Place,
    Replica,
    check_replicas,
    fleet_of,
    replicas_of,
)
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.routing import Routing

from ..conftest import instance_facts

INSTANCES = [
    {"name": "chat", "model": "large", "port": 5005},
    {"name": "old", "model": "large", "port": 5006, "state": "absent"},
    "a mistake that the node's own check reports",
]


def no_address(_name: str) -> list[str]:
    return []


@pytest.mark.parametrize(
    ("variables", "own", "address"),
    [
        ({"inference_address": "192.0.2.11"}, False, "192.0.2.11"),
        ({"inference_address": "192.0.2.11"}, True, "192.0.2.11"),
        ({}, True, "127.0.0.1"),
        ({"inference_address": "0.0.0.0", "ansible_host": "192.0.2.11"}, True, "127.0.0.1"),
        ({"inference_address": "0.0.0.0", "ansible_host": "192.0.2.11"}, False, "192.0.2.11"),
        ({"inference_address": "::"}, True, "::1"),
    ],
)
def test_an_engine_has_the_address_of_the_inventory(variables: dict[str, str], own: bool, address: str) -> None:
    hostvars = {"gpu1": {"instances": INSTANCES, "vllm_api_key": "secret", **variables}}
    found = replicas_of(["gpu1"], hostvars, "gpu1" if own else "gw1", no_address)
    assert found == [Replica("gpu1", address, "chat", "large", 5005, "secret", declared="large")]


def test_an_address_that_is_a_name_is_resolved() -> None:
    hostvars = {"gpu1": {"instances": INSTANCES, "inference_address": "gpu1.internal"}}
    found = replicas_of(["gpu1"], hostvars, "gw1", {"gpu1.internal": ["192.0.2.11"]}.__getitem__)
    assert [replica.address for replica in found] == ["192.0.2.11"]


def test_all_hosts_that_cannot_be_reached_are_named_at_once() -> None:
    hostvars = {"gpu1": {"instances": INSTANCES}, "gpu2": {"instances": INSTANCES}, "gpu3": {}}
    with pytest.raises(AddressError, match=r"gpu1: .*127\.0\.0\.1.*inference_address.*gpu2"):
        replicas_of(["gpu1", "gpu2", "gpu3"], hostvars, "gw1", no_address)


@pytest.mark.parametrize("instances", [7, 0.5, True])
def test_instances_that_are_no_list_are_a_mistake_of_their_host(instances: object) -> None:
    hostvars = {"gpu1": {"instances": instances}, "gpu2": {"instances": INSTANCES}}
    with pytest.raises(AddressError) as error:
        replicas_of(["gpu1", "gpu2"], hostvars, "gw1", no_address)
    assert str(error.value).startswith(f"gpu1: instances is {instances!r}: it must be a list; gpu2: ")


@pytest.mark.parametrize(
    ("reported", "model"),
    [
        ({"instances": [instance_facts("chat", "small", 3)]}, "small"),
        # The engine has never started: its node reports a staged release.
        ({"instances": [instance_facts("chat", "small", None)]}, "large"),
        # The release is damaged.
        ({"instances": [instance_facts("chat", "", 3)]}, "large"),
        ({"instances": []}, "large"),
        ({"unreachable": True, "msg": "no route to host"}, "large"),
    ],
)
def test_an_engine_has_the_model_that_its_node_reports(reported: dict[str, Any], model: str) -> None:
    hostvars = {"gpu1": {"instances": INSTANCES, "vllm_engines": reported}}
    (found,) = replicas_of(["gpu1"], hostvars, "gpu1", no_address)
    assert (found.model, found.declared) == (model, "large")
    assert set(fleet_of([found]).routes) == {"chat", model}


RUNS = {"address": "192.0.2.11", "port": 5005, "marks": ["1a2b3c4d"]}


def placed(own: str = "gw1", coming: dict[str, Any] | None = None, runs: Any = (RUNS,), **variables: Any) -> Replica:
    """An engine. Its node reports the endpoints that run (`runs`) and the endpoint that an update brings (`coming`)."""
    reported = {"instances": [{**instance_facts("chat"), "endpoints": list(runs)}]}
    bridge = BridgeFacts("chat_bridge", None)
    due = UpdateFacts("chat", "large", "", 1, 2, True, False, True, None, "", "", bridge, ())
    hostvars = {
        "instances": INSTANCES,
        "inference_address": "192.0.2.11",
        "vllm_engines": reported,
        "update_coming": [{**due.to_dict(), "coming": coming}] if coming else [],
        **variables,
    }
    (found,) = replicas_of(["gpu1"], {"gpu1": hostvars}, own, no_address)
    return found


def test_an_engine_that_runs_as_declared_has_one_server() -> None:
    for found in (placed(), placed(runs=[])):
        assert (found.endpoint, found.words, found.coming, found.agent_address) == ("192.0.2.11:5005", "", None, "")
    assert placed().running_marks == ("1a2b3c4d",) and placed(runs=[]).running_marks is None


def test_an_engine_that_moves_to_another_port_has_two_servers() -> None:
    for found in (
        placed(runs=[{**RUNS, "port": 5055}]),
        placed(runs=[{**RUNS, "port": 5055}], coming={**RUNS, "port": 5005}),
    ):
        assert (found.endpoint, found.words) == ("192.0.2.11:5055", "192.0.2.11/5055")
        assert found.coming == Place("192.0.2.11", 5005, "192.0.2.11/5005") and found.agent_address == ""
    # A rollback brings an endpoint that the inventory does not have.
    back = placed(coming={**RUNS, "port": 5066, "marks": []})
    assert back.coming and (back.endpoint, back.coming.port, back.coming_marks) == ("192.0.2.11:5005", 5066, ())
    assert back.next and (back.next.server, back.next.agent_name, back.next.set) == ("chat_next.gpu1", "chat", "chat")


def test_an_engine_that_moves_to_another_address_has_two_servers_if_gateways_must_connect_elsewhere() -> None:
    moves = placed(runs=[{**RUNS, "address": "192.0.2.99"}])
    assert (moves.endpoint, moves.agent_address) == ("192.0.2.99:5005", "192.0.2.11")
    assert moves.next and (moves.next.endpoint, moves.next.agent_address) == ("192.0.2.11:5005", "")
    everywhere = placed(runs=[{**RUNS, "address": "0.0.0.0"}], ansible_host="192.0.2.11")
    assert everywhere.coming is None and everywhere.words == ""
    # A gateway on the node itself uses the loopback address.
    own = placed("gpu1", runs=[{**RUNS, "address": "0.0.0.0"}])
    assert own.next and (own.endpoint, own.next.endpoint) == ("127.0.0.1:5005", "192.0.2.11:5005")
    # No gateway reaches the running endpoint, so the only server has the endpoint of the inventory.
    assert placed(runs=[{**RUNS, "address": "127.0.0.1", "port": 5055}]).endpoint == "192.0.2.11:5005"


def test_a_replica_is_read_from_json_as_it_was_written() -> None:
    """A site may declare gateway_replicas itself, with lists."""
    moves = placed(runs=[{**RUNS, "port": 5055}], coming={**RUNS, "port": 5055, "marks": []})
    moves = replace(moves, other_keys=("an-earlier-key",))
    assert moves.running_marks and moves.coming_marks == ()
    for replica in (moves, placed(runs=[])):
        found = Replica.from_dict(json.loads(json.dumps(asdict(replica))))
        assert found == replica and hash(found) == hash(replica)


def test_names_lead_to_sets_and_a_shared_model_to_all_of_its_sets(replicas: list[Replica]) -> None:
    fleet = fleet_of(replicas)
    found = {name: (route.name, [replica.host for replica in route.replicas]) for name, route in fleet.routes.items()}
    assert found == {
        "chat": ("set_chat", ["gpu1", "gpu2"]),
        "batch": ("set_batch", ["gpu2"]),
        "code": ("set_code", ["gpu3"]),
        "Org/Coder": ("set_code", ["gpu3"]),
        "large": ("model_large", ["gpu1", "gpu2", "gpu2"]),
    }
    assert [backend.name for backend in fleet.backends] == ["set_batch", "set_chat", "set_code", "model_large"]


def test_a_model_that_only_some_nodes_of_a_set_serve_leads_to_these_nodes() -> None:
    """One node serves another model: the set's name leads to both nodes, the name of a model to one node."""
    mixed = [Replica("gpu1", "192.0.2.11", "chat", "a", 5005), Replica("gpu2", "192.0.2.12", "chat", "b/1", 5005)]
    routes = fleet_of(mixed).routes
    assert [replica.host for replica in routes["chat"].replicas] == ["gpu1", "gpu2"]
    assert [replica.host for replica in routes["a"].replicas] == ["gpu1"]
    assert (routes["b/1"].name, routes["a"].name) == ("model_b_2f1", "model_a")


def test_a_set_that_is_named_like_its_model_has_one_backend() -> None:
    fleet = fleet_of([Replica("gpu1", "192.0.2.11", "large", "large", 5005)])
    assert [backend.name for backend in fleet.backends] == ["set_large"]


def test_names_that_cannot_be_routed_are_refused() -> None:
    wrong = [
        Replica("gpu[1]", "192.0.2.11", "chat", "two words", 5005),
        Replica("gpu2", "192.0.2.12", "large", "other", 5005),
        Replica("gpu2", "192.0.2.12", "batch", "large", 5006, declared="and three words"),
    ]
    text = "\n".join(map(str, check_replicas(wrong)))
    assert (
        "'gpu[1]'" in text
        and "'two words'" in text
        and "'and three words'" in text
        and "is also the model that batch serves" in text
    )


def test_ordinary_replicas_are_not_refused(replicas: list[Replica]) -> None:
    assert check_replicas(replicas) == []


def test_an_adapter_leads_to_the_engines_whose_release_has_it() -> None:
    models = {"large": {"model": "/srv/large"}, "legal": {"base": "large", "adapter": "/srv/legal"}}
    reported = {"instances": [{**instance_facts("chat", "large", 3), "adapters": ["legal"]}]}
    variables = {"instances": INSTANCES[:1], "models": models, "inference_address": "192.0.2.11"}
    with_it = replicas_of(["gpu1"], {"gpu1": {**variables, "vllm_engines": reported}}, "gw1", no_address)
    # The release that runs was staged before the inventory had the adapter.
    before = {"instances": [instance_facts("chat", "large", 2)]}
    without = replicas_of(["gpu2"], {"gpu2": {**variables, "vllm_engines": before}}, "gw1", no_address)
    # The node has not reported: the inventory counts.
    silent = replicas_of(["gpu3"], {"gpu3": variables}, "gw1", no_address)
    assert [engine.adapters for engine in (*with_it, *without, *silent)] == [("legal",), (), ("legal",)]
    assert {engine.declared_adapters for engine in (*with_it, *without, *silent)} == {("legal",)}
    assert list(map(Replica.from_dict, map(asdict, with_it))) == with_it

    routes = fleet_of(with_it).routes
    assert routes["legal"] == routes["large"] == routes["chat"]
    fleet = fleet_of([*with_it, *without])
    assert [engine.host for engine in fleet.routes["large"].replicas] == ["gpu1", "gpu2"]
    assert [engine.host for engine in fleet.routes["legal"].replicas] == ["gpu1"]
    # A key may name an adapter before an engine serves it.
    late = fleet_of(without)
    assert "legal" not in late.routes and "legal" in late.declared


def test_an_engine_has_the_tasks_that_its_node_reports() -> None:
    reported = {"instances": [{**instance_facts("chat", "large", 3), "tasks": ["embed", "score"]}]}
    hostvars = {"gpu1": {"instances": INSTANCES[:1], "vllm_engines": reported}, "gpu2": {"instances": INSTANCES[:1]}}
    (one,) = replicas_of(["gpu1"], hostvars, "gpu1", no_address)
    (silent,) = replicas_of(["gpu2"], hostvars, "gpu2", no_address)
    assert (one.tasks, silent.tasks) == (("embed", "score"), ())
    assert Replica.from_dict(asdict(one)) == one
    other = replace(silent, tasks=("score", "classify"))
    assert fleet_of([one, other]).backends[0].tasks == ("embed", "score", "classify")
    assert fleet_of([one, silent]).backends[0].tasks == ()


def test_an_adapter_cannot_have_the_name_of_another_set() -> None:
    one = Replica("gpu1", "192.0.2.11", "chat", "large", 5005, adapters=("legal", "a name"))
    other = Replica("gpu2", "192.0.2.12", "legal", "small", 5005)
    name, twice = map(str, check_replicas([one, other]))
    assert "model: 'a name': cannot be the name of a model" in name
    assert "is also the model that chat serves" in twice


def test_an_engine_is_routed_as_the_model_that_it_serves_asks_for() -> None:
    models = {"large": {"model": "/srv/large", "routing": "affinity"}, "small": {"model": "/srv/small"}}
    variables = {"instances": INSTANCES[:1], "models": models, "inference_address": "192.0.2.11"}
    hostvars = {
        "gpu1": variables,
        # This node runs another model until the next update.
        "gpu2": {**variables, "vllm_engines": {"instances": [instance_facts("chat", "small", 3)]}},
    }
    found = replicas_of(hostvars, hostvars, "gw1", no_address)
    assert [replica.routing for replica in found] == [Routing(("prefix",)), None]
    assert list(map(Replica.from_dict, map(asdict, found))) == found

    default = Routing(("header",), "X-Session-ID")
    assert Backend("set_chat", (found[0],)).routing(default) == Routing(("prefix",))
    assert Backend("set_chat", (found[1],)).routing(default) == default
    # Engines that ask for different routing get requests by least connections.
    assert Backend("set_chat", tuple(found)).routing(default) == Routing()
