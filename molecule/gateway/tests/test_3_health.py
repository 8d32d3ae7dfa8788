# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drains, faults and outages of engines, and reloads of HAProxy, while clients send requests."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from gateway import CHAT, KEY, Gateway, body, reload, wait_for_another_process
from load import Report, Shape
from node import wait_for


def answer_on(connection: http.client.HTTPConnection) -> str:
    """The engine that answers a request on an open connection."""
    connection.request("POST", CHAT, body(), {"Authorization": f"Bearer {KEY}"})
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status == 200, text
    return str(json.loads(text)["choices"][0]["message"]["content"].split()[-1])


def answered_by(gateway: Gateway, count: int = 6) -> set[str]:
    return {gateway.ask().json["choices"][0]["message"]["content"].split()[-1] for _ in range(count)}


def total(gateway: Gateway, count: str) -> int:
    """The sum of one count over all servers, as the gateway reports to nodes."""
    return sum(int(server[count]) for server in gateway.view().json["servers"].values())


def test_a_drained_engine_gets_no_new_request_and_finishes_its_requests(gateway: Gateway) -> None:
    gateway.engine(token_seconds=0.1)
    load = gateway.load(shapes=(Shape(True, 30), Shape(False, 10)))

    def drain() -> None:
        gateway.engine(agent="drain")
        gateway.wait_state("one", "DRAIN")
        wait_for("the engine is idle", lambda: gateway.engine()["running"] == 0, 60)
        served = gateway.engine()["served"]
        time.sleep(2)
        assert gateway.engine()["served"] == served
        gateway.engine(agent="up ready")
        gateway.wait_state("one", "UP")
        wait_for("the engine serves again", lambda: gateway.engine()["served"] > served, 60)

    report = load.during(drain)
    assert not report.failures and report.succeeded, report


def test_a_drain_outlives_a_reload(gateway: Gateway) -> None:
    """The reload saves the states first, so the new process has the drain before the agent answers."""
    gateway.engine(agent="drain")
    gateway.wait_state("one", "DRAIN")
    gateway.node.run("mv /var/lib/haproxy/state /var/lib/haproxy/state.before")
    reload(gateway)
    assert gateway.states()["one"].startswith("DRAIN")
    assert answered_by(gateway) == {"127.0.0.2."}


def test_a_drain_outlives_a_restart(gateway: Gateway) -> None:
    """The stop saves the states, too."""
    gateway.engine(agent="drain")
    gateway.wait_state("one", "DRAIN")
    gateway.node.run("systemctl restart haproxy")
    assert answered_by(gateway) == {"127.0.0.2."}


def test_requests_for_a_model_of_several_sets_avoid_a_drained_engine(gateway: Gateway) -> None:
    gateway.engine("127.0.0.1", 5006, agent="drain")
    gateway.wait_state("one", "DRAIN", "set_lone")
    texts = {gateway.ask(data=body("tiny-b")).json["choices"][0]["message"]["content"] for _ in range(4)}
    assert texts == {"I am other on 127.0.0.2."}


def test_an_engine_that_only_the_agent_reports_down_gets_no_requests(gateway: Gateway) -> None:
    gateway.engine(agent="down #hung")
    gateway.wait_state("one", "DOWN")
    assert answered_by(gateway) == {"127.0.0.2."}


def test_an_engine_that_answers_500_stays_up(gateway: Gateway) -> None:
    """The request may be the cause: the gateway does not repeat it, and the engine stays up."""
    for address in ("127.0.0.1", "127.0.0.2"):
        gateway.engine(address, status=500)
    before = total(gateway, "requests")
    assert [gateway.ask().status for _ in range(6)] == [500] * 6
    assert all(status.startswith("UP") for status in gateway.states().values())
    # The gateway computes the counts at most every 0.1 s.
    time.sleep(0.2)
    assert total(gateway, "requests") == before + 6


def test_a_node_that_dies_fails_only_its_requests_in_flight(gateway: Gateway) -> None:
    """Later requests go to the other engine, without a pause."""
    load = gateway.load(clients=6)
    report = load.during(lambda: gateway.node.run("systemctl kill --signal=KILL fake-one; systemctl stop fake-one"), 4)
    # Each client has at most one request in flight.
    assert len(report.failures) <= 6 and report.succeeded > 6, report
    calm = gateway.load(clients=4).during(lambda: time.sleep(2))
    assert not calm.failures and calm.succeeded, calm


def outage(gateway: Gateway, seconds: float) -> Callable[[], None]:
    """An action: the only engine of `lone` serves no requests for this time."""

    def action() -> None:
        gateway.engine(port=5006, agent="down #swap")
        gateway.wait_state("one", "DOWN", "set_lone")
        time.sleep(seconds)
        gateway.engine(port=5006, agent="up ready")
        gateway.wait_state("one", "UP", "set_lone")

    return action


def test_requests_are_held_while_a_lone_engine_is_away(gateway: Gateway) -> None:
    report: Report = gateway.load("lone", clients=3).during(outage(gateway, 3))
    assert not report.failures and report.succeeded, report
    assert max(report.latencies) > 2


def test_a_reload_fails_no_request_that_is_held(gateway: Gateway) -> None:
    """The old process holds these requests, although it runs no checks after the reload."""

    def swap() -> None:
        gateway.engine(port=5006, agent="drain")
        gateway.wait_state("one", "DRAIN", "set_lone")
        time.sleep(1)
        reload(gateway)
        time.sleep(1)
        gateway.engine(port=5006, agent="up ready")
        gateway.wait_state("one", "UP", "set_lone")

    report: Report = gateway.load("lone", clients=3).during(swap)
    assert not report.failures and report.succeeded, report
    assert max(report.latencies) > 2


def test_an_old_process_follows_a_drain_after_a_reload(gateway: Gateway) -> None:
    """An old process answers one more request on each open connection."""
    connections = [gateway.connection() for _ in range(6)]

    def answers() -> set[str]:
        return {answer_on(connection) for connection in connections}

    assert answers() == {"127.0.0.1.", "127.0.0.2."}
    reload(gateway)
    gateway.engine(agent="drain")
    gateway.wait_state("one", "DRAIN")
    assert answers() == {"127.0.0.2."}


def test_a_new_process_that_reads_states_from_before_a_drain_follows_the_drain(gateway: Gateway) -> None:
    gateway.node.run(
        "echo show servers state | socat -t 5 - UNIX-CONNECT:/run/haproxy/admin.sock > /var/lib/haproxy/state"
    )
    gateway.engine(agent="drain")
    gateway.wait_state("one", "DRAIN")
    before = gateway.pid
    # A signal makes HAProxy reload. A reload by systemd would save the states again.
    gateway.node.run("kill -USR2 $(systemctl show --property MainPID --value haproxy)")
    wait_for_another_process(gateway, before)
    assert answered_by(gateway) == {"127.0.0.2."}


def test_an_unknown_answer_of_the_agent_changes_nothing(gateway: Gateway) -> None:
    """The test reloads HAProxy: a new process has no earlier answer of the agent."""
    gateway.engine(agent="?")
    reload(gateway)
    assert answered_by(gateway) == {"127.0.0.1.", "127.0.0.2."}


def test_more_requests_are_held_than_the_queue_takes(gateway: Gateway) -> None:
    """Held requests pass the limit of the queue, also while the engine is in its slow start."""
    gateway.engine(port=5006, agent="down #swap")
    gateway.wait_state("one", "DOWN", "set_lone")
    with ThreadPoolExecutor(40) as pool:
        waiting = [pool.submit(gateway.ask, data=body("lone")) for _ in range(40)]
        time.sleep(2)
        gateway.engine(port=5006, agent="up ready")
        assert {request.result().status for request in waiting} == {200}


def test_an_old_process_holds_no_request_whose_engine_serves(gateway: Gateway) -> None:
    """An old process runs no checks. In HAProxy 2.6, all its servers can be down although the engine serves."""
    outage(gateway, 0)()
    connection = gateway.connection()
    for again in (False, True):
        if again:
            reload(gateway)
        began = time.monotonic()
        connection.request("POST", CHAT, body("lone"), {"Authorization": f"Bearer {KEY}"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200 and time.monotonic() - began < 1.5
    assert answer.getheader("connection") == "close"


def test_an_outage_holds_no_request_for_longer_than_gateway_hold_seconds(gateway: Gateway) -> None:
    """The hold counts from the beginning of the outage: later requests get 503 at once."""
    gateway.engine(port=5006, agent="down #dead")
    gateway.wait_state("one", "DOWN", "set_lone")
    time.sleep(9)
    began = time.monotonic()
    answer = gateway.ask(data=body("lone"))
    assert (answer.status, answer.error["code"]) == (503, "no_engine") and answer.headers["retry-after"]
    assert time.monotonic() - began < 4


def test_reloads_fail_no_request(gateway: Gateway) -> None:
    def reloads() -> None:
        for _ in range(3):
            reload(gateway)
            time.sleep(1)

    report = gateway.load(clients=8, shapes=(Shape(True, 60), Shape(False, 20))).during(reloads)
    assert not report.failures and report.succeeded > 10, report


def shares(gateway: Gateway) -> dict[str, tuple[str, bool, int]]:
    """Of each server: status, whether it gets requests, and its share, as the gateway reports to nodes."""
    servers = gateway.view().json["servers"]
    return {name: (server["status"], server["up"], server["weight"]) for name, server in servers.items()}


def wait_for_full_shares(gateway: Gateway) -> None:
    wait_for("both servers have their full share", lambda: set(shares(gateway).values()) == {("UP", True, 100)}, 60)


def reports(gateway: Gateway, status: str) -> Callable[[], bool]:
    return lambda: shares(gateway)["one"][0] == status


def test_the_gateway_reports_the_share_of_an_engine_to_nodes(gateway: Gateway) -> None:
    """Nodes also read how a server's share grows during the slow start."""
    wait_for_full_shares(gateway)
    for word, status in (("drain", "DRAIN (agent)"), ("down #swap", "DOWN (agent)")):
        gateway.engine(agent=word)
        wait_for(f"the gateway reports {status}", reports(gateway, status), 30)
        assert [up for _status, up, _weight in shares(gateway).values()].count(True) == 1
    gateway.engine(agent="up ready")
    wait_for("the server is up", lambda: shares(gateway)["one"][1], 30)
    seen = [shares(gateway)["one"][2]]
    while seen[-1] < 100 and len(seen) < 60:
        time.sleep(0.2)
        seen.append(shares(gateway)["one"][2])
    assert seen[0] < 100 and seen[-1] == 100 and seen == sorted(seen), seen


def test_the_gateway_reports_requests_and_failures_of_engines_to_nodes(gateway: Gateway) -> None:
    wait_for_full_shares(gateway)
    before = {word: total(gateway, word) for word in ("requests", "failures")} | {
        "set": gateway.view().json["requests"]
    }
    assert [gateway.ask().status for _ in range(3)] == [200] * 3
    for address in ("127.0.0.1", "127.0.0.2"):
        gateway.engine(address, status=500)
    assert [gateway.ask().status for _ in range(4)] == [500] * 4
    # The gateway computes an answer at most every 0.1 s.
    time.sleep(0.2)
    assert (total(gateway, "requests"), total(gateway, "failures")) == (before["requests"] + 7, before["failures"] + 4)
    assert gateway.view().json["requests"] == before["set"] + 7
    for address in ("127.0.0.1", "127.0.0.2"):
        gateway.engine(address, status=200, token_seconds=0.2)
    with ThreadPoolExecutor(10) as pool:
        waiting = [pool.submit(gateway.ask, data=body(tokens=15)) for _ in range(10)]
        wait_for("each engine has four requests, and two requests wait", lambda: total(gateway, "sessions") == 8, 30)
        assert {request.result().status for request in waiting} == {200}


def test_a_reload_gives_nodes_another_process_to_ask(gateway: Gateway) -> None:
    """The counts of the new process start at zero. The old process answers `old_process`."""
    gateway.ask()
    before = gateway.view().json
    connection = http.client.HTTPConnection(gateway.address, 8404, timeout=30)
    assert gateway.view(connection=connection).status == 200
    reload(gateway)
    refused = gateway.view(connection=connection)
    assert (refused.status, refused.error["code"], refused.headers["connection"]) == (503, "old_process", "close")
    after = gateway.view().json
    assert after["started"] > before["started"] and after["age"] < 30 and after["requests"] < before["requests"]
    assert gateway.view().json["started"] == after["started"]


def test_limits_outlive_a_reload(gateway: Gateway) -> None:
    # HAProxy 2.6 passes no counts on for 5 s after a reload, while it waits for the counts of the old process.
    reload(gateway)
    time.sleep(7)
    gateway.command("clear table limits key slow")
    assert [gateway.ask(key="slow-key-77120cd9e").status for _ in range(5)] == [200] * 5
    reload(gateway)
    time.sleep(2)
    assert gateway.ask(key="slow-key-77120cd9e").status == 429
    gateway.command("clear table limits key slow")
