# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Related requests go to the same engine. Where HAProxy is installed, a real HAProxy sends them."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.gateway.affinity import rules
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.backends import Replica
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.files import Plan
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.settings import AFFINITIES
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.routing import Routing

from ...ports import free_port
from .running import Engine, Haproxy, wait

HOSTS = ("gpu1", "gpu2", "gpu3")

KEY = "a-key-of-20-letters-"

real = pytest.mark.skipif(shutil.which("haproxy") is None, reason="no HAProxy here: the controllers' container has one")

Serve = Callable[..., AbstractContextManager[tuple[Haproxy, dict[str, Engine]]]]


def test_least_connections_need_no_rule() -> None:
    assert rules(Routing(), 256) == []


def test_rules_read_the_key_then_choose_an_engine() -> None:
    made = rules(Routing(("header", "user"), "X-Session-ID", load_percent=200), 256)
    assert "req.fhdr(X-Session-ID),xxh64" in made[0] and "$.prompt_cache_key" in made[1] and "$.user" in made[2]
    assert made[3:] == [
        "http-request lua.prefer 200 230",
        "use-server %[var(txn.engine)] if { var(txn.engine) -m found }",
    ]
    prefix = rules(Routing(("prefix",), prefix_bytes=100), 1)
    assert all("bytes(0,100)" in line for line in prefix if "json_query" in line)
    assert prefix[-2] == "http-request lua.prefer 150 1"


def test_a_set_is_routed_as_its_models_ask_if_they_agree(
    settings: dict[str, Any], replicas: list[Replica], made: Callable[..., Plan]
) -> None:
    asked = Routing(("user",))
    both = [replace(replica, routing=asked) if replica.name == "chat" else replica for replica in replicas]
    found = made(settings, both)
    sections = {text.splitlines()[0]: text for text in found.config.split("\n\n") if text.startswith("backend ")}
    assert "lua.prefer 150 230" in sections["backend set_chat"]
    # `batch` serves the same model without affinity.
    assert [name for name, text in sections.items() if "lua.prefer" in text] == ["backend set_chat"]
    assert found.config.count("balance leastconn") == len(sections) - 1 and found.warnings == []

    mixed = made(settings, [replace(both[0], routing=Routing()), *both[1:]])
    assert "lua.prefer" not in mixed.config
    (warning,) = map(str, mixed.warnings)
    assert warning.startswith("replica set chat: routing: its models (large) ask for different routing")

    lone = made(settings, [replace(replica, routing=asked) for replica in replicas if replica.name == "code"])
    (warning,) = map(str, lone.warnings)
    assert "replica set code: routing: 'affinity': has no effect: the set has one engine, on gpu3" in warning


def test_the_roles_setting_is_for_models_without_routing(
    settings: dict[str, Any], replicas: list[Replica], made: Callable[..., Plan]
) -> None:
    replicas = [replace(replica, routing=Routing() if replica.name == "chat" else None) for replica in replicas]
    found = made(settings, replicas, affinity="prefix")
    sections = {text.splitlines()[0] for text in found.config.split("\n\n") if "lua.prefer" in text}
    assert sections == {"backend set_batch", "backend set_code"} and found.warnings == []


def test_a_model_without_routing_agrees_with_a_model_that_asks_for_the_roles_setting(
    settings: dict[str, Any], replicas: list[Replica], made: Callable[..., Plan]
) -> None:
    (first, *_others) = (replica for replica in replicas if replica.name == "chat")
    asks = replace(first, routing=AFFINITIES["session"])
    both = [asks if replica is first else replace(replica, routing=None) for replica in replicas]
    agreed = made(settings, both, affinity="session")
    assert agreed.warnings == [] and "lua.prefer" in agreed.config
    # The role's setting is for all sets: a set with one engine gets no warning.
    (warning,) = map(str, made(settings, both, affinity="prefix").warnings)
    assert warning.startswith("replica set chat: routing: its models (large) ask for different routing")


@pytest.fixture
def serve(settings: dict[str, Any], made: Callable[..., Plan]) -> Serve:
    """Starts three engines of one set, and an HAProxy in front of them."""

    @contextmanager
    def start(routing: Routing, **changes: Any) -> Iterator[tuple[Haproxy, dict[str, Engine]]]:
        engines = {host: Engine(host) for host in HOSTS}
        replicas = [
            Replica(host, "127.0.0.1", "chat", "large", engine.port, bridge_port=free_port(), routing=routing)
            for host, engine in engines.items()
        ]
        ports = {"port": free_port(), "metrics_port": free_port()}
        given = {**settings, **ports, "agent_port": 0, "slow_start_seconds": 0, **changes}
        plan = made({**given, "paths": [*given["paths"], "/v1/responses"]}, replicas)
        # The path of a socket must be short.
        with tempfile.TemporaryDirectory(prefix="gateway-") as directory:
            haproxy = Haproxy(plan, Path(directory), ports["port"], ports["metrics_port"], KEY)
            try:
                bridges = (f"chat_bridge.{host}" for host in HOSTS)
                servers = {name: name in HOSTS for name in (*HOSTS, *bridges)}
                wait(
                    "the servers",
                    lambda: {name: each["up"] for name, each in haproxy.view()["servers"].items()} == servers,
                )
                yield haproxy, engines
            finally:
                haproxy.stop()
                for engine in engines.values():
                    engine.stop()

    return start


def user(number: int) -> dict[str, Any]:
    return {"user": f"user-{number}", "messages": []}


@real
def test_only_the_affinity_keys_of_a_drained_engine_move(serve: Serve) -> None:
    with serve(Routing(("user",))) as (haproxy, engines):
        before = {number: haproxy.ask(**user(number)) for number in range(60)}
        assert {number: haproxy.ask(**user(number)) for number in range(60)} == before
        # No engine has more than twice its share of the keys.
        counts = Counter(before.values())
        assert set(counts) == set(HOSTS) and max(counts.values()) <= 40

        haproxy.command("set server set_chat/gpu2 state drain")
        during = {number: haproxy.ask(**user(number)) for number in range(60)}
        assert "gpu2" not in during.values()
        assert {number for number in before if before[number] != during[number]} == {
            number for number, engine in before.items() if engine == "gpu2"
        }
        haproxy.command("set server set_chat/gpu2 state ready")
        wait("gpu2 is up", lambda: bool(haproxy.view()["servers"]["gpu2"]["up"]))
        assert {number: haproxy.ask(**user(number)) for number in range(60)} == before

        # An engine that refuses connections loses no request.
        engines["gpu3"].stop()
        lost = {number: haproxy.ask(**user(number)) for number in range(60)}
        assert all(lost[number] == engine for number, engine in before.items() if engine != "gpu3")


@real
def test_a_request_that_would_wait_goes_to_another_engine(serve: Serve) -> None:
    with serve(Routing(("user",)), engine_requests=4) as (haproxy, engines):
        preferred = haproxy.ask(**user(1))
        for engine in engines.values():
            engine.seconds = 1.0
        # Related requests may take three of the four places of an engine. Two threads at once may take the fourth, too.
        found = Counter(haproxy.ask_at_once([user(1)] * 9))
        assert found[preferred] in (3, 4) and set(found) == set(HOSTS)
        # Twelve places in all: no request waits while an engine has a free place.
        haproxy.ask_at_once([user(1)] * 12)
        assert {engine.most for engine in engines.values()} == {4}
        lines = haproxy.lines()
        assert {line["preferred"] for line in lines} == {preferred}
        assert [line for line in lines if line["queued_engine"]] == []
        counts = haproxy.view()["affinity"]
        assert counts["preferred"] + counts["other"] == 22 and counts["preferred"] >= 7 and counts["keyless"] == 0


@real
def test_an_engine_with_more_than_its_share_passes_requests_on(serve: Serve) -> None:
    with serve(Routing(("user",), load_percent=150)) as (haproxy, engines):
        preferred = haproxy.ask(**user(1))
        for engine in engines.values():
            engine.seconds = 1.0
        # Four related requests stay together. Of 30, about 15 stay at the preferred engine: 150 % of the mean of 10.
        assert set(haproxy.ask_at_once([user(1)] * 4)) == {preferred}
        found = Counter(haproxy.ask_at_once([user(1)] * 30))
        assert 13 <= found[preferred] <= 17 and sum(found.values()) == 30


TEXT = "You answer for the support desk. " * 20


def chat(*contents: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content} for content in contents]}


@real
@pytest.mark.parametrize(
    ("routing", "one", "same"),
    [
        (
            Routing(("header",), "X-Talk"),
            {"headers": {"X-Talk": "{}"}},
            {"headers": {"x-talk": "{}"}, "prompt": "else"},
        ),
        (Routing(("user",)), {"prompt_cache_key": "{}"}, {"prompt_cache_key": "{}", "user": "else"}),
        (Routing(("prefix",)), chat(TEXT, "{}"), chat(TEXT, "{}", "an answer", "another question")),
        (Routing(("prefix",), prefix_bytes=30), chat("{} " + TEXT, "one"), chat("{} " + TEXT, "another")),
        (
            Routing(("prefix",)),
            chat([{"type": "text", "text": "{}"}], "an answer"),
            chat([{"type": "text", "text": "{}"}], "an answer", "a question"),
        ),
        (
            Routing(("prefix",), prefix_bytes=40),
            {"path": "/v1/completions", "prompt": "{} " + TEXT + "one"},
            {"path": "/v1/completions", "prompt": "{} " + TEXT + "another"},
        ),
        (
            Routing(("prefix",), prefix_bytes=40),
            {"path": "/v1/responses", "instructions": "{} " + TEXT, "input": "one"},
            {"path": "/v1/responses", "instructions": "{} " + TEXT, "input": "another"},
        ),
        (
            Routing(("header", "user"), "X-Talk"),
            {"headers": {"X-Talk": "{}"}, "user": "a"},
            {"headers": {"X-Talk": "{}"}},
        ),
    ],
)
def test_related_requests_share_a_key(
    serve: Serve, routing: Routing, one: dict[str, Any], same: dict[str, Any]
) -> None:
    def filled(value: Any, number: int) -> Any:
        if isinstance(value, dict):
            return {key: filled(each, number) for key, each in value.items()}
        if isinstance(value, list):
            return [filled(each, number) for each in value]
        return value.replace("{}", f"talk {number}")

    with serve(routing) as (haproxy, _engines):
        found = [(haproxy.ask(**filled(one, number)), haproxy.ask(**filled(same, number))) for number in range(18)]
        assert all(first == second for first, second in found), found
        assert {first for first, _second in found} == set(HOSTS)
        assert haproxy.view()["affinity"]["other"] == 0


@real
def test_a_request_without_a_key_goes_to_the_least_busy_engine(serve: Serve) -> None:
    with serve(Routing(("header",), "X-Talk")) as (haproxy, _engines):
        assert {haproxy.ask(headers={"X-Talk": ""}) for _turn in range(6)} == set(HOSTS)
        assert haproxy.view()["affinity"] == {"preferred": 0, "other": 0, "keyless": 6}
        assert {line["preferred"] for line in haproxy.lines()} == {"-"}
