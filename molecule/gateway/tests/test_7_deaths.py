# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Engines die, their nodes report the deaths, and the gateway names the requests that were in flight."""

from __future__ import annotations

import http.client
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from gateway import CHAT, KEY, Answer, Gateway, body, engine_takes, reload
from node import wait_for

DEADLY = "deadly-key-40c7a1be"

ADDRESSES = {"one": "127.0.0.1", "two": "127.0.0.2"}


def die(gateway: Gateway, host: str, *requests: tuple[str, str], stream: bool = False) -> list[dict[str, Any]]:
    """Kill an engine that works on requests, each a key and an id. Returns the deaths that the gateway has recorded."""
    for name, address in ADDRESSES.items():
        gateway.engine(address, agent="up ready" if name == host else "drain")
        gateway.wait_state(name, "UP" if name == host else "DRAIN")

    def ask(request: tuple[str, str]) -> Answer | None:
        try:
            return gateway.ask(data=body(tokens=4000, stream=stream), key=request[0], request_id=request[1])
        except (OSError, http.client.HTTPException):
            # A stream breaks off.
            return None

    with ThreadPoolExecutor(len(requests)) as pool:
        asked = pool.map(ask, requests)
        wait_for("the requests run", lambda: gateway.engine(ADDRESSES[host])["running"] == len(requests), 20)
        gateway.node.run(f"systemctl kill --signal=KILL fake-{host}")
        died = time.monotonic()
        list(asked)
    for _key, request_id in requests:
        assert gateway.log(request_id)["remembered"] == "1"
    found = gateway.deaths(f"?set=main&node={host}&age={time.monotonic() - died:.3f}")
    wait_for("the engine is back", engine_takes(gateway, ADDRESSES[host], 5005), 30)
    gateway.wait_state(host, "UP")
    return found


def test_a_death_names_the_requests_in_flight(gateway: Gateway) -> None:
    """A request with a complete answer is not named. The reload first clears earlier deaths."""
    reload(gateway)
    assert gateway.deaths() == []
    gateway.ask(request_id="in-time")
    (death,) = die(gateway, "one", (KEY, "busy-1"), (DEADLY, "deadly-1"))
    assert (death["set"], death["node"], sorted(death["keys"])) == ("main", "one", ["deadly", "everything"])
    asked = sorted((request["id"], request["key"], request["path"], request["status"]) for request in death["requests"])
    assert asked == [("busy-1", "everything", CHAT, 502), ("deadly-1", "deadly", CHAT, 502)]
    assert gateway.log("in-time")["remembered"] == "0"


def test_the_only_key_at_several_deaths_is_refused_for_a_while(gateway: Gateway) -> None:
    reload(gateway)
    die(gateway, "one", (KEY, "busy-2"), (DEADLY, "deadly-2"))
    found = die(gateway, "two", (DEADLY, "deadly-3"), stream=True)
    assert [(death["node"], sorted(death["keys"])) for death in found] == [
        ("one", ["deadly", "everything"]),
        ("two", ["deadly"]),
    ]
    refused = gateway.ask(key=DEADLY)
    assert (refused.status, refused.error["code"]) == (403, "key_refused")
    left = refused.headers["retry-after"]
    assert 1 <= int(left) <= 300 and f"another {left} seconds" in refused.error["message"]
    assert gateway.ask().status == 200
    reload(gateway)
    assert gateway.ask(key=DEADLY).status == 200
