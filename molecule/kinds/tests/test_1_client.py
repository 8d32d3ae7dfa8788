# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The official client of OpenAI's API, through the gateway."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import openai
import pytest
from openai import OpenAI

QUESTION: Any = [{"role": "user", "content": "Who are you?"}]

ANSWER = "I am tiny-a."

DIGIT = {
    "type": "object",
    "properties": {"digit": {"type": "integer", "minimum": 0, "maximum": 9}},
    "required": ["digit"],
    "additionalProperties": False,
}


def is_digit(text: str) -> bool:
    """Whether a text is JSON of the schema DIGIT."""
    found = json.loads(text)
    return set(found) == {"digit"} and found["digit"] in range(10)


def test_the_names_of_all_instances_and_models_are_listed(client: OpenAI) -> None:
    names = {
        "main",
        "embed",
        "rank",
        "speech",
        *(f"tiny-{kind}" for kind in ("a", "embed", "legal", "medical", "score", "speech")),
    }
    assert {model.id for model in client.models.list()} == names


@pytest.mark.parametrize("name", ["main", "tiny-a"])
def test_a_chat_is_answered(client: OpenAI, name: str) -> None:
    answer = client.chat.completions.create(model=name, messages=QUESTION, max_tokens=30, temperature=0)
    assert answer.choices[0].message.content == ANSWER and answer.choices[0].finish_reason == "stop"


def test_a_stream_ends_with_its_usage(client: OpenAI) -> None:
    text, used = "", None
    for part in client.chat.completions.create(
        model="main",
        messages=QUESTION,
        max_tokens=30,
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
    ):
        text += (part.choices[0].delta.content or "") if part.choices else ""
        used = part.usage or used
    assert text == ANSWER
    assert used is not None and used.completion_tokens == len(ANSWER) + 1


def test_a_completion_is_answered(client: OpenAI) -> None:
    answer = client.completions.create(model="main", prompt="Who", max_tokens=5, extra_body={"ignore_eos": True})
    assert answer.usage is not None and answer.usage.completion_tokens == 5


def test_a_completion_as_a_stream_ends_with_its_usage(client: OpenAI) -> None:
    parts = list(
        client.completions.create(
            model="main", prompt="Who", max_tokens=5, stream=True, stream_options={"include_usage": True}, temperature=0
        )
    )
    assert parts[-1].usage is not None and 0 < parts[-1].usage.completion_tokens <= 5
    assert [part for part in parts if part.choices and part.choices[0].finish_reason]


def test_a_response_as_a_stream_ends_with_its_usage(client: OpenAI) -> None:
    text, last = "", None
    for event in client.responses.create(
        model="main", input="Who are you?", max_output_tokens=30, temperature=0, stream=True
    ):
        text += event.delta if event.type == "response.output_text.delta" else ""
        last = event
    assert text == ANSWER and last is not None and last.type == "response.completed"
    assert last.response.usage is not None and last.response.usage.output_tokens == len(ANSWER) + 1


def test_a_response_is_answered(client: OpenAI) -> None:
    answer = client.responses.create(model="main", input="Who are you?", max_output_tokens=30, temperature=0)
    assert answer.output_text == ANSWER


def test_an_answer_keeps_to_a_schema(client: OpenAI) -> None:
    answer = client.chat.completions.create(
        model="main",
        messages=QUESTION,
        max_tokens=60,
        response_format={"type": "json_schema", "json_schema": {"name": "digit", "schema": DIGIT}},
    )
    assert is_digit(answer.choices[0].message.content or "")


def test_a_tool_is_called(client: OpenAI) -> None:
    answer = client.chat.completions.create(
        model="main",
        messages=QUESTION,
        max_tokens=60,
        tools=[{"type": "function", "function": {"name": "dial", "parameters": DIGIT}}],
        tool_choice={"type": "function", "function": {"name": "dial"}},
    )
    (call,) = answer.choices[0].message.tool_calls or []
    assert call.type == "function" and call.function.name == "dial"
    # A strict function keeps to its schema, but this model then writes blanks until max_tokens.
    json.loads(call.function.arguments)


def test_a_completion_has_log_probabilities(client: OpenAI) -> None:
    answer = client.completions.create(
        model="main", prompt="Who", max_tokens=3, logprobs=2, temperature=0, extra_body={"ignore_eos": True}
    )
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None and logprobs.token_logprobs is not None and logprobs.top_logprobs is not None
    assert len(logprobs.token_logprobs) == 3 and all(len(top) >= 2 for top in logprobs.top_logprobs)
    assert all(number is not None and number <= 0 for number in logprobs.token_logprobs)


def test_a_chat_has_log_probabilities(client: OpenAI) -> None:
    answer = client.chat.completions.create(
        model="main", messages=QUESTION, max_tokens=3, temperature=0, logprobs=True, top_logprobs=2
    )
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None and logprobs.content is not None
    assert [len(token.top_logprobs) for token in logprobs.content] == [2, 2, 2]
    assert logprobs.content[0].token == "I" and -0.5 < logprobs.content[0].logprob <= 0


@pytest.mark.parametrize(
    ("request_", "kind", "code", "words"),
    [
        (
            {"model": "none"},
            openai.NotFoundError,
            "model_not_found",
            "Known: embed, main, rank, speech, tiny-a, ",
        ),
        ({"temperature": -3}, openai.BadRequestError, 400, "temperature must be non-negative"),
        (
            {"messages": [{"role": "user", "content": "x" * 2000}]},
            openai.BadRequestError,
            400,
            "maximum context length is 512 tokens",
        ),
    ],
)
def test_a_wrong_request_gets_the_error_of_its_kind(
    client: OpenAI, request_: dict[str, Any], kind: type[openai.APIStatusError], code: str | int, words: str
) -> None:
    with pytest.raises(kind, match=words) as caught:
        client.chat.completions.create(**{"model": "main", "messages": QUESTION, **request_})
    assert str(caught.value.code) == str(code)


def test_an_unknown_a_narrow_and_a_limited_key_get_different_errors(client_of: Callable[[str], OpenAI]) -> None:
    def ask(key: str) -> str | None:
        answer = client_of(key).chat.completions.create(model="main", messages=QUESTION, max_tokens=30, temperature=0)
        return answer.choices[0].message.content

    with pytest.raises(openai.AuthenticationError) as unknown:
        ask("a-key-that-nobody-has")
    assert unknown.value.code == "invalid_api_key"
    with pytest.raises(openai.PermissionDeniedError) as narrow:
        ask("kinds-elsewhere-key-90ab")
    assert narrow.value.code == "model_not_allowed"
    assert ask("kinds-slow-key-5d0e61") == ANSWER
    with pytest.raises(openai.RateLimitError) as limited:
        ask("kinds-slow-key-5d0e61")
    assert limited.value.code == "rate_limit_exceeded" and int(limited.value.response.headers["retry-after"]) > 0
