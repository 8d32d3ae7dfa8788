# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden prompts: questions whose answers are known, asked before an engine gets clients. Private to the collection."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..adapters.contract import CLASSIFY, EMBED, GENERATE, REWARD, SCORE, TRANSCRIBE, json_body
from . import probe
from .probe import Target, WrongAnswer

TOKENS = 64
"""The most tokens of an answer, unless the golden prompt has its own limit."""

NORM_SHARE = 0.01
"""By what share the norm of a vector may differ: engines compute with 16 bits."""

SHOWN = 300
"""Characters of a wrong answer that are shown."""

ASKED: Mapping[str, tuple[str, ...]] = {
    CLASSIFY: (CLASSIFY, SCORE),
    SCORE: (SCORE,),
    EMBED: (EMBED,),
    GENERATE: (GENERATE,),
    REWARD: (REWARD,),
    TRANSCRIBE: (TRANSCRIBE, GENERATE),
}
"""The tasks by which an engine may be probed, by the task of a golden prompt. A classifier with one class also scores,
and some models that make text also transcribe."""


@dataclass(frozen=True)
class Golden:
    """A prompt, and what its answer must be."""

    prompt: str
    """A text, or the path of a file with speech."""
    expect: str = ""
    """A regular expression that must match in the answer."""
    max_tokens: int = TOKENS
    model: str = ""
    """The LoRA adapter to ask; empty for the model itself."""
    order: tuple[str, ...] = ()
    """Texts, the most similar to the prompt first; or documents, the best first."""
    dimension: int | None = None
    """How many numbers the prompt's vector has."""
    norm: float | None = None
    """The length of the prompt's vector."""
    label: str = ""
    """The class of the prompt."""
    speech: bool = False
    """Whether the prompt is a file with speech, of which `expect` matches the transcription."""
    language: str = ""
    """The language of the speech; empty: the engine finds it, or takes its default."""

    @property
    def step(self) -> str:
        """The name of the step that asks."""
        return f"golden prompt {self.prompt!r}{f' to {self.model}' if self.model else ''}"

    def task(self, probed: str) -> str:
        """The task of the prompt's request to an engine that is probed by the task `probed`."""
        if self.speech:
            return TRANSCRIBE
        if self.expect:
            return GENERATE
        if self.label:
            return CLASSIFY
        return probed if probed in (SCORE, REWARD) and self.dimension is None and self.norm is None else EMBED


def read(entry: Mapping[str, Any]) -> list[Golden]:
    """The golden prompts of a model registry entry that was checked."""
    return [
        Golden(
            prompt=item.get("prompt") or item["audio"],
            expect=item.get("expect", ""),
            max_tokens=item.get("max-tokens", TOKENS),
            model=item.get("model", ""),
            order=tuple(item.get("order", ())),
            dimension=item.get("dimension"),
            norm=item.get("norm"),
            label=item.get("label", ""),
            speech="audio" in item,
            language=item.get("language", ""),
        )
        for item in entry.get("golden-prompts", [])
    ]


def ask(target: Target, item: Golden, timeout: float) -> str:
    """Send a golden prompt, and check its answer. `timeout` limits each read, in seconds.

    Raises WrongAnswer, OSError and HTTPException.
    """
    task = item.task(target.task)
    if target.task not in ASKED[task]:
        raise WrongAnswer(f"is for the task {task}, and the task of this model is {target.task}")
    if task == GENERATE:
        _check_chat(item, target, timeout)
    elif task == TRANSCRIBE:
        _check_speech(item, target, timeout)
    else:
        checks: Mapping[str, Callable[[Golden, Any], None]] = {
            CLASSIFY: _check_label,
            SCORE: _check_order,
            REWARD: _check_order,
            EMBED: _check_vectors,
        }
        _check_answer(item, target, task, checks[task], timeout)
    return f"{item.prompt!r} was answered as expected"


def _check_chat(item: Golden, target: Target, timeout: float) -> None:
    body = {
        "model": item.model or target.served_names[0],
        "messages": [{"role": "user", "content": item.prompt}],
        "max_tokens": item.max_tokens,
        "temperature": 0,
    }
    answer = probe.ask(target, "POST", target.adapter.chat_path, json_body(**body), timeout)
    with another_form(target.adapter.chat_path, answer):
        text = str(answer["choices"][0]["message"].get("content") or "")
    _check_text(item, text)


def _check_speech(item: Golden, target: Target, timeout: float) -> None:
    file, path = Path(item.prompt), target.adapter.requests[TRANSCRIBE].path
    body = target.adapter.transcription(
        item.model or target.served_names[0], file.name, file.read_bytes(), item.language
    )
    answer = probe.ask(target, "POST", path, body, timeout)
    with another_form(path, answer):
        text = str(answer["text"])
    _check_text(item, text)


def _check_text(item: Golden, text: str) -> None:
    if not re.search(item.expect, text):
        raise WrongAnswer(f"answered {text[:SHOWN]!r}, in which {item.expect!r} does not occur")


def _check_answer(
    item: Golden, target: Target, task: str, check: Callable[[Golden, Any], None], timeout: float
) -> None:
    """Ask a question of models that pool. `check` gets the answer in the form of Question.read."""
    question = target.adapter.questions[task]
    body = question.body(item.model or target.served_names[0], item.prompt, item.order)
    answer = probe.ask(target, "POST", question.path, body, timeout)
    with another_form(question.path, answer):
        # An engine may write a number that is not finite as null, which no check accepts.
        check(item, question.read(answer))


@contextmanager
def another_form(path: str, answer: Any) -> Iterator[None]:
    """Reads an answer. Raises WrongAnswer if parts of the answer are missing, or have other types."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise WrongAnswer(f"{path} answers in another form: {str(answer)[:SHOWN]}") from error


def _check_label(item: Golden, label: str) -> None:
    if label != item.label:
        raise WrongAnswer(f"has the label {label!r} instead of {item.label!r}")


def _check_vectors(item: Golden, vectors: Sequence[Sequence[float]]) -> None:
    own, *others = vectors
    length = math.hypot(*own)
    if item.dimension not in (None, len(own)):
        raise WrongAnswer(f"has a vector of {len(own)} numbers instead of {item.dimension}")
    if item.norm is not None and not math.isclose(length, item.norm, rel_tol=NORM_SHARE):
        raise WrongAnswer(f"has a vector of norm {length:.4g} instead of {item.norm:g}")
    if not all(0 < math.hypot(*vector) < math.inf for vector in vectors):
        raise WrongAnswer("has a vector of zeros, or a vector with a number that is not finite")
    _check_order(item, [_similarity(own, other) for other in others])


def _similarity(one: Sequence[float], other: Sequence[float]) -> float:
    """The cosine of the angle between two vectors."""
    return sum(a * b for a, b in zip(one, other, strict=True)) / (math.hypot(*one) * math.hypot(*other))


def _falls(scores: Sequence[float]) -> bool:
    """Whether each score is below the score before it. No comparison with NaN is true."""
    return all(first > second for first, second in itertools.pairwise(scores))


def _check_order(item: Golden, scores: Sequence[float]) -> None:
    # Equal scores have no order.
    if len(scores) != len(item.order) or not _falls(scores):
        shown = ", ".join(f"{text[:SHOWN]!r}: {score:.4g}" for text, score in zip(item.order, scores, strict=False))
        raise WrongAnswer(f"does not order the texts as given. Their scores: {shown or 'none'}")
