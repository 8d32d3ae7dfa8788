# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes report deaths to gateways, and read which requests were in flight."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.swap_settings import Gateway
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import in_flight
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.deaths import Request, Seen

from ..fake_gateway import FakeGateway, running

REQUEST = {"id": "req-7", "key": "bob", "path": "/v1/completions", "status": 502}

DEATH = {"set": "main", "node": "gpu:1", "age": 2.5, "keys": ["bob"], "requests": [REQUEST]}

SEEN = Seen("main", "gpu:1", 2.5, ("bob",), (Request("req-7", "bob", "/v1/completions", 502),))


@pytest.fixture
def fake() -> Iterator[FakeGateway]:
    with running({"deaths": [DEATH]}) as server:
        yield server


def test_a_gateway_gets_the_death_and_returns_the_deaths_it_knows(fake: FakeGateway) -> None:
    assert in_flight.report([fake.gateway], "main", "gpu:1", 2.4996) == ([SEEN], {})
    assert fake.asked == ["POST /deaths?set=main&node=gpu:1&age=2.500"]
    assert in_flight.report([], "main", "gpu:1", 0) == ([], {})


def test_a_request_without_an_answer_has_no_status() -> None:
    (request,) = in_flight.parse({**DEATH, "requests": [{**REQUEST, "status": None}]}).requests
    assert request.status is None


@pytest.mark.parametrize(
    ("status", "body"),
    [(404, b"{}"), (503, b"{}"), (200, b"{"), (200, b"[]"), (200, b'{"deaths": [{}]}'), (200, b'{"deaths": 7}')],
)
def test_a_gateway_without_a_valid_answer_is_named(fake: FakeGateway, status: int, body: bytes) -> None:
    """The answers of other gateways count."""
    fake.status, fake.body = status, body
    with running({"deaths": [DEATH]}) as good:
        other = Gateway("gw2", "127.0.0.1", good.server_port)
        found, silent = in_flight.report([fake.gateway, other], "main", "gpu:1", 1)
    assert found == [SEEN] and list(silent) == ["gw1"] and silent["gw1"]


def test_a_gateway_that_is_down_is_named() -> None:
    found, silent = in_flight.report([Gateway("gw1", "127.0.0.1", 1)], "main", "gpu:1", 1)
    assert found == [] and "refused" in silent["gw1"]
