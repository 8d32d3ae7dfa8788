# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden prompts of each task, and the answers that they refuse."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import golden, probe
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe.golden import Golden
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe.probe import Target, WrongAnswer

ORDER = ("a kitten", "a dog", "a car")

VECTORS = [[1.0, 0.0], [0.9, 0.1], [0.5, 0.5], [0.0, 1.0]]


class Engine:
    """Answers in the engine's form, out of order as a batch may be."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.data: list[dict[str, Any]] = []
        self.sent = b""
        self.chat = "It is Paris."
        monkeypatch.setattr(probe, "ask", self.answer)

    def answer(self, _target: Target, method: str, path: str, body: Any, _timeout: float) -> dict[str, Any]:
        assert method == "POST"
        if path.endswith("/transcriptions"):
            self.sent = body.data
            return {"text": "Hello, world."}
        self.asked.append((path, json.loads(body.data)))
        if path.endswith("/chat/completions"):
            return {"choices": [{"message": {"content": self.chat}}]}
        return {"data": list(reversed(self.data))}

    def gives(self, key: str, values: list[Any]) -> None:
        self.data = [{"index": index, key: value} for index, value in enumerate(values)]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    return Engine(monkeypatch)


def ask(item: Golden, task: str) -> str:
    return golden.ask(Target("127.0.0.1", 5005, ["main", "tiny"], task=task), item, 5)


def test_the_golden_prompts_of_an_entry_are_read() -> None:
    entry = {
        "golden-prompts": [
            {"prompt": "a", "expect": "b"},
            {"prompt": "c", "expect": "d", "max-tokens": 5, "model": "legal"},
            {"prompt": "e", "order": ["f", "g"], "dimension": 2, "norm": 1},
            {"prompt": "h", "label": "i"},
            {"audio": "/j.wav", "expect": "k", "language": "en"},
        ]
    }
    assert golden.read(entry) == [
        Golden("a", "b"),
        Golden("c", "d", 5, "legal"),
        Golden("e", order=("f", "g"), dimension=2, norm=1),
        Golden("h", label="i"),
        Golden("/j.wav", "k", speech=True, language="en"),
    ]
    assert golden.read({}) == []
    assert Golden("Where?", "x", model="legal").step == "golden prompt 'Where?' to legal"


def test_a_text_must_match_the_expression(engine: Engine) -> None:
    assert ask(Golden("Where?", "(?i)paris", 7), "generate") == "'Where?' was answered as expected"
    ((path, body),) = engine.asked
    assert (path, body["model"], body["max_tokens"]) == ("/v1/chat/completions", "main", 7)
    with pytest.raises(WrongAnswer, match=r"answered 'It is Paris\.', in which 'London' does not occur"):
        ask(Golden("Where?", "London"), "generate")


def test_vectors_must_have_the_order_the_dimension_and_the_norm(engine: Engine) -> None:
    engine.gives("embedding", VECTORS)
    ask(Golden("a cat", order=ORDER, dimension=2, norm=1, model="legal"), "embed")
    ((path, body),) = engine.asked
    assert (path, body["model"], body["input"]) == ("/v1/embeddings", "legal", ["a cat", *ORDER])
    for item, words in (
        (Golden("a", order=ORDER, dimension=3), "has a vector of 2 numbers instead of 3"),
        (Golden("a", order=ORDER, norm=1.02), "has a vector of norm 1 instead of 1.02"),
    ):
        with pytest.raises(WrongAnswer, match=words):
            ask(item, "embed")
    # Without the norm, the length of a vector does not count.
    engine.gives("embedding", [[10.0, 0.0], *VECTORS[1:]])
    ask(Golden("a", order=ORDER), "embed")
    engine.gives("embedding", [VECTORS[0], VECTORS[3], VECTORS[1], VECTORS[2]])
    with pytest.raises(WrongAnswer, match=r"order the texts as given\. Their scores: 'a kitten': 0, 'a dog': 0.99"):
        ask(Golden("a", order=ORDER), "embed")
    engine.gives("embedding", [[0.0, 0.0], *VECTORS[1:]])
    with pytest.raises(WrongAnswer, match="has a vector of zeros"):
        ask(Golden("a", order=ORDER), "embed")


@pytest.mark.parametrize("number", [float("inf"), float("nan"), 0.0])
def test_a_vector_without_a_direction_is_a_wrong_answer(engine: Engine, number: float) -> None:
    engine.gives("embedding", [[number, 0.0]])
    with pytest.raises(WrongAnswer, match="has a vector of zeros, or a vector with a number that is not finite"):
        ask(Golden("a", dimension=2), "embed")


def test_scores_must_fall_in_the_given_order(engine: Engine) -> None:
    engine.gives("score", [0.9, 0.5, 0.1])
    ask(Golden("a cat", order=ORDER), "score")
    ((path, body),) = engine.asked
    assert (path, body["text_1"], body["text_2"]) == ("/v1/score", "a cat", list(ORDER))
    for scores in ([0.5, 0.9, 0.1], [0.5, 0.5, 0.1], [0.9, 0.5]):
        engine.gives("score", scores)
        with pytest.raises(WrongAnswer, match=f"does not order the texts as given. Their scores: .*{scores[0]}"):
            ask(Golden("a cat", order=ORDER), "score")


def test_rewards_must_fall_in_the_given_order(engine: Engine) -> None:
    engine.gives("data", [[0.9], [[0.8, 0.1], [0.2, 0.5]], [-1.0]])
    ask(Golden("a cat: ", order=ORDER), "reward")
    ((path, body),) = engine.asked
    assert (path, body["input"]) == ("/pooling", [f"a cat: {text}" for text in ORDER])
    engine.gives("data", [[0.9], [[0.8, 0.1], [0.2, 0.95]], [-1.0]])
    with pytest.raises(WrongAnswer, match=r"does not order the texts as given\. Their scores: 'a kitten': 0\.9"):
        ask(Golden("a cat: ", order=ORDER), "reward")
    engine.gives("data", [[]])
    with pytest.raises(WrongAnswer, match="/pooling answers in another form"):
        ask(Golden("a cat: ", order=ORDER), "reward")


@pytest.mark.parametrize("task", ["transcribe", "generate"])
def test_a_transcription_must_match_the_expression(engine: Engine, tmp_path: Path, task: str) -> None:
    file = tmp_path / "talk.wav"
    file.write_bytes(b"RIFF sound")
    item = Golden(str(file), "(?i)hello", speech=True, language="en")
    assert ask(item, task) == f"'{file}' was answered as expected"
    for part in (b'name="model"\r\n\r\nmain\r\n', b'name="language"\r\n\r\nen\r\n', b'"talk.wav"', b"RIFF sound"):
        assert part in engine.sent
    with pytest.raises(WrongAnswer, match=r"answered 'Hello, world\.', in which 'Bye' does not occur"):
        ask(Golden(str(file), "Bye", speech=True), task)
    file.unlink()
    with pytest.raises(FileNotFoundError):
        ask(item, task)


@pytest.mark.parametrize("task", ["classify", "score"])
def test_the_label_must_be_the_expected_label(engine: Engine, task: str) -> None:
    engine.gives("label", ["positive"])
    ask(Golden("I like it", label="positive"), task)
    assert engine.asked == [("/classify", {"model": "main", "input": "I like it"})]
    with pytest.raises(WrongAnswer, match="has the label 'positive' instead of 'negative'"):
        ask(Golden("I like it", label="negative"), task)


@pytest.mark.parametrize(
    ("item", "task", "words"),
    [
        (Golden("a", "b"), "embed", "is for the task generate, and the task of this model is embed"),
        (Golden("a", order=ORDER), "generate", "is for the task embed, and the task of this model is generate"),
        (Golden("a", dimension=2), "score", "is for the task embed, and the task of this model is score"),
        (Golden("/a", "b", speech=True), "embed", "is for the task transcribe, and the task of this model is embed"),
        (Golden("a", label="b"), "embed", "is for the task classify, and the task of this model is embed"),
    ],
)
def test_a_golden_prompt_for_another_task_is_not_sent(engine: Engine, item: Golden, task: str, words: str) -> None:
    with pytest.raises(WrongAnswer, match=words):
        ask(item, task)
    assert engine.asked == []


@pytest.mark.parametrize("item", [{"object": "x"}, {"index": math.inf, "score": 0.5}])
def test_an_answer_of_another_form_is_a_wrong_answer(engine: Engine, item: dict[str, Any]) -> None:
    engine.data = [item]
    with pytest.raises(WrongAnswer, match=r"/v1/score answers in another form: \{'data'"):
        ask(Golden("a", order=ORDER), "score")


@pytest.mark.parametrize(
    ("task", "key", "values"),
    [
        ("score", "score", [None, 0.5, 0.1]),
        ("reward", "data", [[0.9], [None], [0.1]]),
        ("embed", "embedding", [[1.0, None], *VECTORS[1:]]),
        ("embed", "embedding", ["AACAPwAAAAA=", *VECTORS[1:]]),
        ("embed", "embedding", [[1.0], *VECTORS[1:]]),
        ("embed", "embedding", []),
    ],
)
def test_numbers_of_another_form_are_a_wrong_answer(engine: Engine, task: str, key: str, values: list[Any]) -> None:
    engine.gives(key, values)
    with pytest.raises(WrongAnswer, match=r" answers in another form: \{'data'"):
        ask(Golden("a", order=ORDER), task)


@pytest.mark.parametrize(
    "answer",
    [{}, {"choices": []}, {"choices": [{}]}, {"choices": None}, {"choices": ["x"]}, {"choices": [{"message": None}]}],
)
def test_a_chat_answer_of_another_form_is_a_wrong_answer(
    monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any]
) -> None:
    monkeypatch.setattr(probe, "ask", lambda *_given: answer)
    with pytest.raises(WrongAnswer, match=r"/v1/chat/completions answers in another form: \{"):
        ask(Golden("Where?", "Paris"), "generate")


def test_scores_that_are_not_numbers_have_no_order() -> None:
    nan = float("nan")
    assert golden._falls([2.0, 1.0]) and not golden._falls([1.0, 1.0])
    assert not golden._falls([nan, nan]) and not golden._falls([2.0, nan])
