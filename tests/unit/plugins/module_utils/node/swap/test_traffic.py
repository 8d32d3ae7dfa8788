# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gateways' checks, the gate, and the wait for the last connection."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import gate
from ansible_collections.baremetal.inference.plugins.module_utils.engine.swap_settings import Gateway
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap import traffic
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.traffic import Traffic

PORT = 5005


class Bench:
    """Two gateways, a gate, and clients. `meanwhile` is called at each sleep."""

    def __init__(self, root: Path) -> None:
        self.now = 1000.0
        self.clients: Iterator[int] = iter(())
        self.last = 0
        self.closed: set[int] = set()
        self.closings = 0
        self.meanwhile: Callable[[], None] = lambda: None
        gateways = [Gateway(name, "10.0.0.9", 8404) for name in ("gw1", "gw 2")]
        self.traffic = Traffic(Paths(root), gateways, lambda: self.now, self.sleep, self.connected)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.meanwhile()

    def connected(self, port: int, users: Collection[int] = ()) -> list[str]:
        assert port == PORT and users == {998}
        self.last = next(self.clients, self.last)
        return ["10.0.0.9"] * self.last

    def close(self, port: int) -> None:
        self.closed.add(port)
        self.closings += 1

    def answer(self, gateway: str, word: str, times: int = 2, ago: float = 0.0) -> None:
        """Record the agent's last answers to a gateway."""
        path = self.traffic.paths.gateway_answers("main")
        known = (files.read_json(path) or {"gateways": []})["gateways"]
        others = [each for each in known if each["gateway"] != gateway]
        new = {"gateway": gateway, "word": word, "times": times, "asked": self.now - ago}
        files.write_json(path, {"schema": 1, "gateways": [*others, new]})


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    found = Bench(tmp_path)
    monkeypatch.setattr(gate, "close", found.close)
    monkeypatch.setattr(gate, "open_", found.closed.discard)
    monkeypatch.setattr(gate, "closed", lambda: set(found.closed))
    monkeypatch.setattr(gate, "local_clients", lambda: {998})
    return found


def test_a_gateway_that_has_not_checked_recently_is_deaf(bench: Bench) -> None:
    assert bench.traffic.deaf("main") == ["gw1", "gw 2"]
    bench.answer("gw1", "up", ago=traffic.HEARD_SECONDS)
    # The agent records the name of a gateway as one word.
    bench.answer("gw_2", "drain", ago=traffic.HEARD_SECONDS + 0.1)
    assert bench.traffic.deaf("main") == ["gw 2"]


def test_a_gateway_is_confirmed_after_two_recent_answers(bench: Bench) -> None:
    bench.answer("gw1", "drain")
    bench.answer("gw_2", "drain", times=1)
    assert bench.traffic.unconfirmed("main", "drain") == ["gw 2"]
    bench.answer("gw_2", "drain", ago=traffic.FRESH_SECONDS + 0.1)
    assert bench.traffic.unconfirmed("main", "drain") == ["gw 2"]
    bench.answer("gw_2", "drain")
    assert bench.traffic.unconfirmed("main", "drain") == [] and bench.traffic.unconfirmed("main", "up") == [
        "gw1",
        "gw 2",
    ]


def test_the_wait_for_gateways_ends_with_all_or_at_its_limit(bench: Bench) -> None:
    bench.answer("gw1", "drain", ago=-100)
    bench.meanwhile = lambda: bench.answer("gw_2", "drain") if bench.now > 1004 else None
    assert bench.traffic.wait_confirmed("main", "drain", 15) == [] and 1004 < bench.now < 1005
    assert bench.traffic.wait_confirmed("main", "up", 15) == ["gw1", "gw 2"] and bench.now >= 1019


def test_a_port_is_unused_after_two_looks_without_a_client(bench: Bench) -> None:
    bench.traffic.close(PORT)
    bench.clients = iter([2, 0, 1, 0, 0])
    assert bench.traffic.wait_unused(PORT, 60) == []
    assert next(bench.clients, None) is None
    bench.clients = iter([3, 0])
    assert bench.traffic.wait_unused(PORT, 60, looks=1, gated=False) == []


def test_clients_that_stay_connected_are_returned(bench: Bench) -> None:
    bench.traffic.close(PORT)
    bench.clients = iter([3])
    assert bench.traffic.wait_unused(PORT, 60) == ["10.0.0.9"] * 3 and 1060 <= bench.now < 1061
    # Two looks in a row must find no client.
    bench.last = 0
    assert bench.traffic.wait_unused(PORT, 0) == [traffic.SEEN_BEFORE]


def test_the_wait_for_hopeless_requests_is_short(bench: Bench) -> None:
    bench.traffic.close(PORT)
    bench.clients = iter([3])
    # After four hopeless looks, the requests are not hopeless in one look, so the limit begins anew.
    hopeless = iter([False] * 4 + [True] * 4 + [False])
    assert bench.traffic.wait_unused(PORT, 60, hopeless=lambda: next(hopeless, True)) == ["10.0.0.9"] * 3
    began = 1000 + 9 * traffic.LOOK_SECONDS
    assert began + traffic.ILL_SECONDS <= bench.now < began + traffic.ILL_SECONDS + 1
    assert bench.traffic.wait_unused(PORT, 2, hopeless=lambda: True) and bench.now < began + traffic.ILL_SECONDS + 4


def test_a_gate_that_another_program_opens_is_closed_again(bench: Bench) -> None:
    bench.traffic.close(PORT)
    bench.clients = iter([1] * 20 + [0, 0])

    def flush() -> None:
        if bench.now == 1001:
            bench.closed.clear()

    bench.meanwhile = flush
    assert bench.traffic.wait_unused(PORT, 60) == []
    assert bench.closed == {PORT} and bench.closings == 2
    # nft runs at most once a second.
    bench.closed.clear()
    bench.traffic.hold(PORT)
    assert bench.closed == set()
    bench.now += traffic.GATE_INTERVAL
    bench.traffic.hold(PORT)
    assert bench.closed == {PORT}


def test_within_kept_closed_a_gate_that_another_program_opens_is_closed_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traffic, "GATE_INTERVAL", 0.01)
    with bench.traffic.kept_closed([PORT]):
        assert bench.closed == {PORT}, "at once"
        for _flush in range(3):
            bench.closed.clear()
            assert in_time(lambda: PORT in bench.closed)
    bench.closed.clear()
    time.sleep(0.05)
    assert bench.closed == set(), "the gate that opens next stays open"


def test_within_kept_closed_an_error_of_nft_does_not_end_the_checks(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traffic, "GATE_INTERVAL", 0.01)
    tried = []

    def fail(port: int) -> None:
        tried.append(port)
        raise gate.GateError("nft is busy")

    monkeypatch.setattr(gate, "close", fail)
    with bench.traffic.kept_closed([PORT]):
        assert in_time(lambda: len(tried) > 2)


def in_time(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Whether a condition holds in time, by the clock of the machine."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    return condition()


def test_a_process_that_has_just_begun_checks_the_gate_at_once(bench: Bench) -> None:
    bench.traffic.hold(PORT)
    assert bench.closed == {PORT} and bench.traffic.still_closed(PORT)
    bench.traffic.open(PORT)
    assert not bench.traffic.still_closed(PORT) and bench.closed == {PORT}
    # With gated=False, no gate is closed.
    bench.traffic.open(PORT)
    assert bench.traffic.wait_unused(PORT, 1, gated=False) == [] and bench.closed == set()
