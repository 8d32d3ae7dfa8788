# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rendering a chat template as the engine does."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.prompts.rendering import (
    RenderError,
    renderer,
    special_tokens,
)

ASKED = [{"role": "user", "content": "Grüße"}]


def test_a_template_gets_messages_tools_and_special_tokens() -> None:
    template = "{{ bos_token }}{{ messages[0].content }}{{ tools | tojson }}{{ documents }}{{ add_generation_prompt }}"
    assert renderer({"bos_token": "<s>"})(template, ASKED, [{"ä": 1}]) == '<s>Grüße[{"ä": 1}]NoneTrue'


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{% if true %}\na{% endif %}", "a"),
        ("  {% if true %}a{% endif %}", "a"),
        ("{% generation %}a{% endgeneration %}b", "ab"),
        ("{% for x in [1, 2, 3] %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}", "1"),
        ("{{ strftime_now('%d %b %Y') }}", "01 Jan 2026"),
        ("{{ {'b': 1, 'a': '<ü>'} | tojson }}", '{"b": 1, "a": "<ü>"}'),
        ("{{ {'b': 1, 'a': 2} | tojson(indent=1, sort_keys=true) }}", '{\n "a": 2,\n "b": 1\n}'),
    ],
)
def test_a_template_is_rendered_as_transformers_does(template: str, expected: str) -> None:
    assert renderer({})(template, ASKED, None) == expected


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ raise_exception('Closed today') }}", "^Closed today$"),
        ("{{ messages[0].content", "end of template"),
        ("{{ 1 / 0 }}", "division by zero"),
        # The sandbox refuses these: a template is a program of unknown authors.
        ("{{ messages.append(1) }}", "not safely callable|unsafe"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
    ],
)
def test_a_template_that_fails_is_an_error_with_the_reason(template: str, reason: str) -> None:
    with pytest.raises(RenderError, match=reason):
        renderer({})(template, ASKED, None)


def test_special_tokens_are_texts_or_dictionaries_with_a_text() -> None:
    config = {"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": False}, "pad_token": None, "other": "x"}
    assert special_tokens(config) == {"bos_token": "<s>", "eos_token": "</s>"}
