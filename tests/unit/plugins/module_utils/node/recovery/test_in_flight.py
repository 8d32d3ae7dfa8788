# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes report deaths to gateways, and read which requests were in flight."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.swap_settings import Gateway
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import in_flight
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.deaths import Request, Seen

REQUEST = {"id": "req-7", "key": "bob", "path": "/v1/completions", "status": 502}

DEATH = {"set": "main", "node": "gpu:1", "age": 2.5, "keys": ["bob"], "requests": [REQUEST]}

SEEN = Seen("main", "gpu:1", 2.5, ("bob",), (Request("req-7", "bob", "/v1/completions", 502),))


class FakeGateway(ThreadingHTTPServer):
    """A gateway's port for metrics."""

    def __init__(self) -> None:
        self.status, self.body, self.asked = 200, json.dumps({"deaths": [DEATH]}).encode(), list[str]()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.asked.append(self.path)
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(outer.body)))
                self.end_headers()
                self.wfile.write(outer.body)

            def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
                pass

        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def gateway(self) -> Gateway:
        return Gateway("gw1", "127.0.0.1", self.server_port)


@pytest.fixture
def fake() -> Iterator[FakeGateway]:
    server = FakeGateway()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_gateway_is_told_and_tells(fake: FakeGateway) -> None:
    assert in_flight.report([fake.gateway], "main", "gpu:1", 2.4996) == ([SEEN], {})
    assert fake.asked == ["/deaths?set=main&node=gpu:1&age=2.500"]
    assert in_flight.report([], "main", "gpu:1", 0) == ([], {})


def test_a_client_that_had_gone_got_no_status() -> None:
    (request,) = in_flight.parse({**DEATH, "requests": [{**REQUEST, "status": None}]}).requests
    assert request.status is None


@pytest.mark.parametrize(
    ("status", "body"),
    [(404, b"{}"), (503, b"{}"), (200, b"{"), (200, b"[]"), (200, b'{"deaths": [{}]}'), (200, b'{"deaths": 7}')],
)
def test_a_gateway_without_a_valid_answer_is_named(fake: FakeGateway, status: int, body: bytes) -> None:
    """The others still tell."""
    good = FakeGateway()
    threading.Thread(target=good.serve_forever, args=(0.02,), daemon=True).start()
    fake.status, fake.body = status, body
    other = Gateway("gw2", "127.0.0.1", good.server_port)
    found, silent = in_flight.report([fake.gateway, other], "main", "gpu:1", 1)
    assert found == [SEEN] and list(silent) == ["gw1"] and silent["gw1"]
    good.shutdown()
    good.server_close()


def test_a_gateway_that_is_down_is_named() -> None:
    found, silent = in_flight.report([Gateway("gw1", "127.0.0.1", 1)], "main", "gpu:1", 1)
    assert found == [] and "refused" in silent["gw1"]
