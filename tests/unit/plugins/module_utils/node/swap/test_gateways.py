# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The servers of a replica set, as gateways show them."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.swap_settings import Gateway
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap import gateways
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.gateways import Server, SetView, Views

from ..fake_gateway import FakeGateway, running

UP = {"status": "UP 1/2", "up": True, "weight": 40, "sessions": 3, "queued": 0, "requests": 60, "failures": 1}
DRAIN = {**UP, "status": "DRAIN (agent)", "up": False}
ANSWER: dict[str, Any] = {
    "set": "main",
    "hold_seconds": 120,
    "started": 1764090000,
    "age": 77,
    "requests": 123,
    "servers": {"node1": UP, "main_bridge.node1": DRAIN},
}


def test_the_two_servers_of_an_engine_that_changes_its_port_count_as_one() -> None:
    down = {**UP, "status": "DOWN (agent)", "up": False, "address": "192.0.2.11:5005"}
    at_5006 = {"address": "192.0.2.11:5006"}

    def joined(old: dict[str, Any], new: dict[str, Any]) -> Server:
        view = gateways.parse("gw1", {**ANSWER, "servers": {"main_next.node1": new, "node1": old}, "key_mark": "1a2b"})
        assert list(view.servers) == ["node1"] and view.key_mark == "1a2b"
        return view.servers["node1"]

    before = joined({**UP, **at_5006, "weight": 100}, down)
    assert (before.up, before.weight, before.requests, before.failures) == (True, 100, 120, 2)
    assert before.addresses == ("192.0.2.11:5006", "192.0.2.11:5005")
    after = joined(down, {**UP, **at_5006})
    assert (after.up, after.weight, after.addresses) == (True, 40, ("192.0.2.11:5005", "192.0.2.11:5006"))
    assert joined(down, {**DRAIN, **at_5006}).status == joined({**DRAIN, **at_5006}, down).status == "DRAIN (agent)"
    assert joined(down, down).status == "DOWN (agent)"


@pytest.fixture
def fake() -> Iterator[FakeGateway]:
    with running(ANSWER) as server:
        yield server


def test_a_gateway_shows_servers_and_requests_of_a_set(fake: FakeGateway) -> None:
    found = gateways.ask(fake.gateway, "main")
    assert fake.asked == ["GET /sets/main"]
    assert (found.gateway, found.known, found.hold_seconds, found.started) == ("gw1", True, 120, 1764090000.0)
    assert (found.requests, found.up()) == (123, {"node1"})
    assert found.servers["node1"] == Server(True, "UP 1/2", 40, 60, 1)


def test_a_set_that_a_gateway_does_not_have_is_unknown(fake: FakeGateway) -> None:
    fake.status, fake.body = 404, b'{"error": {"type": "unknown_set"}}'
    assert gateways.ask(fake.gateway, "main") == SetView("gw1", known=False)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, b"not found"),
        (503, b""),
        (200, b"{"),
        (200, b"[]"),
        (200, json.dumps({**ANSWER, "servers": {"node1": {}}}).encode()),
        (200, json.dumps({**ANSWER, "hold_seconds": None}).encode()),
    ],
)
def test_an_invalid_answer_counts_as_silence(fake: FakeGateway, status: int, body: bytes) -> None:
    fake.status, fake.body = status, body
    with pytest.raises(gateways.Silent, match="gw1"):
        gateways.ask(fake.gateway, "main")


def test_gateways_that_are_down_or_hang_are_silent_and_the_others_are_shown(fake: FakeGateway, port: int) -> None:
    deaf = socket.create_server(("127.0.0.1", 0))
    try:
        others = [Gateway("down", "127.0.0.1", port), Gateway("hangs", "127.0.0.1", deaf.getsockname()[1])]
        found = gateways.ask_all([fake.gateway, *others], "main")
    finally:
        deaf.close()
    assert [view.gateway for view in found.shown] == ["gw1"] and list(found.silent) == ["down", "hangs"]
    assert f"down does not show at 127.0.0.1 port {port} who serves main: " in found.silent["down"]
    assert gateways.ask_all([], "main") == Views((), {})


def server(up: bool, requests: int = 0, failures: int = 0) -> Server:
    return Server(up, "UP" if up else "DOWN", 100, requests, failures)


OWN = ("node1", "main_bridge.node1")


def test_gateways_without_another_server_are_named() -> None:
    def view(name: str, **up: bool) -> SetView:
        return SetView(name, True, servers={each: server(value) for each, value in up.items()})

    views = Views(
        (
            view("two", node1=True, node2=True),
            view("alone", node1=True, node2=False),
            view("none", node1=False, node2=False),
            SetView("unaware", False),
        ),
        {},
    )
    assert views.alone_at(OWN) == ["alone"]
    assert views.without_others(OWN) == ["alone", "none"]
    assert gateways.own_servers("node1", "main") == OWN


def test_counters_of_two_haproxy_processes_are_not_compared() -> None:
    before = SetView("gw1", True, started=1.0, requests=100, servers={"node1": server(True, 60, 1)})
    after = replace(before, requests=150, servers={"node1": server(True, 100, 3)})
    assert gateways.requests_between([before], [after]) == 50
    assert gateways.failed_share(before, after, "node1") == (2, 40)
    assert gateways.failed_share(before, after, "node2") is None
    reloaded = replace(after, started=2.0)
    assert gateways.requests_between([before], [reloaded]) is None
    assert gateways.requests_between([], [after]) is None
    assert gateways.failed_share(before, reloaded, "node1") is None


def test_a_view_can_be_read_back_from_the_notes_of_a_swap() -> None:
    view = SetView("gw1", True, 120, 1.0, requests=5, servers={"node1": server(True, 60, 1)})
    assert gateways.from_note(json.loads(json.dumps(asdict(view)))) == view
