# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A wrapped template, rendered as the engine renders it: the text that the model reads."""

from __future__ import annotations

import re
from typing import Any

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.models.prompts.rendering import RenderError, renderer
from ansible_collections.baremetal.inference.plugins.module_utils.models.prompts.text import clean
from ansible_collections.baremetal.inference.plugins.module_utils.models.prompts.wrapper import Placement, wrap

from . import example_templates
from .example_templates import PROMPT, STYLES, parts, say

RENDER = renderer({"bos_token": "<s>", "eos_token": "</s>"})
ASKED = {"role": "user", "content": "Hello"}
ANSWERED = {"role": "assistant", "content": "Hi"}
IMAGE = {"type": "image"}

style = pytest.mark.parametrize(("template", "placement"), STYLES.values(), ids=STYLES)


def rendered(
    template: str,
    messages: list[dict[str, Any]],
    policy: str = "default",
    prompt: str = PROMPT,
    placement: Placement | None = None,
) -> str:
    """The text that the model reads, from the template wrapped for the place where it takes a prompt."""
    place = placement or dict(STYLES.values()).get(template, Placement("system"))
    return RENDER(wrap(template, prompt, policy, place), messages, None)


@style
@pytest.mark.parametrize("role", ["system", "developer"])
def test_by_default_a_prompt_in_the_request_replaces_the_prompt_of_the_entry(
    template: str, placement: Placement, role: str
) -> None:
    wrapped = wrap(template, PROMPT, "default", placement)
    for messages in (
        [say(role, "Be brief.", template), say("user", "Hello", template)],
        [say("user", "Hello", template), say(role, "Be brief.", template)],
    ):
        try:
            expected = RENDER(template, messages, None)
        except RenderError as error:
            with pytest.raises(RenderError, match=str(error)):
                RENDER(wrapped, messages, None)
        else:
            assert RENDER(wrapped, messages, None) == expected


@style
@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.parametrize("as_parts", [False, True])
def test_with_policy_always_the_prompt_of_the_entry_comes_before_the_prompt_in_the_request(
    template: str, placement: Placement, role: str, as_parts: bool
) -> None:
    own = [*parts("Be brief."), *parts("In French.")] if as_parts else "Be brief.\nIn French."
    both = f"{PROMPT}\n\nBe brief.\nIn French."
    asked = say("user", "Hello", template)
    if placement.role == "user":
        sent = [{**asked, "content": f"{both}\n\nHello"}]
    else:
        sent = [say(placement.role, both, template), asked]
    assert rendered(template, [{"role": role, "content": own}, asked], "always") == RENDER(template, sent, None)


def test_an_empty_prompt_in_the_request_adds_nothing() -> None:
    contents: list[Any] = ["", None, []]
    for content in contents:
        messages = [{"role": "system", "content": content}, ASKED]
        assert rendered(example_templates.PIPES, messages, "always") == rendered(example_templates.PIPES, [ASKED])


def test_other_keys_of_a_developers_message_are_kept() -> None:
    template = "{% for message in messages %}{{ message.role }} {{ message.content }} {{ message.tools }};{% endfor %}"
    messages = [{"role": "developer", "content": "Be brief.", "tools": "hammer"}, ASKED]
    assert rendered(template, messages, "always", "Be kind.").startswith("system Be kind.\n\nBe brief. hammer;user")


def test_pictures_in_a_request_stay() -> None:
    before, after = parts("What is"), parts("this?")
    cases: list[tuple[list[dict[str, str]], str]] = [
        ([IMAGE, *after], "Be kind.\n\n<image>this?"),
        ([*before, IMAGE, *after], "Be kind.\n\nWhat is<image>this?"),
        ([], "Be kind."),
    ]
    for content, expected in cases:
        text = rendered(example_templates.TURNS_PARTS, [{"role": "user", "content": content}], prompt="Be kind.")
        # The template strips the white space of a part, also between prompt and picture.
        assert expected.replace("\n\n<image>", "<image>") in text
    messages = [{"role": "user", "content": [IMAGE, *after]}]
    assert (
        rendered(example_templates.FOLDED, messages, prompt="Be kind.")
        == "<start>user\nBe kind.\n\n<image>this?<end>\n"
    )
    assert (
        rendered(example_templates.PARTS, messages, prompt="Be kind.")
        == "[system]Be kind.[user]<image>this?[assistant]"
    )


def test_in_a_chat_that_begins_with_an_answer_the_prompt_comes_first() -> None:
    text = rendered(example_templates.TURNS, [ANSWERED, ASKED], prompt="Be kind.")
    assert text.index("Be kind.") < text.index("Hi") < text.index("Hello")


@pytest.mark.parametrize("policy", ["default", "always"])
def test_tool_calls_in_a_request_stay(policy: str) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": {"city": "Köln"}}}
    messages: list[dict[str, Any]] = [
        ASKED,
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "rain"},
    ]
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {}}}]
    for template in (example_templates.CHATML, example_templates.HEADERS):
        wrapped = wrap(template, PROMPT, policy, Placement("system"))
        sent = [{"role": "system", "content": PROMPT}, *messages]
        assert RENDER(wrapped, messages, tools) == RENDER(template, sent, tools)


@given(st.text(), st.sampled_from(sorted(STYLES)), st.sampled_from(["default", "always"]))
def test_any_prompt_arrives_as_it_is(text: str, name: str, policy: str) -> None:
    prompt = clean(f"{text}.")
    template, placement = STYLES[name]
    messages = [say("user", "Hello", template)]
    wrapped = RENDER(wrap(template, prompt, policy, placement), messages, None)
    # The same place with a prompt that needs no escaping.
    plain = RENDER(wrap(template, "PROMPT", policy, placement), messages, None)
    before, after = plain.split("PROMPT")
    assert wrapped == f"{before}{prompt}{after}"


@style
@pytest.mark.parametrize("policy", ["default", "always"])
def test_template_variables_of_a_request_do_not_change_the_prompt(
    template: str, placement: Placement, policy: str
) -> None:
    """Clients may give a template variables (chat_template_kwargs), any JSON under any name."""
    wrapped = wrap(template, PROMPT, policy, placement)
    names = sorted(set(re.findall(r"inference_\w+", wrapped)))
    hostile = renderer({"bos_token": "<s>", "eos_token": "</s>", **dict.fromkeys(names, "ours now")})
    for roles in (["user"], ["system", "user"]):
        messages = [say(role, "Hello", template) for role in roles]
        try:
            expected = RENDER(wrapped, messages, None)
        except RenderError:
            continue
        assert hostile(wrapped, messages, None) == expected
    with pytest.raises(RenderError):
        # A request that replaces a function of the prologue is refused: the prompt is not left out.
        renderer({"bos_token": "<s>", "dict": "ours now"})(wrapped, [say("user", "Hello", template)], None)


@style
def test_the_prologue_has_nothing_that_the_engine_searches_for(template: str, placement: Placement) -> None:
    """The engine searches the template for the form of the content and for the role of developers' messages."""
    for policy in ("default", "always"):
        for place in (placement, Placement("user"), Placement("developer", parts=True)):
            prologue = wrap("", PROMPT, policy, place)
            assert "'developer'" not in prologue
            assert '"developer"' not in prologue
            assert wrap(template, PROMPT, policy, place).endswith(template)
            tree = jinja2.Environment().parse(prologue)
            assert not list(tree.find_all(jinja2.nodes.For))
            assert all(isinstance(node.target, jinja2.nodes.Name) for node in tree.find_all(jinja2.nodes.Assign))


@style
def test_the_prologue_writes_nothing_and_leaves_the_first_line_alone(template: str, placement: Placement) -> None:
    asked = say("user", "Hello", template)
    if placement.role == "user":
        sent = [{**asked, "content": "Be kind.\n\nHello"}]
    else:
        sent = [say(placement.role, "Be kind.", template), asked]
    for start in (
        "",
        "\n",
        "\n\n  text\n",
        "  ",
        "text ",
        "{{- '' }}\n ",
        "{%- if true %}\n{% endif %} ",
        "{# note #}\n",
    ):
        found = rendered(start + template, [asked], prompt="Be kind.", placement=placement)
        assert found == RENDER(start + template, sent, None)
