# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Warm-up prompts of an entry: texts, dictionaries and chats, and every mistake."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.warm_up import (
    mistake,
    read,
    without_chats,
)

CHAT = [{"role": "user", "content": "Hello"}]


def test_a_warm_up_prompt_is_a_text_a_dictionary_or_a_chat() -> None:
    prompts = ["Hello", {"prompt": "Bye", "max-tokens": 5}, {"messages": CHAT}]
    assert mistake(prompts) == ""
    assert read(prompts) == ({"prompt": "Hello"}, {"prompt": "Bye", "max-tokens": 5}, {"messages": CHAT})
    assert read(None) == () and read([5]) == ()
    assert read([{}]) == () and read(["Hello", {"prompt": "Bye", "max-tokens": 0}]) == (), "a mistake is reported"


@pytest.mark.parametrize(
    ("prompts", "words"),
    [
        ("Hello", "must be a list, and not empty"),
        ([], "must be a list, and not empty"),
        ([5], "prompt 1 must be a text, or a dictionary"),
        (["a", ""], "prompt 2 must be a text, or a dictionary"),
        ([{"prompt": "a", "messages": []}], "prompt 1 must be a text, or a dictionary"),
        (["a", "b", {"text": "a"}], "prompt 3 must be a text, or a dictionary"),
        (
            [{"messages": [{"role": "user"}]}],
            "prompt 1 has messages that are no list of dictionaries with role and content",
        ),
        (["a", {"prompt": "a", "max-tokens": 0}], "prompt 2 has a max-tokens that is not a whole number"),
        ([{"prompt": "a", "max-tokens": True}], "prompt 1 has a max-tokens that is not a whole number"),
    ],
)
def test_a_wrong_warm_up_prompt_is_a_mistake_with_its_number(prompts: Any, words: str) -> None:
    assert mistake(prompts).startswith(words)


def test_messages_are_a_mistake_for_a_model_that_does_not_generate() -> None:
    prompts = read(["Hello", {"messages": CHAT}])
    assert list(without_chats(prompts, ("embed", "score"))) == [
        "prompt 2 has messages, and the model's tasks are embed, score: write prompt"
    ]
    assert list(without_chats(prompts, ("transcribe",))) == [
        "prompt 2 has messages, and the model's task is transcribe: write prompt"
    ]
    assert list(without_chats(prompts, ("generate", "transcribe"))) == list(without_chats(prompts, ())) == []
