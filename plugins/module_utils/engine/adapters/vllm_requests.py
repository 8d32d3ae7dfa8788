# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The requests to vLLM for each task: the smallest one, and those of golden prompts. Private to the collection; pure.

Sources: vLLM 0.32.0, protocol.py of each task below vllm/entrypoints/pooling and vllm/entrypoints/speech_to_text.
"""

from __future__ import annotations

import io
import math
import wave
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from .contract import (
    CLASSIFY,
    EMBED,
    GENERATE,
    REWARD,
    SCORE,
    TOKEN_CLASSIFY,
    TOKEN_EMBED,
    TRANSCRIBE,
    Body,
    Question,
    Request,
    json_body,
)

_POOLING = "/pooling"

_BOUNDARY = "baremetal-inference-probe"

_RATE = 16000
"""Samples per second: the rate that speech models are made for."""

_SECONDS = 1

_QUIET = 0.01
"""The share of the full volume that the probe's sound has: almost silence, in which the model hears few words."""


def _completion(model: str, text: str) -> Body:
    return json_body(model=model, prompt=text, max_tokens=1, temperature=0)


def _no_token(answer: Mapping[str, Any]) -> str:
    choices, usage = answer.get("choices"), answer.get("usage")
    tokens = usage.get("completion_tokens") if isinstance(usage, dict) else None
    one = isinstance(choices, list) and len(choices) == 1 and tokens == 1
    return "" if one else "does not answer exactly one token"


def _input(model: str, text: str) -> Body:
    return json_body(model=model, input=text)


def _embedding(model: str, text: str) -> Body:
    return json_body(model=model, input=text, encoding_format="float")


def _score(model: str, text: str) -> Body:
    return json_body(model=model, text_1=text, text_2=text)


def _sound(text: str) -> bytes:
    """A WAV file. Each text makes another sound, so that no cache has the file."""
    loudest = _QUIET * 2**15
    tones = text.encode()
    frames = bytearray()
    for sample in range(_RATE * _SECONDS):
        tone = tones[sample * len(tones) // (_RATE * _SECONDS)]
        frames += round(loudest * math.sin(2 * math.pi * 4 * tone * sample / _RATE)).to_bytes(2, "little", signed=True)
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(_RATE)
        writer.writeframes(bytes(frames))
    return file.getvalue()


def _form(fields: Mapping[str, str], name: str, content: bytes) -> Body:
    """A form with a file."""
    parts = [
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
        for key, value in fields.items()
    ]
    # A quotation mark would end the name. The engine recognises the file's format by its content.
    file = f'form-data; name="file"; filename="{quote(name)}"\r\nContent-Type: application/octet-stream'
    parts += [f"--{_BOUNDARY}\r\nContent-Disposition: {file}\r\n\r\n".encode(), content]
    parts.append(f"\r\n--{_BOUNDARY}--\r\n".encode())
    return Body(b"".join(parts), f"multipart/form-data; boundary={_BOUNDARY}")


def _speech(model: str, text: str) -> Body:
    return _form({"model": model, "temperature": "0", "max_completion_tokens": "1"}, "probe.wav", _sound(text))


def transcription(model: str, name: str, content: bytes, language: str) -> Body:
    """The body of a transcription of a file."""
    fields = {"model": model, "temperature": "0", **({"language": language} if language else {})}
    return _form(fields, name, content)


def _no_text(answer: Mapping[str, Any]) -> str:
    return "" if isinstance(answer.get("text"), str) else "answers no text"


def _numbers(key: str, mistake: str) -> Callable[[Mapping[str, Any]], str]:
    """A check that `key` of the only item of `data` has numbers, and none that is infinite or not a number."""

    def check(answer: Mapping[str, Any]) -> str:
        data = answer.get("data")
        item = data[0] if isinstance(data, list) and len(data) == 1 else None
        found = _flat(item.get(key) if isinstance(item, dict) else None)
        return "" if found and all(map(_finite, found)) else mistake

    return check


def _flat(value: Any) -> list[Any]:
    if isinstance(value, list):
        return [number for each in value for number in _flat(each)]
    return [value]


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _pooling(result: str) -> Request:
    """A request to the path that answers each task of a model that pools."""
    mistake = _numbers("data", f"answers no {result} of finite numbers")
    return Request(_POOLING, _input, mistake, noun="a pooling request", result=result)


REQUESTS: Mapping[str, Request] = {
    GENERATE: Request("/v1/completions", _completion, _no_token, noun="a completion", result="token"),
    TRANSCRIBE: Request(
        "/v1/audio/transcriptions", _speech, _no_text, noun="a transcription", result="text", names_model=False
    ),
    EMBED: Request(
        "/v1/embeddings",
        _embedding,
        _numbers("embedding", "answers no embedding of finite numbers"),
        noun="an embedding request",
        result="embedding",
    ),
    SCORE: Request(
        "/v1/score",
        _score,
        _numbers("score", "answers no score that is a finite number"),
        noun="a score request",
        result="score",
    ),
    CLASSIFY: Request(
        "/classify",
        _input,
        _numbers("probs", "answers no class with finite numbers"),
        noun="a classification request",
        result="class",
    ),
    REWARD: _pooling("reward"),
    TOKEN_EMBED: _pooling("embedding"),
    TOKEN_CLASSIFY: _pooling("class"),
}
"""The smallest request of each task."""


def _embeddings(model: str, prompt: str, texts: Sequence[str]) -> Body:
    return json_body(model=model, input=[prompt, *texts], encoding_format="float")


def _scores(model: str, prompt: str, texts: Sequence[str]) -> Body:
    return json_body(model=model, text_1=prompt, text_2=list(texts))


def _in_order(key: str) -> Callable[[Mapping[str, Any]], list[Any]]:
    """Reads `key` of all items of `data`, in the order of the inputs."""

    def read(answer: Mapping[str, Any]) -> list[Any]:
        return [item[key] for item in sorted(answer["data"], key=lambda item: int(item["index"]))]

    return read


def _rewards(model: str, prompt: str, texts: Sequence[str]) -> Body:
    return json_body(model=model, input=[f"{prompt}{text}" for text in texts])


def _reward(answer: Mapping[str, Any]) -> list[Any]:
    """The last number of each text: models that judge each step of an answer have several."""
    return [_flat(numbers)[-1] for numbers in _in_order("data")(answer)]


def _label(answer: Mapping[str, Any]) -> str:
    return str(answer["data"][0]["label"])


QUESTIONS: Mapping[str, Question] = {
    EMBED: Question("/v1/embeddings", _embeddings, _in_order("embedding")),
    SCORE: Question("/v1/score", _scores, _in_order("score")),
    REWARD: Question(_POOLING, _rewards, _reward),
    CLASSIFY: Question("/classify", lambda model, prompt, _texts: _input(model, prompt), _label),
}
"""The requests of golden prompts, by task."""

PATHS: Mapping[str, tuple[str, ...]] = {
    GENERATE: ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"),
    TRANSCRIBE: ("/v1/audio/transcriptions", "/v1/audio/translations"),
    EMBED: ("/v1/embeddings", "/v2/embed", _POOLING),
    SCORE: ("/v1/rerank", "/v1/score", "/rerank", "/score", "/v2/rerank"),
    CLASSIFY: ("/classify", _POOLING),
    **dict.fromkeys((REWARD, TOKEN_EMBED, TOKEN_CLASSIFY), (_POOLING,)),
}
"""The paths for clients, by task. Source: the functions of these paths below vllm/entrypoints."""
