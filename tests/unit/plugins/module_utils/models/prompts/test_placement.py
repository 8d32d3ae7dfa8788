# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The place where a chat template takes a prompt is found by rendering; a template without such a place is refused."""

from __future__ import annotations

import functools

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.prompts.placement import (
    WrapError,
    wrap_and_try,
)
from ansible_collections.baremetal.inference.plugins.module_utils.models.prompts.rendering import renderer
from ansible_collections.baremetal.inference.plugins.module_utils.models.prompts.wrapper import Placement, wrap

from .example_templates import PROMPT, STYLES, say

RENDER = renderer({"bos_token": "<s>", "eos_token": "</s>"})


@functools.cache
def tried(template: str, policy: str) -> tuple[str, Placement]:
    """The template with the prompt, made once for all tests, because the search renders the template many times."""
    return wrap_and_try(template, PROMPT, policy, RENDER)


style = pytest.mark.parametrize(("template", "placement"), STYLES.values(), ids=STYLES)


@style
def test_the_place_of_a_prompt_is_found_by_rendering_the_template(template: str, placement: Placement) -> None:
    for policy in ("default", "always"):
        assert tried(template, policy) == (wrap(template, PROMPT, policy, placement), placement)


@style
@pytest.mark.parametrize("policy", ["default", "always"])
def test_the_model_reads_the_same_as_if_the_client_sent_the_prompt(
    template: str, placement: Placement, policy: str
) -> None:
    turns = [say("user", "Hello", template), say("assistant", "Hi", template), say("user", "Why?", template)]
    for messages in (turns[:1], turns):
        if placement.role == "user":
            sent = [{**messages[0], "content": f"{PROMPT}\n\nHello"}, *messages[1:]]
        else:
            sent = [say(placement.role, PROMPT, template), *messages]
        wrapped, _placement = tried(template, policy)
        assert RENDER(wrapped, messages, None) == RENDER(template, sent, None)


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ messages[0].content", "does not render a single message of a user: .*end of template"),
        ("{{ raise_exception('Closed today') }}", "a single message of a user: Closed today"),
        ("Hello", "a single message of a user: it leaves out the user's text"),
        ("{% for m in messages %}{{ m.content | replace('kind', 'rude') }}{% endfor %}", "does not take the prompt as"),
        (
            "{{ messages[-1].content }}{{ messages[1:] | length == 1 and messages[0].content or '' }}",
            "request's own|as",
        ),
    ],
)
def test_a_template_that_cannot_carry_a_prompt_is_refused(template: str, reason: str) -> None:
    with pytest.raises(WrapError, match=reason):
        wrap_and_try(template, "Be kind.", "always", RENDER)
