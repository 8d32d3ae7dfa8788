# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A gateway of the scenario `gateway`, with its clients and fake engines."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import haproxy
from load import Load, Shape, tls_of
from node import Node, wait_for

KEY = "everything-key-3f81c2"
CHAT = "/v1/chat/completions"
DEFAULTS = {"health": 200, "agent": "up ready", "status": 200, "token_seconds": 0.005}
SHORT = (Shape(True, 20), Shape(False, 20))


@dataclass(frozen=True)
class Answer:
    """An answer of the gateway."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def error(self) -> dict[str, Any]:
        """The error in the API's form."""
        assert self.headers["content-type"] == "application/json", self
        error = self.json["error"]
        assert set(error) == {"message", "type", "param", "code"}, error
        return dict(error)


def body(model: object = "main", tokens: int = 2, **more: Any) -> bytes:
    """A chat's request."""
    return json.dumps(
        {"messages": [{"role": "user", "content": "hi"}], "max_tokens": tokens, **more, "model": model}
    ).encode()


class Gateway:
    """A node of the scenario: its gateway, and its engines on two addresses."""

    engines = (("127.0.0.1", 5005), ("127.0.0.2", 5005), ("127.0.0.1", 5006), ("127.0.0.2", 5006))

    def __init__(self, node: Node) -> None:
        self.node = node
        self.address = node.address

    @property
    def url(self) -> str:
        return f"https://{self.address}:8000"

    @cached_property
    def trusted(self) -> str:
        """The certificate of the site's own CA, from the file that every user of the gateway may read."""
        return self.node.run("su --shell /bin/sh nobody --command 'cat /etc/haproxy/site-ca.pem'")

    def connection(self, timeout: float = 60) -> http.client.HTTPSConnection:
        """A client's connection, which verifies the gateway's certificate."""
        context = tls_of(self.url, self.trusted)
        return http.client.HTTPSConnection(self.address, 8000, timeout=timeout, context=context)

    def ask(
        self,
        method: str = "POST",
        path: str = CHAT,
        data: bytes | Iterable[bytes] | None = None,
        key: str = KEY,
        request_id: str = "",
        session: str = "",
        kind: str = "application/json",
    ) -> Answer:
        """A request of a client; an iterable body is sent in chunks."""
        connection = self.connection()
        given = {"Content-Type": kind}
        given |= {"Authorization": f"Bearer {key}"} if key else {}
        given |= {"X-Request-ID": request_id} if request_id else {}
        given |= {"X-Session-ID": session} if session else {}
        if data is None and method == "POST":
            data = body()
        try:
            connection.request(method, path, data, given)
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, names, answer.read().decode())
        finally:
            connection.close()

    def view(self, name: str = "main", connection: http.client.HTTPConnection | None = None) -> Answer:
        """The gateway's answer to a node about a replica set, on the port of the metrics."""
        asked = connection or http.client.HTTPConnection(self.address, 8404, timeout=30)
        asked.request("GET", f"/sets/{name}")
        answer = asked.getresponse()
        names = {key.lower(): value for key, value in answer.getheaders()}
        found = Answer(answer.status, names, answer.read().decode())
        if connection is None:
            asked.close()
        return found

    def deaths(self, query: str = "") -> list[dict[str, Any]]:
        """The deaths of the last hour that the gateway has recorded. With a query, a node first reports its deaths."""
        asked = http.client.HTTPConnection(self.address, 8404, timeout=30)
        asked.request("POST" if query else "GET", f"/deaths{query}")
        found = json.loads(asked.getresponse().read())["deaths"]
        asked.close()
        return list(found)

    def engine(self, address: str = "127.0.0.1", port: int = 5005, **orders: Any) -> dict[str, Any]:
        """Give orders to an engine. Returns its report."""
        command = f"curl --silent --show-error http://{address}:{port}/control --data '{json.dumps(orders)}'"
        return dict(json.loads(self.node.run(command)))

    def command(self, words: str) -> str:
        """HAProxy's answer to a command."""
        return haproxy.command(self.node, words)

    @property
    def pid(self) -> str:
        """The number of HAProxy's process; empty if its answer is empty."""
        return haproxy.pid(self.node)

    def states(self, backend: str = "set_main") -> dict[str, str]:
        """The status of each server."""
        return haproxy.states(self.node, backend)

    def weights(self) -> dict[str, str]:
        """The weight of each server, which grows during a slow start."""
        return haproxy.states(self.node, "set_main", haproxy.WEIGHT)

    def wait_state(self, server: str, begins: str, backend: str = "set_main") -> None:
        wait_for(f"{server} is {begins}", lambda: self.states(backend)[server].startswith(begins), 60)

    def log(self, request_id: str) -> dict[str, Any]:
        """The line of the access log about a request."""

        def line() -> str:
            return self.node.run(f"journalctl --unit haproxy --output cat --grep {request_id} | tail -1", check=False)

        return dict(json.loads(wait_for(f"a log line of {request_id}", lambda: request_id in line() and line(), 30)))

    def load(self, *models: str, clients: int = 4, **more: Any) -> Load:
        """Clients that ask for short answers."""
        given = {"shapes": SHORT, **({} if "trusted" in more else {"trusted": self.trusted}), **more}
        return Load(self.url, models or ("main",), clients, KEY, **given)


def reload(gateway: Gateway) -> None:
    """Reload HAProxy, and wait for its new process."""
    before = gateway.pid
    gateway.node.run("systemctl reload haproxy")
    wait_for_another_process(gateway, before)


def wait_for_another_process(gateway: Gateway, before: str) -> None:
    """Wait until a process of HAProxy other than `before` answers."""
    wait_for("another process", lambda: gateway.pid not in ("", before), 30)


def reset(gateway: Gateway) -> None:
    """Start the fake engines, set their first orders, and wait until the gateway sends requests to both nodes."""
    gateway.node.run("systemctl start fake-one fake-two")
    for address, port in gateway.engines:
        wait_for("the fake engines", engine_takes(gateway, address, port), 30)
    for server in ("one", "two"):
        gateway.wait_state(server, "UP")


def engine_takes(gateway: Gateway, address: str, port: int) -> Callable[[], bool]:
    """A condition: a fake engine takes its first orders."""
    orders = json.dumps(DEFAULTS)
    command = f"curl --silent --fail http://{address}:{port}/control --data '{orders}'"
    return lambda: bool(gateway.node.run(command, check=False))
