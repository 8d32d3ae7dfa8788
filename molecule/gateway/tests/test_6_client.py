# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The official client of OpenAI's API: refusals of the gateway raise the client's errors for their statuses."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest
from gateway import KEY, Gateway
from load import tls_of
from node import wait_for
from openai import OpenAI

SINGLE = "single-key-5d0e61a2"

QUESTION: Any = [{"role": "user", "content": "hi"}]


def client(gateway: Gateway, key: str = KEY, repeats: int = 0) -> OpenAI:
    client = openai.DefaultHttpxClient(verify=tls_of(gateway.url, gateway.trusted) or False)
    return OpenAI(base_url=f"{gateway.url}/v1", api_key=key, max_retries=repeats, timeout=60, http_client=client)


def chat(gateway: Gateway, key: str = KEY, model: str = "main", text: str = "hi", tokens: int = 1) -> None:
    messages: Any = [{"role": "user", "content": text}]
    client(gateway, key).chat.completions.create(model=model, messages=messages, max_tokens=tokens)


def without_a_model(gateway: Gateway) -> None:
    client(gateway).post("/chat/completions", body={"messages": QUESTION}, cast_to=object)


def of_an_unknown_path(gateway: Gateway) -> None:
    client(gateway).images.generate(model="main", prompt="a cat")


def of_another_method(gateway: Gateway) -> None:
    client(gateway).get("/chat/completions", cast_to=object)


def too_large(gateway: Gateway) -> None:
    chat(gateway, text="x" * (9 << 20))


def too_often(gateway: Gateway) -> None:
    gateway.command("clear table limits key slow")
    for _turn in range(6):
        chat(gateway, "slow-key-77120cd9e")


def at_once(gateway: Gateway, count: int, key: str, tokens: int = 3) -> None:
    """Requests at the same time. Raises the first error."""
    gateway.engine(port=5006, token_seconds=0.5)
    with ThreadPoolExecutor(count) as pool:
        for answer in [pool.submit(chat, gateway, key, "lone", tokens=tokens) for _number in range(count)]:
            answer.result()


def too_many_at_once(gateway: Gateway) -> None:
    at_once(gateway, 4, SINGLE)


def too_many_for_the_engine(gateway: Gateway) -> None:
    # Four requests run, and four wait. The gateway refuses the others.
    at_once(gateway, 12, KEY)


def too_long_in_the_queue(gateway: Gateway) -> None:
    # An answer takes eight seconds. A request waits in the queue for five at most.
    at_once(gateway, 8, KEY, tokens=16)


def of_an_engine_that_dies(gateway: Gateway) -> None:
    gateway.engine(port=5006, token_seconds=20)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(chat, gateway, model="lone")
        wait_for("the request", lambda: gateway.engine(port=5006)["running"], 20)
        gateway.node.run("systemctl kill --signal KILL fake-one")
        answer.result()


REFUSALS: list[tuple[Callable[[Gateway], None], type[openai.APIStatusError], int, str]] = [
    (lambda gateway: chat(gateway, "a-key-that-nobody-has"), openai.AuthenticationError, 401, "invalid_api_key"),
    (
        lambda gateway: chat(gateway, "narrow-key-90ab4417", "lone"),
        openai.PermissionDeniedError,
        403,
        "model_not_allowed",
    ),
    (lambda gateway: chat(gateway, model="none"), openai.NotFoundError, 404, "model_not_found"),
    (without_a_model, openai.BadRequestError, 400, "model_missing"),
    (of_an_unknown_path, openai.NotFoundError, 404, "unknown_url"),
    (of_another_method, openai.APIStatusError, 405, "method_not_allowed"),
    (too_large, openai.APIStatusError, 413, "request_too_large"),
    (too_often, openai.RateLimitError, 429, "rate_limit_exceeded"),
    (too_many_at_once, openai.RateLimitError, 429, "concurrency_limit_exceeded"),
    (too_many_for_the_engine, openai.InternalServerError, 503, "engines_busy"),
    (too_long_in_the_queue, openai.InternalServerError, 503, "no_engine"),
    (of_an_engine_that_dies, openai.InternalServerError, 502, "engine_failed"),
]
"""A refused request, the client's error, and status and code of the answer."""


@pytest.mark.parametrize(("request_", "kind", "status", "code"), REFUSALS, ids=[code for *_others, code in REFUSALS])
def test_each_refusal_raises_the_error_of_its_status(
    gateway: Gateway,
    request_: Callable[[Gateway], None],
    kind: type[openai.APIStatusError],
    status: int,
    code: str,
) -> None:
    with pytest.raises(kind) as caught:
        request_(gateway)
    error = caught.value
    assert (type(error), error.status_code, error.code) == (kind, status, code)
    # The client reads type and parameter from the body, and the request's id from the header.
    assert error.type and error.param is None and len(error.request_id or "") == 36
    assert status not in (429, 503) or int(error.response.headers["retry-after"]) > 0


def test_a_client_that_repeats_requests_waits_as_the_gateway_asks(gateway: Gateway) -> None:
    """With a limit of two requests at once, four requests succeed."""
    gateway.engine(port=5006, token_seconds=0.2)
    patient = client(gateway, SINGLE, repeats=8)
    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(
            lambda _number: patient.chat.completions.create(model="lone", messages=QUESTION, max_tokens=3), range(4)
        )
        assert {answer.choices[0].message.content for answer in answers} == {"I am lone on 127.0.0.1."}


def test_the_client_reads_a_stream_and_the_list_of_models(gateway: Gateway) -> None:
    asked = client(gateway)
    assert [model.id for model in asked.models.list()] == ["lone", "main", "other", "tiny-a", "tiny-b"]
    parts = list(
        asked.chat.completions.create(
            model="main", messages=QUESTION, max_tokens=4, stream=True, stream_options={"include_usage": True}
        )
    )
    assert parts[-1].usage is not None and parts[-1].usage.completion_tokens == 4
    assert sum(bool(part.choices and part.choices[0].delta.content) for part in parts) == 4
