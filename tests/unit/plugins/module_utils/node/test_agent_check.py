# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answers to gateways, over real sockets."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import health
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import Drain
from ansible_collections.baremetal.inference.plugins.module_utils.node import agent_check
from ansible_collections.baremetal.inference.plugins.module_utils.node.agent_check import reply

DRAIN = Drain("alice", "new disk", "2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("verdict", "answer"),
    [
        ("healthy", "up ready"),
        ("busy", "up ready"),
        ("unknown", "up ready"),
        ("starting", "down #starting: why"),
        ("stopped", "down #stopped: why"),
        ("hung", "down #hung: why"),
        ("dead", "down #dead: why"),
        ("wrong", "down #wrong: why"),
    ],
)
def test_the_answer_follows_from_drain_age_and_verdict(verdict: str, answer: str) -> None:
    assert reply(verdict, "why", None, stale=False) == answer
    assert reply(verdict, "why", DRAIN, stale=False) == "drain"
    assert reply(verdict, "why", DRAIN, stale=True) == "drain"
    assert reply(verdict, "why", None, stale=True) == "up ready"


@given(st.sampled_from(health.VERDICTS), st.text())
def test_a_detail_cannot_change_the_answer(verdict: str, detail: str) -> None:
    """A text of an engine must not become a command to HAProxy: the answer has one line with one description."""
    answer = reply(verdict, detail, None, stale=False)
    assert answer.isascii() and answer.isprintable()
    assert answer == "up ready" or (answer.startswith("down #") and answer.count("#") == 1)


async def talk(port: int, request: bytes, *, end: bool = False) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    if end:
        writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


def heard_of(question: agent_check.Question) -> str:
    return f"heard {question.instance}|{question.gateway}|{','.join(question.endpoints)}"


def test_questions_over_a_socket_are_parsed_and_bad_questions_get_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_check, "READ_LIMIT", 0.2)

    async def run() -> list[bytes]:
        async with await agent_check.serve(heard_of, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            calls = [
                talk(port, b"main\n"),
                talk(port, b"main\r\n"),
                # The gateway's name, whole and cut off.
                talk(port, b"main\ngateway1\n"),
                talk(port, b"main\ngatew"),
                # The third line has the addresses of one of an engine's two servers, also in a question of gateway.lua.
                talk(port, b"main\ngateway1\n0.0.0.0/5005 ::/5006\n"),
                talk(port, b"main\n\n0.0.0.0/5005\n"),
                talk(port, b"\xff\n"),
                # These questions get no answer: no name, no end of line, too long, disconnected.
                talk(port, b"\n"),
                talk(port, b"main"),
                talk(port, b"x" * 10_000),
                talk(port, b"main", end=True),
            ]
            return [await call for call in calls]

    heard = [*("main||", "main||", "main|gateway1|", "main||"), "main|gateway1|0.0.0.0/5005,::/5006"]
    heard += ["main||0.0.0.0/5005", "\ufffd||"]
    assert asyncio.run(run()) == [*(f"heard {names}\n".encode() for names in heard), *[b""] * 4]


def test_a_client_that_sends_nothing_delays_no_other_client() -> None:
    async def run() -> bytes:
        async with await agent_check.serve(lambda *_names: "up ready", "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            silent = [await asyncio.open_connection("127.0.0.1", port) for _client in range(50)]
            async with asyncio.timeout(1):
                answer = await talk(port, b"main\n")
            for _reader, writer in silent:
                writer.close()
            return answer

    assert asyncio.run(run()) == b"up ready\n"
