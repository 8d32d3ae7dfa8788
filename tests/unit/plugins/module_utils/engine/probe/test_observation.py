# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a probe observes of engines that are healthy, full, slow, wrong, hung and gone, over real sockets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import http, metrics, observation
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe.observation import Observation, Seen
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe.probe import Target

from ...http_engine import Engine

LIMIT = 1.2
"""Seconds: long enough to read the metrics twice on a busy machine."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observation, "SCRAPE_AFTER", 0.1)
    monkeypatch.setattr(observation, "SCRAPE_LIMIT", 1.0)


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.close()


def look(engine: Engine, key: str = "") -> Observation:
    target = Target("127.0.0.1", engine.port, ["main", "tiny-a"], key)
    return asyncio.run(observation.observe(target, LIMIT))


def test_a_healthy_engine_is_asked_for_one_unique_token_and_nothing_else(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The probe must not read the counters, even on a slow machine.
    monkeypatch.setattr(observation, "SCRAPE_AFTER", observation.LIMIT)
    target = Target("127.0.0.1", engine.port, ["main", "tiny-a"])
    found = [asyncio.run(observation.observe(target)) for _number in range(2)]
    assert [item.seen for item in found] == [Seen.TOKEN] * 2
    assert all(item.latency_ms is not None for item in found)
    prompts = [request["prompt"] for request in engine.completions]
    assert prompts[0] != prompts[1]
    assert [request["max_tokens"] for request in engine.completions] == [1, 1]
    # The probe asks for the model's own name: the instance's name stays when its model changes.
    assert engine.completions[0]["model"] == "tiny-a"
    assert engine.scrapes == 0


def test_an_engine_that_hangs_answers_metrics_without_progress(engine: Engine) -> None:
    engine.delay = 60
    found = look(engine)
    assert (found.seen, found.silent, found.latency_ms) == (Seen.NOTHING, False, None)
    assert len(found.samples) == 2
    assert metrics.progress(*found.samples) is False


def test_a_slow_engine_shows_progress(engine: Engine) -> None:
    engine.delay, engine.works = 60, True
    found = look(engine)
    assert metrics.progress(*found.samples) is True


def test_a_slow_engine_that_answers_in_time_makes_a_token(engine: Engine) -> None:
    engine.delay = 0.2
    found = look(engine)
    assert found.seen is Seen.TOKEN and found.latency_ms is not None and found.latency_ms >= 200


def test_an_api_server_that_answers_nothing_is_silent(engine: Engine) -> None:
    """A paused container: the kernel accepts connections, and no process answers."""
    engine.frozen.set()
    began = time.monotonic()
    found = look(engine)
    assert (found.seen, found.silent, found.samples) == (Seen.NOTHING, True, ())
    # The probe waits for one scrape, not for two.
    assert time.monotonic() - began < LIMIT + 1.5 * observation.SCRAPE_LIMIT


@pytest.mark.parametrize("text", ["", "no metrics at all", "\x00\xff"])
def test_broken_metrics_give_no_samples(engine: Engine, text: str) -> None:
    engine.delay, engine.metrics = 60, text
    found = look(engine)
    assert (found.seen, found.silent, found.samples) == (Seen.NOTHING, False, ())


def test_an_answer_of_another_model_is_wrong(engine: Engine) -> None:
    engine.model = "llama"
    found = look(engine)
    assert found.seen is Seen.WRONG and "'llama' instead of 'main' or 'tiny-a'" in found.detail


@pytest.mark.parametrize(
    ("status", "seen"),
    [
        (404, Seen.ERROR),
        (500, Seen.ERROR),
        (503, Seen.FULL),
        (429, Seen.FULL),
        (401, Seen.UNCLEAR),
        (403, Seen.UNCLEAR),
    ],
)
def test_each_http_status_gives_an_observation(engine: Engine, status: int, seen: Seen) -> None:
    engine.status = status
    found = look(engine)
    assert found.seen is seen
    assert f"HTTP {status}" in found.detail


def test_an_engine_with_a_key_answers_only_to_the_key(engine: Engine) -> None:
    engine.key = "secret-key-1"
    assert look(engine).seen is Seen.UNCLEAR
    assert look(engine, "secret-key-1").seen is Seen.TOKEN


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", Seen.WRONG),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", Seen.WRONG),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", Seen.UNCLEAR),
        (b"HTTP/1.1 200 OK\r\nContent-Length: nine\r\n\r\n{}", Seen.WRONG),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", Seen.UNCLEAR),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n", Seen.WRONG),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000, Seen.WRONG),
    ],
)
def test_an_answer_that_cannot_be_read_is_wrong_or_unclear(engine: Engine, raw: bytes, seen: Seen) -> None:
    engine.raw = raw
    assert look(engine).seen is seen


def test_an_answer_above_the_size_limit_is_wrong(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "LARGEST_ANSWER", 1000)
    engine.raw = b"x" * 100_000
    assert look(engine).seen is Seen.WRONG


def test_a_port_without_a_listener_is_refused(engine: Engine) -> None:
    engine.close()
    found = look(engine)
    assert (found.seen, found.detail) == (Seen.REFUSED, f"no process listens on 127.0.0.1:{engine.port}")


def test_a_server_that_sends_byte_by_byte_is_cut_off_at_the_limit(engine: Engine) -> None:
    """http.client alone would wait as long as each byte comes in time."""

    async def drip() -> Observation:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            for _turn in range(100):
                writer.write(b"H")
                await asyncio.sleep(0.05)

        async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            return await observation.observe(Target("127.0.0.1", port, ["main"]), LIMIT)

    began = time.monotonic()
    assert asyncio.run(drip()).seen is Seen.NOTHING
    assert time.monotonic() - began < LIMIT + 1.5 * observation.SCRAPE_LIMIT
