# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The forms of golden prompts, and their tasks."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.registry import golden

TEXT = {"prompt": "2 + 2 =", "expect": "4"}
ORDER = {"prompt": "a cat", "order": ["a kitten", "a car"]}
VECTOR = {**ORDER, "dimension": 128, "norm": 1}
LABEL = {"prompt": "I like it", "label": "positive"}
SPEECH = {"audio": "/srv/talk.wav", "expect": "hello"}
FORMS: list[dict[str, Any]] = [TEXT, ORDER, VECTOR, LABEL, SPEECH]


@pytest.mark.parametrize(
    "item",
    [
        *FORMS,
        {**TEXT, "max-tokens": 4},
        {"prompt": "a", "norm": 0.5},
        {"prompt": "a", **LABEL},
        {**SPEECH, "language": "en"},
    ],
)
def test_each_form_of_a_golden_prompt_is_accepted(item: dict[str, Any]) -> None:
    assert golden.mistake([TEXT, item]) == ""
    assert golden.sound([TEXT, item]) == (TEXT, item)


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"prompt": "a"}, golden.ITEM),
        ({"expect": "a"}, golden.ITEM),
        ({"prompt": "a", "max-tokens": 4}, golden.ITEM),
        ({**TEXT, "order": ["a", "b"]}, golden.ITEM),
        ({**LABEL, "norm": 1}, golden.ITEM),
        ({**TEXT, "expect": ""}, golden.ITEM),
        ({**TEXT, "expect": "("}, "expects '(', which is not a regular expression"),
        ({**TEXT, "expect": "a{99999999999}"}, "which is not a regular expression: the repetition number is too large"),
        ({**TEXT, "max-tokens": True}, "has a max-tokens that is not a whole number from 1"),
        ({**VECTOR, "dimension": 0}, "has a dimension that is not a whole number from 1"),
        *(
            ({**VECTOR, "norm": norm}, "has a norm that is not a number above 0")
            for norm in (0, math.inf, -math.inf, math.nan, 10**400, True)
        ),
        ({**ORDER, "order": ["a"]}, "at least two different texts"),
        ({**ORDER, "order": ["a", "a"]}, "at least two different texts"),
        *(({**LABEL, "label": label}, "has a label that is not a text, or is empty") for label in (1, "")),
        ({**TEXT, "prompt": ""}, golden.ITEM),
        ({**TEXT, **SPEECH}, golden.ITEM),
        ({"audio": "/srv/talk.wav"}, golden.ITEM),
        ({**SPEECH, "max-tokens": 4}, golden.ITEM),
        ({**SPEECH, "audio": "talk.wav"}, "has an audio that is not the absolute path of a file on the node"),
        ({**SPEECH, "language": 5}, "has a language that is not a text, or is empty"),
        ("2 + 2 =", golden.ITEM),
    ],
)
def test_a_wrong_golden_prompt_is_a_mistake_with_its_number(item: Any, words: str) -> None:
    found = golden.mistake([TEXT, item])
    assert found.startswith("prompt 2 ") and words in found
    assert golden.mistake([item, "another"]).startswith("prompt 1 ")
    assert golden.sound([TEXT, item]) == golden.sound(None) == ()
    assert golden.mistake([]) == golden.mistake("x") == golden.FORM


@pytest.mark.parametrize(
    ("tasks", "right"),
    [
        (("generate",), [TEXT]),
        (("generate", "transcribe"), [TEXT, SPEECH]),
        (("transcribe",), [SPEECH]),
        (("embed", "score"), [ORDER, VECTOR]),
        (("score", "classify"), [ORDER, LABEL]),
        (("classify",), [LABEL]),
        (("reward",), [ORDER]),
        (("token-embed",), []),
        ((), FORMS),
    ],
)
def test_every_golden_prompt_of_another_task_is_found(tasks: tuple[str, ...], right: list[dict[str, Any]]) -> None:
    every = [{**item, "audio" if "audio" in item else "prompt": str(number)} for number, item in enumerate(FORMS)]
    left = [str(number) for number, plain in enumerate(FORMS) if plain not in right]
    assert [name for name, _words in golden.wrong_tasks(every, tasks)] == left


def test_the_message_about_a_wrong_task_names_the_right_keys() -> None:
    ((prompt, words),) = golden.wrong_tasks([TEXT], ("embed", "score"))
    assert prompt == "2 + 2 ="
    assert words == (
        "is a golden prompt for the task generate, and the model's tasks are embed, score: use order, dimension or norm"
    )
    ((name, words),) = golden.wrong_tasks([SPEECH], ("generate",))
    assert name == "/srv/talk.wav"
    assert words.endswith("for the task transcribe, and the model's task is generate: use prompt and expect")
    ((_name, words),) = golden.wrong_tasks([ORDER], ("token-embed",))
    assert words.endswith(
        "for the task embed or score or reward, and the model's task is token-embed: remove it, because this task has"
        " no golden prompts"
    )
