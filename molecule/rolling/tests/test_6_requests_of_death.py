# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client's request kills every engine of a replica set, one after the other, and the client repeats this request.

The request asks for log probabilities: vLLM compiles code for them, and the tests' image has no C++ compiler. The
scenario `recovery` has the same with one node.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from faults import started_anew
from fleet import Fleet
from gateway import CHAT
from node import Node, wait_for

pytestmark = pytest.mark.full

KEY = "rolling-deadly-key-90e7"

BODY: dict[str, Any] = {
    "model": "main",
    "messages": [{"role": "user", "content": "Who are you?"}],
    "max_tokens": 3,
    "logprobs": True,
}


def die(fleet: Fleet) -> Node:
    """Kill the engine that gets the request. Returns its node, when systemd starts the engine again."""
    again = {node.name: started_anew(node) for node in fleet.nodes}
    status, _answer = fleet.gateway.request(CHAT, BODY, port=8000, key=KEY)
    assert status >= 500

    def started() -> list[Node]:
        return [node for node in fleet.nodes if again[node.name]()]

    (node,) = wait_for("systemd starts the engine again", started, 75)
    return node


def all_die(fleet: Fleet) -> None:
    """The client repeats the request, until no engine is left."""
    fleet.wait_up()
    first = die(fleet)
    (other,) = (node for node in fleet.nodes if node != first)
    wait_for("the other engine alone is up", lambda: fleet.up() == [other.name], 30)
    assert die(fleet) == other


def test_a_request_that_kills_all_engines_opens_no_breaker(fleet: Fleet) -> None:
    """Each engine dies twice. Only the very first death counts as a fault of its node: no other engine had died yet."""
    for node in fleet.nodes:
        node.run("inferctl recover main --reset")
    all_die(fleet)
    all_die(fleet)
    fleet.wait_up()
    found = [json.loads(node.run("inferctl recover --json"))["instances"][0] for node in fleet.nodes]
    assert [(one["deaths"], one["in_flight"], one["breaker"]) for one in found] == [(2, {"deadly": 2}, None)] * 2
    # The default budget is 3.
    assert sorted(one["budget_left"] for one in found) == [2, 3], found
    for node in fleet.nodes:
        node.run("inferctl recover main --reset")
