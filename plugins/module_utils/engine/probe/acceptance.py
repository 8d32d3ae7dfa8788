# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an engine must do before clients get to it: more than the one token of a start. Private to the collection.

Each step is one that was seen to fail while all those before it passed: a stream that breaks, a prompt that is longer
than what was compiled for, requests that run at once, a model that answers nonsense.
"""

from __future__ import annotations

import concurrent.futures
import http.client
import json
import random
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import probe
from .probe import COMPLETIONS, Target, WrongAnswer

CHAT = "/v1/chat/completions"

STREAM_TOKENS = 32
STREAMS = 2
"""The faster one counts: the first may still compile."""

WARM_REQUESTS = 8
WARM_TOKENS = 16

LONG_PROMPT = 8192
"""Tokens at most; a shorter context gets half of it."""

TOKEN_IDS = range(1, 100)
"""What long prompts are made of: every vocabulary has these."""

GOLDEN_TOKENS = 64

SHOWN = 300
"""Characters of a wrong answer that are shown."""


@dataclass(frozen=True)
class Golden:
    """A prompt, and a regular expression that its answer must hold."""

    prompt: str
    expect: str
    max_tokens: int = GOLDEN_TOKENS


@dataclass(frozen=True)
class Result:
    """What passed, in words, and tokens per second of one request alone."""

    steps: list[str]
    tokens_per_second: float


class ProbeFailed(Exception):
    """A step failed; `steps` are those that had passed."""

    def __init__(self, step: str, reason: str, steps: Sequence[str]) -> None:
        self.steps = list(steps)
        super().__init__(f"{step}: {reason}")


def run(target: Target, golden: Sequence[Golden], timeout: float) -> Result:
    """Take all steps. `timeout` in seconds is for each answer. Raises ProbeFailed."""
    passed: list[str] = []
    speeds: list[float] = []

    def stream() -> str:
        speeds.extend(_stream(target, timeout) for _number in range(STREAMS))
        return "a stream came to its end"

    steps: dict[str, Callable[[], str]] = {
        "a stream": stream,
        "a long prompt": lambda: _long_prompt(target, timeout),
        f"{WARM_REQUESTS} requests at once": lambda: _warm_up(target, timeout),
        **{
            f"golden prompt {item.prompt!r}": lambda item=item: _golden(target, item, timeout)  # type: ignore[misc]
            for item in golden
        },
    }
    for name, step in steps.items():
        try:
            passed.append(step())
        except (WrongAnswer, OSError, http.client.HTTPException, ValueError) as error:
            raise ProbeFailed(name, str(error) or type(error).__name__, passed) from error
    return Result(passed, round(max(speeds), 1))


def golden_prompts(entry: Mapping[str, Any]) -> list[Golden]:
    """Those of a registry's entry that was checked."""
    return [
        Golden(item["prompt"], item["expect"], item.get("max-tokens", GOLDEN_TOKENS))
        for item in entry.get("golden-prompts", [])
    ]


def _post(target: Target, path: str, body: Mapping[str, Any], timeout: float) -> http.client.HTTPResponse:
    """Send a request. Raises WrongAnswer for another status than 200, OSError."""
    connection = http.client.HTTPConnection(target.connect_address, target.port, timeout=timeout)
    connection.request("POST", path, json.dumps(body), {**probe.headers(target), "Connection": "close"})
    # The response holds the socket: it lives on when the connection does not.
    response = connection.getresponse()
    if response.status != http.HTTPStatus.OK:
        probe.decode(path, response.status, response.read())
    return response


def _body(target: Target, prompt: str | list[int], tokens: int) -> dict[str, Any]:
    # Not even its own end stops it: the number of tokens is known beforehand.
    return {
        "model": target.served_names[0],
        "prompt": prompt,
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
    }


def _unique(text: str) -> str:
    """A prompt that no cache knows."""
    return f"{uuid.uuid4().hex[:12]} {text}"


def _stream(target: Target, timeout: float) -> float:
    """Read a stream to its end. Returns tokens per second. Raises WrongAnswer.

    From the request on, and not from the first token: on a busy machine, a stream may come all at once.
    """
    body = {**_body(target, _unique("tell"), STREAM_TOKENS), "stream": True, "stream_options": {"include_usage": True}}
    finish, tokens = None, 0
    began = time.monotonic()
    with _post(target, COMPLETIONS, body, timeout) as response:
        for message in _events(response):
            finish = next((item["finish_reason"] for item in message["choices"] if item["finish_reason"]), finish)
            tokens = (message.get("usage") or {}).get("completion_tokens", tokens)
    if not finish:
        raise WrongAnswer("ended without a finish_reason")
    if tokens != STREAM_TOKENS:
        raise WrongAnswer(f"brought {tokens} of {STREAM_TOKENS} tokens")
    return tokens / (time.monotonic() - began)


def _events(lines: Iterator[bytes] | http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """The messages of a stream. Raises WrongAnswer where it brings an error, or is cut."""
    for line in lines:
        data = line.strip().removeprefix(b"data: ")
        if data == b"[DONE]":
            return
        if not line.startswith(b"data: "):
            continue
        message = json.loads(data)
        if not isinstance(message, dict) or "choices" not in message:
            raise WrongAnswer(f"brought an error: {data[:SHOWN].decode(errors='replace')}")
        yield message
    raise WrongAnswer("was cut: there was no [DONE]")


def _long_prompt(target: Target, timeout: float) -> str:
    """Have a long prompt read. Raises WrongAnswer."""
    with _get(target, "/v1/models", timeout) as response:
        listed = probe.decode("/v1/models", response.status, response.read())["data"]
    length = min(LONG_PROMPT, int(listed[0].get("max_model_len") or LONG_PROMPT) // 2)
    prompt = random.choices(TOKEN_IDS, k=length)
    with _post(target, COMPLETIONS, _body(target, prompt, 1), timeout) as response:
        answer = probe.decode(COMPLETIONS, response.status, response.read())
    probe.judge_completion(answer, target)
    return f"a prompt of {length} tokens was read"


def _get(target: Target, path: str, timeout: float) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(target.connect_address, target.port, timeout=timeout)
    connection.request("GET", path, headers={**probe.headers(target), "Connection": "close"})
    return connection.getresponse()


def _warm_up(target: Target, timeout: float) -> str:
    """Have requests run at once, as they will. Raises WrongAnswer."""

    def one(_number: int) -> int:
        with _post(target, COMPLETIONS, _body(target, _unique("tell"), WARM_TOKENS), timeout) as response:
            usage = probe.decode(COMPLETIONS, response.status, response.read()).get("usage") or {}
        return int(usage.get("completion_tokens") or 0)

    with concurrent.futures.ThreadPoolExecutor(WARM_REQUESTS) as pool:
        tokens = list(pool.map(one, range(WARM_REQUESTS)))
    if set(tokens) != {WARM_TOKENS}:
        raise WrongAnswer(f"brought {tokens} tokens instead of {WARM_TOKENS} each")
    return f"{WARM_REQUESTS} requests ran at once"


def _golden(target: Target, item: Golden, timeout: float) -> str:
    """Ask a golden prompt. Raises WrongAnswer."""
    body = {
        "model": target.served_names[0],
        "messages": [{"role": "user", "content": item.prompt}],
        "max_tokens": item.max_tokens,
        "temperature": 0,
    }
    with _post(target, CHAT, body, timeout) as response:
        answer = probe.decode(CHAT, response.status, response.read())
    text = str(answer["choices"][0]["message"].get("content") or "")
    if not re.search(item.expect, text):
        raise WrongAnswer(f"answered {text[:SHOWN]!r}, in which {item.expect!r} does not occur")
    return f"{item.prompt!r} was answered as expected"
