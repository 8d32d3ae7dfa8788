# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The smallest request of each task, and answers that are wrong."""

from __future__ import annotations

import email
import email.policy
import io
import json
import wave
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.adapters.contract import (
    CLASSIFY,
    EMBED,
    GENERATE,
    REWARD,
    SCORE,
    TOKEN_CLASSIFY,
    TOKEN_EMBED,
    TRANSCRIBE,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.adapters.vllm_requests import (
    PATHS,
    REQUESTS,
    transcription,
)

RIGHT: dict[str, dict[str, Any]] = {
    GENERATE: {"choices": [{"text": "x"}], "usage": {"completion_tokens": 1}},
    TRANSCRIBE: {"text": ""},
    EMBED: {"data": [{"embedding": [0.1, -2]}]},
    SCORE: {"data": [{"score": 0.5}]},
    CLASSIFY: {"data": [{"label": "LABEL_0", "probs": [0.4, 0.6]}]},
    REWARD: {"data": [{"data": [0.1]}]},
    TOKEN_EMBED: {"data": [{"data": [[0.1, 0.2], [0.3, 0.4]]}]},
    TOKEN_CLASSIFY: {"data": [{"data": [[0.1], [0.3]]}]},
}


@pytest.mark.parametrize(
    ("task", "path", "body"),
    [
        (GENERATE, "/v1/completions", {"model": "m", "prompt": "unique", "max_tokens": 1, "temperature": 0}),
        (EMBED, "/v1/embeddings", {"model": "m", "input": "unique", "encoding_format": "float"}),
        (SCORE, "/v1/score", {"model": "m", "text_1": "unique", "text_2": "unique"}),
        (CLASSIFY, "/classify", {"model": "m", "input": "unique"}),
        (REWARD, "/pooling", {"model": "m", "input": "unique"}),
        (TOKEN_EMBED, "/pooling", {"model": "m", "input": "unique"}),
        (TOKEN_CLASSIFY, "/pooling", {"model": "m", "input": "unique"}),
    ],
)
def test_each_task_has_its_own_request(task: str, path: str, body: dict[str, Any]) -> None:
    request = REQUESTS[task]
    made = request.body("m", "unique")
    assert (request.path, json.loads(made.data), made.content_type) == (path, body, "application/json")
    assert request.names_model


def test_speech_is_a_form_with_a_sound_of_one_second() -> None:
    made = REQUESTS[TRANSCRIBE].body("m", "0123456789ab probe")
    parsed = email.message_from_bytes(
        f"Content-Type: {made.content_type}\r\n\r\n".encode() + made.data, policy=email.policy.default
    )
    parts = {str(part.get_param("name", header="content-disposition")): part for part in parsed.iter_parts()}
    fields = {name: part.get_content().strip() for name, part in parts.items() if name != "file"}
    assert fields == {"model": "m", "temperature": "0", "max_completion_tokens": "1"}
    file = parts["file"].get_payload(decode=True)
    assert isinstance(file, bytes)
    with wave.open(io.BytesIO(file)) as sound:
        assert (sound.getnchannels(), sound.getframerate(), sound.getnframes()) == (1, 16000, 16000)
    other = REQUESTS[TRANSCRIBE].body("m", "ba9876543210 probe")
    assert other.data != made.data, "two probes must not send the same sound: a cache could answer"


def test_a_file_is_sent_as_a_form_with_its_language() -> None:
    made = transcription("m", 'a "talk".wav', b"\r\nRIFF", "de")
    head = f"Content-Type: {made.content_type}\r\n\r\n".encode()
    parsed = email.message_from_bytes(head + made.data, policy=email.policy.default)
    *fields, file = parsed.iter_parts()
    names = [str(part.get_param("name", header="content-disposition")) for part in fields]
    assert dict(zip(names, [part.get_content().strip() for part in fields], strict=True)) == {
        "model": "m",
        "temperature": "0",
        "language": "de",
    }
    assert file.get_payload(decode=True) == b"\r\nRIFF" and file.get_filename() == "a%20%22talk%22.wav"
    assert b"language" not in transcription("m", "a.wav", b"x", "").data


def test_every_request_has_a_path_of_its_task() -> None:
    assert PATHS.keys() == REQUESTS.keys()
    assert [task for task, request in REQUESTS.items() if request.path not in PATHS[task]] == []


@pytest.mark.parametrize("task", RIGHT)
def test_the_right_answer_of_each_task_has_no_mistake(task: str) -> None:
    assert REQUESTS.keys() == RIGHT.keys()
    assert REQUESTS[task].mistake(RIGHT[task]) == ""


@pytest.mark.parametrize(
    ("task", "answer", "mistake"),
    [
        (GENERATE, {"choices": [], "usage": {"completion_tokens": 1}}, "does not answer exactly one token"),
        (
            GENERATE,
            {"choices": [{"text": "x"}], "usage": {"completion_tokens": 2}},
            "does not answer exactly one token",
        ),
        (TRANSCRIBE, {"text": None}, "answers no text"),
        (EMBED, {"data": [{"embedding": []}]}, "answers no embedding of finite numbers"),
        (EMBED, {"data": [{"embedding": [0.1, float("nan")]}]}, "answers no embedding of finite numbers"),
        (EMBED, {"data": [{"embedding": [1.0]}] * 2}, "answers no embedding of finite numbers"),
        (SCORE, {"data": [{"score": None}]}, "answers no score that is a finite number"),
        (SCORE, {"data": [{"score": float("inf")}]}, "answers no score that is a finite number"),
        (CLASSIFY, {"data": [{"probs": [True]}]}, "answers no class with finite numbers"),
        (REWARD, {"data": [3]}, "answers no reward of finite numbers"),
        (TOKEN_EMBED, {}, "answers no embedding of finite numbers"),
    ],
)
def test_each_mistake_of_an_answer_is_named(task: str, answer: dict[str, Any], mistake: str) -> None:
    assert REQUESTS[task].mistake(answer) == mistake
