# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A system prompt as text, and as a literal that a template reads as exactly this text."""

from __future__ import annotations

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.models.prompts.text import clean, hidden, literal


@given(st.text())
def test_a_literal_is_plain_and_renders_as_exactly_the_text(text: str) -> None:
    source = literal(text)
    assert source.isascii()
    assert not set(source[1:-1]) & set("{}%#'\"\r\n")
    assert jinja2.Environment().from_string("{{ " + source + " }}").render() == text


@pytest.mark.parametrize(("text", "message"), [(" \n", "is empty"), ("a\ud800", r"U\+D800\) at position 1")])
def test_an_empty_prompt_and_half_a_character_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        clean(text)


def test_white_space_around_a_prompt_is_left_out_because_templates_strip_it() -> None:
    assert clean("\n  Be kind.\n  Always.\n") == "Be kind.\n  Always."


@pytest.mark.parametrize("word", ["developer", "system"])
def test_a_hidden_word_renders_as_the_word_and_is_not_in_the_source(word: str) -> None:
    source = hidden(word)
    assert word not in source
    assert jinja2.Environment().from_string("{{ " + source + " }}").render() == word


@given(st.text())
def test_any_text_but_white_space_is_a_prompt(text: str) -> None:
    if text.strip():
        assert clean(text) == text.strip()
    else:
        with pytest.raises(ValueError, match="is empty"):
            clean(text)
