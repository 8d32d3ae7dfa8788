# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests in flight at the death of an engine. Where HAProxy is installed, a real HAProxy sends them."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.gateway import config, deaths, files
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.backends import Replica
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.files import Plan, plan
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.settings import read_settings

from ...ports import free_port
from .running import CHAT, Engine, Haproxy, wait

ALICE, BOB = "a-key-of-20-letters-", "another-key-of-bob-s"

KEYS = [{"name": "alice", "key": ALICE}, {"name": "bob", "key": BOB}]

real = pytest.mark.skipif(shutil.which("haproxy") is None, reason="no HAProxy here: the controllers' container has one")

ROUNDING = 0.002
"""Seconds by which the sum of a request's times in the log may be wrong: each is cut to milliseconds."""

Serve = Callable[..., AbstractContextManager[tuple[Haproxy, Engine, Engine]]]


def test_a_key_is_refused_only_if_the_site_allows_refusals(settings: dict[str, Any]) -> None:
    assert deaths.refusal(read_settings(settings)[0]) == []
    allowed = read_settings({**settings, "refuse_deaths": 3, "refuse_seconds": 60})[0]
    asked, refused = deaths.refusal(allowed)
    assert asked == "http-request lua.refused unless local"
    assert "status 403" in refused and "key_refused" in refused and 'hdr Retry-After "%[var(' in refused
    assert "http-request set-var(txn.refuse_deaths) int(3) if deaths" in deaths.service(allowed)
    assert "http-request set-var(txn.refuse_seconds) int(60) if deaths" in deaths.service(allowed)


def test_the_refusal_comes_after_the_key_and_before_its_limits(
    settings: dict[str, Any], replicas: list[Replica], made: Callable[..., Plan]
) -> None:
    config = made(settings, replicas, refuse_deaths=3).config
    places = [config.index(text) for text in ("keys.map", "models.json", "lua.refused", "track-sc0")]
    assert places == sorted(places)
    assert "lua.refused" not in made(settings, replicas).config
    for text in ("set-var(txn.began)", '"remembered":"%[lua.remember]"', "lua-load deaths.lua", "lua.deaths if deaths"):
        assert text in made(settings, replicas).config


@pytest.fixture
def serve(settings: dict[str, Any]) -> Serve:
    """Starts two engines of one set, and an HAProxy in front of them. `lone`: the set has only the first engine."""

    @contextmanager
    def start(*, lone: bool = False, **changes: Any) -> Iterator[tuple[Haproxy, Engine, Engine]]:
        engines = (Engine("gpu1"), Engine("gpu2"))
        replicas = [Replica(each.name, "127.0.0.1", "chat", "large", each.port) for each in engines[: 1 if lone else 2]]
        ports = {"port": free_port(), "metrics_port": free_port()}
        given = {**settings, **ports, "agent_port": 0, "slow_start_seconds": 0, **changes}
        found = plan(given, replicas, KEYS)
        assert not found.problems
        with tempfile.TemporaryDirectory(prefix="gateway-") as directory:
            haproxy = Haproxy(found, Path(directory), ports["port"], ports["metrics_port"], ALICE)
            try:
                wait("the servers", lambda: all(each["up"] for each in haproxy.view()["servers"].values()))
                yield haproxy, *engines
            finally:
                haproxy.stop()
                for engine in engines:
                    engine.stop()

    return start


def only(haproxy: Haproxy, name: str) -> None:
    """Send all requests to one engine."""
    for each in haproxy.view()["servers"]:
        haproxy.command(f"set server set_chat/{each} state {'ready' if each == name else 'maint'}")
    wait(name, lambda: bool(haproxy.view()["servers"][name]["up"]))


def die(haproxy: Haproxy, engine: Engine, *requests: tuple[str, str], **how: bool) -> list[dict[str, Any]]:
    """Let an engine die of `requests`, pairs of a key and an id, and report the death. Returns all deaths."""
    only(haproxy, engine.name)
    for name, value in {**how, "seconds": 0.3}.items():
        setattr(engine, name, value)
    with ThreadPoolExecutor(len(requests)) as pool:
        list(pool.map(lambda request: haproxy.post(*request), requests))
    for request in requests:
        wait_logged(haproxy, request[1])
    for name in (*how, "seconds"):
        setattr(engine, name, 0)
    return report(haproxy, engine)


def wait_logged(haproxy: Haproxy, request_id: str) -> None:
    wait(request_id, lambda: request_id in [line["id"] for line in haproxy.lines()])


def wait_clock(haproxy: Haproxy, request_id: str) -> None:
    """Wait until HAProxy's clock is past the end of a request.

    deaths.lua compares times in milliseconds: a request must not begin in the millisecond in which the last one ended.
    """
    wait_logged(haproxy, request_id)

    def passed() -> bool:
        # A request with a wrong key reaches no engine, and the log has the time of its beginning.
        haproxy.post("no-key", "clock")
        lines = {line["id"]: line for line in haproxy.lines()}
        if "clock" not in lines:
            return False
        ended = lines[request_id]["time"] + lines[request_id]["ms_total"] / 1000
        return bool(lines["clock"]["time"] > ended + ROUNDING)

    wait("HAProxy's clock", passed)


def report(haproxy: Haproxy, engine: Engine, age: float = 0) -> list[dict[str, Any]]:
    """Report a death that was `age` seconds ago, as the engine's node does. Returns all deaths."""
    return haproxy.deaths(f"?set=chat&node={engine.name}&age={age:.3f}")


@real
@pytest.mark.parametrize(
    ("how", "status"),
    [
        ({"breaks": True}, 502),
        ({"fails": True}, 500),
        ({"breaks": True, "streams": True}, 200),
        ({"streams": True}, 200),
    ],
    ids=["without an answer", "with an error", "in a stream", "at the end of a stream"],
)
def test_a_death_names_its_requests(serve: Serve, how: dict[str, bool], status: int) -> None:
    """A request that got a complete answer before the death is not named."""
    with serve() as (haproxy, one, _other):
        only(haproxy, "gpu1")
        assert haproxy.post(ALICE, "before")[0] == 200
        (death,) = die(haproxy, one, (BOB, "deadly"), **how)
        assert (death["set"], death["node"], death["keys"]) == ("chat", "gpu1", ["bob"])
        assert death["requests"] == [{"id": "deadly", "key": "bob", "path": CHAT, "status": status}]
        assert 0 <= death["age"] < 5
        # A repeated report is no second death.
        assert len(report(haproxy, one)) == len(haproxy.deaths()) == 1
        assert {line["id"]: line["remembered"] for line in haproxy.lines()} == {"before": "0", "deadly": "1"}


@real
def test_requests_to_a_dead_engine_are_not_the_cause_of_its_death(serve: Serve) -> None:
    with serve() as (haproxy, one, _other):
        only(haproxy, "gpu1")
        one.fails = True
        for key, request_id in ((BOB, "deadly"), (ALICE, "later")):
            haproxy.post(key, request_id)
            wait_clock(haproxy, request_id)
        (death,) = report(haproxy, one)
        assert [request["id"] for request in death["requests"]] == ["deadly"]


@real
def test_the_death_of_an_engine_that_takes_long_to_end_begins_at_its_first_failure(serve: Serve) -> None:
    with serve() as (haproxy, one, _other):
        only(haproxy, "gpu1")
        one.fails = True
        for key, request_id in ((BOB, "deadly"), (ALICE, "later")):
            haproxy.post(key, request_id)
            wait_clock(haproxy, request_id)
        time.sleep(7)
        (death,) = report(haproxy, one)
        assert [request["id"] for request in death["requests"]] == ["deadly"]


@real
@pytest.mark.parametrize(
    ("pause", "named"), [(0.1, ["deadly", "harmless"]), (6.5, ["deadly"])], ids=["at once", "later"]
)
def test_a_request_without_an_answer_is_named_after_another_failure(
    serve: Serve, pause: float, named: list[str]
) -> None:
    """A failure is no sign of death if the engine still gets requests long after the failure."""
    with serve() as (haproxy, one, _other):
        only(haproxy, "gpu1")
        one.fails = True
        haproxy.post(ALICE, "harmless")
        wait_logged(haproxy, "harmless")
        one.fails = False
        time.sleep(pause)
        (death,) = die(haproxy, one, (BOB, "deadly"), breaks=True)
        assert [request["id"] for request in death["requests"]] == named


@real
def test_a_failure_long_before_the_end_is_no_death(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The gateway looks back 6.5 s in place of 35 s, to shorten the test."""
    lua, shorter = files.DEATHS.read_text(encoding="utf-8"), tmp_path / "deaths.lua"
    assert lua.count("ENDING_MILLISECONDS = 35000") == 1
    shorter.write_text(lua.replace("ENDING_MILLISECONDS = 35000", "ENDING_MILLISECONDS = 6500"))
    monkeypatch.setattr(files, "DEATHS", shorter)
    with serve() as (haproxy, one, _other):
        only(haproxy, "gpu1")
        one.fails = True
        haproxy.post(ALICE, "harmless")
        wait_logged(haproxy, "harmless")
        time.sleep(7)
        (death,) = report(haproxy, one)
        assert death["requests"] == []


@real
def test_a_request_that_came_after_the_death_was_not_in_flight(serve: Serve) -> None:
    with serve() as (haproxy, one, _other):
        only(haproxy, "gpu1")
        time.sleep(0.5)
        one.breaks = True
        haproxy.post(BOB, "later")
        wait_logged(haproxy, "later")
        (death,) = report(haproxy, one, 0.5)
        assert death["requests"] == [] and 0.5 <= death["age"] < 5


@real
def test_a_failure_before_a_good_answer_is_no_cause(serve: Serve) -> None:
    with serve() as (haproxy, one, _other):
        only(haproxy, "gpu1")
        one.fails = True
        haproxy.post(ALICE, "wrong")
        wait_clock(haproxy, "wrong")
        one.fails = False
        assert haproxy.post(ALICE, "good")[0] == 200
        (death,) = die(haproxy, one, (BOB, "deadly"), breaks=True)
        assert [request["id"] for request in death["requests"]] == ["deadly"]


@real
@pytest.mark.parametrize("closes", [False, True], ids=["an error", "a client that closes the connection"])
def test_among_streams_a_failure_before_a_stream_is_no_sign_of_death(serve: Serve, closes: bool) -> None:
    """No complete answer shows that the engine still lived after the failure, but the beginning of the stream does."""
    with serve() as (haproxy, one, _other):
        only(haproxy, "gpu1")
        if closes:
            one.seconds = 2
            haproxy.give_up(ALICE, "before")
        else:
            one.fails = True
            haproxy.post(ALICE, "before")
        wait_clock(haproxy, "before")
        one.fails, one.seconds = False, 0
        (death,) = die(haproxy, one, (BOB, "deadly"), streams=True, breaks=True)
        # The request `before` is named, too: it ended in the engine's last seconds. The youngest request comes first.
        assert [request["id"] for request in death["requests"]] == ["deadly", "before"]
        assert death["requests"][1]["status"] == (400 if closes else 500)


@real
def test_a_report_about_an_unknown_engine_is_ignored(serve: Serve) -> None:
    with serve() as (haproxy, _one, _other):
        for query in ("?set=chat&node=gpu9&age=1", "?set=code&node=gpu1&age=1", "?set=chat&node=gpu1", "?x"):
            assert haproxy.deaths(query) == []


@real
def test_the_last_50_deaths_are_kept(serve: Serve) -> None:
    """A query of the deaths removes none."""
    with serve() as (haproxy, one, _other):
        # Two reports within 6 s would be about the same death.
        for number in range(50, 0, -1):
            report(haproxy, one, number * 10)
        assert len(haproxy.deaths()) == len(haproxy.deaths()) == 50
        found = report(haproxy, one)
        assert len(found) == 50 and found[0]["age"] < 491 and found[-1]["age"] < 5


@real
def test_a_key_is_not_refused_if_other_keys_were_in_flight(serve: Serve) -> None:
    """The requests of a client with much traffic are in flight at each death."""
    with serve(refuse_deaths=2) as (haproxy, one, other):
        die(haproxy, one, (BOB, "bob-1"), (ALICE, "alice-1"), breaks=True)
        found = die(haproxy, other, (BOB, "bob-2"), (ALICE, "alice-2"), breaks=True)
        assert [sorted(death["keys"]) for death in found] == [["alice", "bob"]] * 2
        only(haproxy, "gpu1")
        assert {haproxy.post(key, key)[0] for key in (ALICE, BOB)} == {200}


@real
def test_a_refusal_says_why_and_for_how_long(serve: Serve) -> None:
    with serve(refuse_deaths=2, refuse_seconds=300) as (haproxy, one, other):
        die(haproxy, one, (BOB, "bob-1"), breaks=True)
        die(haproxy, other, (BOB, "bob-2"), breaks=True)
        only(haproxy, "gpu1")
        status, headers, text = haproxy.post(BOB, "bob-3")
        error = json.loads(text)["error"]
        assert (status, error["code"], error["type"]) == (403, "key_refused", "permission_error")
        assert (
            290 <= int(headers["retry-after"]) <= 300
            and f"another {headers['retry-after']} seconds" in error["message"]
        )
        assert haproxy.post(ALICE, "alice")[0] == 200


@real
def test_a_refused_key_is_accepted_again_after_the_time_of_the_refusal(serve: Serve) -> None:
    with serve(refuse_deaths=2, refuse_seconds=1) as (haproxy, one, other):
        die(haproxy, one, (BOB, "bob-1"), breaks=True)
        die(haproxy, other, (BOB, "bob-2"), breaks=True)
        only(haproxy, "gpu1")
        assert haproxy.post(BOB, "bob-3")[0] == 403
        wait("the end of the refusal", lambda: haproxy.post(BOB, "bob-4")[0] == 200)


@real
@pytest.mark.parametrize(("lone", "status"), [(False, 200), (True, 403)])
def test_deaths_on_one_node_may_be_the_nodes_own_fault(serve: Serve, lone: bool, status: int) -> None:
    """A key is refused for deaths on one node only if the set has no other node."""
    with serve(lone=lone, refuse_deaths=2) as (haproxy, one, _other):
        die(haproxy, one, (BOB, "bob-1"), breaks=True)
        # Two reports within 6 s are about the same death.
        time.sleep(6)
        assert len(die(haproxy, one, (BOB, "bob-2"), breaks=True)) == 2 and haproxy.post(BOB, "bob-3")[0] == status


@real
@pytest.mark.parametrize("request_id", ['a"b', "a\\b", "a\tb", 'x", "key": "alice', "a" * 65])
def test_an_id_that_could_break_the_answer_is_replaced(serve: Serve, request_id: str) -> None:
    """The log and the client's answer have the new id, too."""
    with serve() as (haproxy, one, _other):
        only(haproxy, "gpu1")
        one.breaks = True
        _status, headers, _text = haproxy.post(BOB, request_id)
        wait_logged(haproxy, headers["x-request-id"])
        (death,) = report(haproxy, one)
        assert [(each["id"], each["key"]) for each in death["requests"]] == [(headers["x-request-id"], "bob")]
        assert re.fullmatch("[0-9a-f-]{36}", headers["x-request-id"])


@real
def test_an_id_that_a_rule_accepts_by_mistake_is_escaped(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this test, HAProxy accepts every id."""
    monkeypatch.setattr(config, "VALID_ID", ".")
    with serve() as (haproxy, one, _other):
        only(haproxy, "gpu1")
        one.breaks = True
        haproxy.post(BOB, 'a"b\\c\td')
        wait("the end of the request", lambda: '"remembered":"1"' in haproxy.log.read_text())
        (death,) = report(haproxy, one)
        assert [each["id"] for each in death["requests"]] == ['a"b\\c\td']
