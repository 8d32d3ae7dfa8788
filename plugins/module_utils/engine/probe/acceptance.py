# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The acceptance probe: what an engine must do before it gets clients. Private to the collection.

The probe of a start asks only for the smallest answer. Each step here was seen to fail where all steps before it
passed: a stream, a long prompt, several requests at once, and answers that make sense.
"""

from __future__ import annotations

import concurrent.futures
import http.client
import json
import random
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..adapters.contract import GENERATE, Body, json_body
from . import golden, probe
from .golden import SHOWN, Golden, another_form
from .probe import Target, WrongAnswer

STREAM_TOKENS = 32
STREAMS = 2
"""The faster stream counts: the first may still compile."""

WARM_REQUESTS = 8
_AT_ONCE = f"{WARM_REQUESTS} requests at once"
WARM_TOKENS = 16

LONG_PROMPT = 8192
"""The most tokens of the long prompt. A model whose context is shorter than twice this number gets half of its context,
and a model of unknown context half of this number."""

TOKEN_IDS = range(1, 100)
"""The tokens of long prompts: every vocabulary has these."""


@dataclass(frozen=True)
class Result:
    """The steps that passed, in words, and the tokens per second of a single request: None unless the task is
    generate."""

    steps: list[str]
    tokens_per_second: float | None


class ProbeFailed(Exception):
    """A step failed; `steps` are the steps that passed before."""

    def __init__(self, step: str, reason: str, steps: Sequence[str]) -> None:
        self.steps = list(steps)
        super().__init__(f"{step}: {reason}")


def run(target: Target, prompts: Sequence[Golden], timeout: float) -> Result:
    """Run all steps. `timeout` limits each read, in seconds. Raises ProbeFailed."""
    passed: list[str] = []
    speeds: list[float] = []

    def stream() -> str:
        speeds.extend(_stream(target, timeout) for _number in range(STREAMS))
        return "a stream came to its end"

    generates: list[tuple[str, Callable[[], str]]] = [
        ("a stream", stream),
        ("a long prompt", lambda: _long_prompt(target, timeout)),
        (_AT_ONCE, lambda: _warm_up(target, timeout)),
    ]
    steps = generates if target.task == GENERATE else [(_AT_ONCE, partial(_at_once, target, timeout))]
    # Several golden prompts may have the same text.
    steps += [(item.step, partial(golden.ask, target, item, timeout)) for item in prompts]
    for name, step in steps:
        try:
            passed.append(step())
        except (WrongAnswer, OSError, http.client.HTTPException, ValueError) as error:
            raise ProbeFailed(name, str(error) or type(error).__name__, passed) from error
    return Result(passed, round(max(speeds), 1) if speeds else None)


def _post(target: Target, path: str, body: Body, timeout: float) -> http.client.HTTPResponse:
    """Send a request. Raises OSError, and WrongAnswer for another status than 200."""
    connection = http.client.HTTPConnection(target.connect_address, target.port, timeout=timeout)
    connection.request("POST", path, body.data, {**probe.headers(target, body), "Connection": "close"})
    # The response keeps the socket open after the connection object is gone.
    response = connection.getresponse()
    if response.status != http.HTTPStatus.OK:
        probe.decode(path, response.status, response.read())
    return response


def _body(target: Target, prompt: str | list[int], tokens: int) -> dict[str, Any]:
    # The model's end token does not end the answer: the number of tokens is known beforehand.
    return {
        "model": target.served_names[0],
        "prompt": prompt,
        "max_tokens": tokens,
        "temperature": 0,
        **target.adapter.exact_tokens,
    }


def _unique(text: str) -> str:
    """A prompt that is in no cache."""
    return f"{uuid.uuid4().hex[:12]} {text}"


def _stream(target: Target, timeout: float) -> float:
    """Read a stream to its end. Returns tokens per second. Raises WrongAnswer.

    The time begins with the request and not with the first token: on a busy machine, a whole stream may come at once.
    """
    body = {**_body(target, _unique("tell"), STREAM_TOKENS), "stream": True, "stream_options": {"include_usage": True}}
    finish, tokens = None, 0
    began = time.monotonic()
    with _post(target, target.request.path, json_body(**body), timeout) as response:
        for message in _events(response):
            with another_form(target.request.path, message):
                finish = next((item["finish_reason"] for item in message["choices"] if item["finish_reason"]), finish)
                tokens = (message.get("usage") or {}).get("completion_tokens", tokens)
    if not finish:
        raise WrongAnswer("ended without a finish_reason")
    if tokens != STREAM_TOKENS:
        raise WrongAnswer(f"brought {tokens} of {STREAM_TOKENS} tokens")
    return tokens / (time.monotonic() - began)


def _events(lines: Iterator[bytes] | http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """The messages of a stream. Raises WrongAnswer where the stream has an error, or ends early."""
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
    """Send a long prompt. Raises WrongAnswer."""
    models = target.adapter.models_path
    with _get(target, models, timeout) as response:
        listed = probe.decode(models, response.status, response.read())
    with another_form(models, listed):
        length = min(LONG_PROMPT, int(listed["data"][0].get("max_model_len") or LONG_PROMPT) // 2)
    prompt = random.choices(TOKEN_IDS, k=length)
    with _post(target, target.request.path, json_body(**_body(target, prompt, 1)), timeout) as response:
        answer = probe.decode(target.request.path, response.status, response.read())
    probe.judge(answer, target)
    return f"a prompt of {length} tokens was read"


def _get(target: Target, path: str, timeout: float) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(target.connect_address, target.port, timeout=timeout)
    connection.request("GET", path, headers={**probe.headers(target), "Connection": "close"})
    return connection.getresponse()


def _warm_up(target: Target, timeout: float) -> str:
    """Send several requests at once. Raises WrongAnswer."""

    def one(_number: int) -> int:
        body = json_body(**_body(target, _unique("tell"), WARM_TOKENS))
        with _post(target, target.request.path, body, timeout) as response:
            answer = probe.decode(target.request.path, response.status, response.read())
        with another_form(target.request.path, answer):
            return int((answer.get("usage") or {}).get("completion_tokens") or 0)

    with concurrent.futures.ThreadPoolExecutor(WARM_REQUESTS) as pool:
        tokens = list(pool.map(one, range(WARM_REQUESTS)))
    if set(tokens) != {WARM_TOKENS}:
        raise WrongAnswer(f"brought {tokens} tokens instead of {WARM_TOKENS} each")
    return f"{WARM_REQUESTS} requests ran at once"


def _at_once(target: Target, timeout: float) -> str:
    """Send several of the smallest requests of another task than generate at once. Raises WrongAnswer."""

    def one(_number: int) -> None:
        path, body = target.request.path, probe.request_body(target, target.served_names[0])
        with _post(target, path, body, timeout) as response:
            probe.judge(probe.decode(path, response.status, response.read()), target)

    with concurrent.futures.ThreadPoolExecutor(WARM_REQUESTS) as pool:
        list(pool.map(one, range(WARM_REQUESTS)))
    return f"{_AT_ONCE} were answered"
