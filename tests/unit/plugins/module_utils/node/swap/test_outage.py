# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An outage: its refusals, its waits, and its end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import drains, gateway_answers
from ansible_collections.baremetal.inference.plugins.module_utils.engine.swap_settings import Gateway, SwapSettings
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.names import asking_name
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap import outage as outages
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.gateways import Server, SetView, Views
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.node import Node
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.outage import Outage, Refused
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.proof import Unfit
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.traffic import Traffic

GATEWAYS = (Gateway("gw1", "192.0.2.1", 8404), Gateway("gw2", "192.0.2.2", 8404))


def server(status: str = "UP", weight: int = 100) -> Server:
    return Server(status.startswith("UP"), status, weight, 0, 0)


class Stage:
    """A node n1 with the engine main on port 5005, and two gateways that show the engine. Each look takes a second."""

    def __init__(self, paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths = paths
        self.gateways: tuple[Gateway, ...] = GATEWAYS
        self.time = 100.0
        self.servers: dict[str, dict[str, Server]] = {
            gateway.name: {"n1": server(), "n2": server()} for gateway in GATEWAYS
        }
        self.silent: dict[str, str] = {}
        self.connections = 0
        self.busy = 0
        self.running = True
        self.tried: list[str] = []
        self.unfit = False
        self.each_look: Callable[[], None] = lambda: None
        monkeypatch.setattr(outages, "_runs", lambda node: self.running)
        monkeypatch.setattr(outages.install_state, "serving", lambda paths, name, now: self.running)
        monkeypatch.setattr(outages.releases, "active_number", lambda paths, name: 1)
        monkeypatch.setattr(outages.proof, "accept", self.accept)
        monkeypatch.setattr(Node, "ask", lambda node: self.ask())
        monkeypatch.setattr(Node, "port", lambda node, _target: 5005)
        monkeypatch.setattr(Node, "in_flight", lambda node: self.busy)

    def outage(self, *names: str, owner: str = "maintenance") -> Outage:
        settings = SwapSettings("n1", self.gateways)
        traffic = Traffic(
            self.paths,
            self.gateways,
            clock=lambda: self.time,
            sleep=lambda _seconds: self.look(),
            connected=lambda port, clients: ["10.0.0.9"] * self.connections,
        )
        return Outage([Node(self.paths, name, settings, traffic, pytest.fail) for name in names or ("main",)], owner)

    def look(self) -> None:
        self.time += 1
        self.each_look()

    def ask(self) -> Views:
        views = [
            SetView(name, known=bool(servers), servers=servers, age=60)
            for name, servers in self.servers.items()
            if name not in self.silent
        ]
        return Views(tuple(views), self.silent)

    def accept(self, _paths: Paths, name: str, number: int, golden: list[Any]) -> None:
        if self.unfit:
            raise Unfit(f"release {number} of {name} is not fit to serve")
        self.tried.append(name)

    def answered(self, word: str, *gateways: str) -> None:
        """The agent has just answered each of these gateways twice. Without names: all gateways."""
        answers = gateway_answers.GatewayAnswers()
        for gateway in gateways or [gateway.name for gateway in GATEWAYS]:
            for _time in range(2):
                answers.record(asking_name(gateway), word, self.time)
        path = self.paths.gateway_answers("main")
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_json(path, answers.to_json())

    def drained_by(self, name: str = "main") -> str:
        drain = drains.read(self.paths, name, datetime.now(UTC))
        return drain.owner if drain else ""


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(Paths(tmp_path), monkeypatch)


def test_the_wait_ends_when_gateways_know_the_drain_and_two_looks_find_no_client(stage: Stage) -> None:
    stage.answered("up")
    outage = stage.outage()
    assert outage.begin("a new disk", [], check=True) and stage.drained_by() == ""
    assert outage.begin("a new disk", []) and stage.drained_by() == "maintenance"
    assert not outage.begin("a new disk", [])
    assert outage.requests(0, []) == [
        "gw1 does not know of the drain of main",
        "gw2 does not know of the drain of main",
    ]
    stage.answered("drain", "gw1")
    stage.connections = 3
    assert outage.requests(0, []) == ["gw2 does not know of the drain of main", "main has 3 connections of 10.0.0.9"]
    stage.answered("drain")
    stage.connections = 0
    assert outage.requests(0, []) == ["2 looks in a row must find no requests, only one did"]
    assert outage.requests(10, []) == []


def test_the_outage_does_not_wait_for_a_gateway_that_does_not_reach_the_node(stage: Stage) -> None:
    """After a change of the node's address, the gateway shows the engine as down, and does not check the agent."""
    stage.servers["gw2"]["n1"] = server("DOWN")
    stage.answered("drain", "gw1")
    stage.outage().begin("a restore", ["main"])
    assert stage.outage().requests(0, []) == ["2 looks in a row must find no requests, only one did"]
    stage.servers["gw2"]["n1"] = server()
    assert stage.outage().requests(0, []) == ["gw2 does not know of the drain of main"]


def test_the_outage_waits_for_requests_that_end(stage: Stage) -> None:
    stage.answered("drain")
    stage.outage().begin("a new disk", [])
    stage.connections = 2

    def ends() -> None:
        stage.answered("drain")
        stage.connections = max(0, stage.connections - 1)

    stage.each_look = ends
    assert stage.outage().requests(20, []) == []


@pytest.mark.parametrize("alone_at", ["gw1", "gw2"])
def test_the_last_server_of_any_gateway_stays_unless_the_argument_last_names_the_instance(
    stage: Stage, alone_at: str
) -> None:
    stage.answered("up")
    stage.servers[alone_at]["n2"] = server("DOWN")
    with pytest.raises(Refused, match=f"^{alone_at} would have no server left for main without this node. Nothing was"):
        stage.outage().begin("a new disk", [])
    assert stage.drained_by() == ""
    assert stage.outage().begin("a new disk", ["main"]) and stage.drained_by() == "maintenance"


def test_the_bridge_of_the_instance_is_no_other_server(stage: Stage) -> None:
    stage.servers["gw1"] = {"n1": server(), "main_bridge.n1": server()}
    with pytest.raises(Refused):
        stage.outage().begin("a new disk", [])


def test_an_engine_that_does_not_serve_or_is_drained_needs_no_other_server(stage: Stage) -> None:
    for servers in stage.servers.values():
        servers["n2"] = server("DOWN")
    stage.running = False
    assert stage.outage().begin("a new disk", [])
    # A run that was cut off has left the drain, and the next run continues.
    stage.running = True
    assert not stage.outage().begin("another reason", [])


def test_a_gateway_that_checks_but_does_not_answer_may_have_no_other_server(stage: Stage) -> None:
    stage.answered("up")
    stage.silent = {"gw2": "gw2 does not show who serves main"}
    with pytest.raises(Refused, match=r"^gw2 does not show who serves main\. Nothing was changed$"):
        stage.outage().begin("a new disk", [])


def test_a_gateway_that_neither_checks_nor_answers_does_not_count(stage: Stage) -> None:
    stage.answered("up", "gw1")
    stage.silent = {"gw2": "gw2 does not show who serves main"}
    assert stage.outage().begin("a new disk", [])
    stage.answered("drain", "gw1")
    stage.each_look = lambda: stage.answered("drain", "gw1")
    assert stage.outage().requests(5, []) == []


def test_the_outage_does_not_wait_for_a_gateway_without_the_instance(stage: Stage) -> None:
    stage.servers["gw2"] = {}
    stage.answered("drain", "gw1")
    stage.outage().begin("the instance is removed", ["main"])
    stage.each_look = lambda: stage.answered("drain", "gw1")
    assert stage.outage().requests(5, ["main"]) == []


def test_one_of_two_nodes_that_begin_at_once_yields(stage: Stage) -> None:
    stage.answered("drain")
    outage = stage.outage()
    outage.begin("a new disk", [])
    for servers in stage.servers.values():
        servers.update(n1=server("DRAIN (agent)"), n0=server("DRAIN (agent)"), n2=server("DOWN"))
    with pytest.raises(Refused, match="n0 drains the same set, and goes first"):
        outage.requests(5, [])
    # Now n1 is the first by name: it waits until n3 serves again.
    for servers in stage.servers.values():
        servers["n3"] = servers.pop("n0")
    words = "gw1, gw2 would have no server left for main without this node"
    assert outage.requests(0, []) == [words]
    assert outage.requests(0, ["main"]) == ["2 looks in a row must find no requests, only one did"]


def test_a_gateway_that_does_not_know_this_node_forbids_no_outage(stage: Stage) -> None:
    """gw2 has no server left, but none of its servers is on this node."""
    stage.outage().begin("a new disk", [])
    stage.servers["gw1"].update(n1=server("DRAIN (agent)"), n0=server("DRAIN (agent)"))
    stage.servers["gw2"] = {"n0": server("DRAIN (agent)"), "n2": server("DOWN")}
    stage.each_look = lambda: stage.answered("drain")
    assert stage.outage().requests(5, []) == []


def test_without_gateways_the_engines_own_count_of_requests_decides(stage: Stage) -> None:
    stage.gateways = ()
    stage.busy = 2
    assert stage.outage().begin("a new disk", [])
    assert stage.outage().requests(0, []) == ["main has 2 requests in flight"]
    stage.busy = 0
    assert stage.outage().requests(5, []) == []


def test_an_engine_that_passes_its_probe_gets_its_requests_back(stage: Stage) -> None:
    stage.answered("drain")
    stage.outage().begin("a new disk", [])
    assert stage.outage().end(check=True) and stage.tried == []
    assert stage.outage().end() and stage.tried == ["main"] and stage.drained_by() == ""
    # A second end probes nothing.
    assert not stage.outage().end() and stage.tried == ["main"]
    stage.servers["gw1"]["n1"] = server("UP", weight=40)
    stage.servers["gw2"]["n1"] = server("DOWN (agent)")
    assert stage.outage().share(0) == [
        "gw1 gives n1 40 % of its share",
        "gw2 shows n1 as DOWN (agent)",
    ]
    for servers in stage.servers.values():
        servers["n1"] = server()
    # Both gateways check, but have not got the answer `up` twice.
    stage.answered("drain")
    stage.time += 1
    assert stage.outage().share(0) == ["gw1 has not checked the agent again", "gw2 has not checked the agent again"]
    # A gateway that does not reach the agent relies on its health checks.
    stage.answered("up", "gw1")
    assert stage.outage().share(0) == []
    stage.silent = {"gw2": "gw2 does not show who serves main"}
    assert stage.outage().share(0) == []
    # A gateway that checks, but does not answer, may send no requests.
    stage.answered("up")
    assert stage.outage().share(0) == ["gw2 does not show who serves main"]
    stage.silent = {}
    assert stage.outage().share(0) == []


def test_an_engine_that_fails_its_probe_stays_drained(stage: Stage) -> None:
    stage.outage().begin("a new disk", ["main"])
    stage.unfit = True
    with pytest.raises(Unfit):
        stage.outage().end()
    assert stage.drained_by() == "maintenance"


def test_an_engine_that_does_not_run_is_undrained_without_a_wait(stage: Stage) -> None:
    stage.running = False
    stage.outage().begin("a new disk", [])
    assert stage.outage().end() and stage.tried == [] and stage.drained_by() == ""
    assert stage.outage().share(0) == []


def test_the_drain_of_another_owner_stays(stage: Stage) -> None:
    stage.outage(owner="mira").begin("a test", ["main"])
    assert not stage.outage().begin("a new disk", []) and stage.drained_by() == "mira"
    assert not stage.outage().end() and stage.drained_by() == "mira"
    assert stage.outage().share(0) == []
