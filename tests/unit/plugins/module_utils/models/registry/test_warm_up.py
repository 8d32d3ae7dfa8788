# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Warm-up prompts of an entry: texts, prompts and chats, and every mistake."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.warm_up import mistake, read

CHAT = [{"role": "user", "content": "Hello"}]


def test_texts_and_dictionaries() -> None:
    prompts = ["Hello", {"prompt": "Bye", "max-tokens": 5}, {"messages": CHAT}]
    assert mistake(prompts) == ""
    assert read(prompts) == ({"prompt": "Hello"}, {"prompt": "Bye", "max-tokens": 5}, {"messages": CHAT})
    assert read(None) == () and read([5]) == ()
    assert read([{}]) == () and read(["Hello", {"prompt": "Bye", "max-tokens": 0}]) == (), "a mistake is reported"


@pytest.mark.parametrize(
    ("prompts", "words"),
    [
        ("Hello", "must be a list of texts"),
        ([], "must be a list of texts"),
        ([5], "must be a list of texts"),
        ([""], "must be a list of texts"),
        ([{"prompt": "a", "messages": []}], "must be a list of texts"),
        ([{"text": "a"}], "must be a list of texts"),
        ([{"messages": [{"role": "user"}]}], "no list of dictionaries with role and content"),
        ([{"prompt": "a", "max-tokens": 0}], "max-tokens that is not a whole number"),
        ([{"prompt": "a", "max-tokens": True}], "max-tokens that is not a whole number"),
    ],
)
def test_mistakes(prompts: Any, words: str) -> None:
    assert words in mistake(prompts)
