# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wrapped templates, rendered as the engine renders them: what the model gets to read."""

from __future__ import annotations

import re
from typing import Any

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.models.prompts.placement import (
    WrapError,
    wrap_and_try,
)
from ansible_collections.baremetal.inference.plugins.module_utils.models.prompts.rendering import (
    RenderError,
    renderer,
    special_tokens,
)
from ansible_collections.baremetal.inference.plugins.module_utils.models.prompts.text import clean, literal
from ansible_collections.baremetal.inference.plugins.module_utils.models.prompts.wrapper import Placement, wrap

from . import templates

RENDER = renderer({"bos_token": "<s>", "eos_token": "</s>"})

STYLES = {
    "chatml": (templates.CHATML, Placement("system")),
    "headers": (templates.HEADERS, Placement("system")),
    "pipes": (templates.PIPES, Placement("system")),
    "deaf": (templates.DEAF, Placement("user")),
    "turns": (templates.TURNS, Placement("user")),
    "turns of parts": (templates.TURNS_PARTS, Placement("user")),
    "folded": (templates.FOLDED, Placement("system")),
    "parts": (templates.PARTS, Placement("system", parts=True)),
    "strict": (templates.STRICT, Placement("system")),
    "shy": (templates.SHY, Placement("user")),
    "developer": (templates.DEVELOPER, Placement("developer")),
}

PROMPT = """You're the "support desk" — c'est ça, 日本 🦙.

  {{ messages }} {% raw %} {# no comment #} }} %} C:\\new\\x41 \\u0041 \r\n 'developer' "developer" {% generation %}"""

ASKED = {"role": "user", "content": "Hello"}
ANSWERED = {"role": "assistant", "content": "Hi"}
IMAGE = {"type": "image"}

style = pytest.mark.parametrize(("template", "placement"), STYLES.values(), ids=STYLES)


def parts(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


def say(role: str, text: str, template: str) -> dict[str, Any]:
    """A message in the form in which the engine would hand it to the template."""
    return {"role": role, "content": parts(text) if template == templates.PARTS else text}


def rendered(template: str, messages: list[dict[str, Any]], policy: str = "default", prompt: str = PROMPT) -> str:
    return RENDER(wrap_and_try(template, prompt, policy, RENDER)[0], messages, None)


@style
def test_where_a_prompt_goes_is_found_by_asking_the_template(template: str, placement: Placement) -> None:
    for policy in ("default", "always"):
        assert wrap_and_try(template, PROMPT, policy, RENDER)[1] == placement


@style
@pytest.mark.parametrize("policy", ["default", "always"])
def test_the_model_reads_what_a_client_who_sends_the_prompt_would_give_it(
    template: str, placement: Placement, policy: str
) -> None:
    turns = [say("user", "Hello", template), say("assistant", "Hi", template), say("user", "Why?", template)]
    for messages in (turns[:1], turns):
        if placement.role == "user":
            sent = [{**messages[0], "content": f"{PROMPT}\n\nHello"}, *messages[1:]]
        else:
            sent = [say(placement.role, PROMPT, template), *messages]
        assert rendered(template, messages, policy) == RENDER(template, sent, None)


@style
@pytest.mark.parametrize("role", ["system", "developer"])
def test_by_default_a_prompt_in_the_request_wins(template: str, placement: Placement, role: str) -> None:
    wrapped, _placement = wrap_and_try(template, PROMPT, "default", RENDER)
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
def test_always_means_before_the_one_in_the_request(
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
        assert rendered(templates.PIPES, messages, "always") == rendered(templates.PIPES, [ASKED])


def test_what_else_a_developer_sends_along_is_kept() -> None:
    template = "{% for message in messages %}{{ message.role }} {{ message.content }} {{ message.tools }};{% endfor %}"
    messages = [{"role": "developer", "content": "Be brief.", "tools": "hammer"}, ASKED]
    assert rendered(template, messages, "always", "Be kind.").startswith("system Be kind.\n\nBe brief. hammer;user")


def test_pictures_survive() -> None:
    before, after = parts("What is"), parts("this?")
    cases: list[tuple[list[dict[str, str]], str]] = [
        ([IMAGE, *after], "Be kind.\n\n<image>this?"),
        ([*before, IMAGE, *after], "Be kind.\n\nWhat is<image>this?"),
        ([], "Be kind."),
    ]
    for content, expected in cases:
        text = rendered(templates.TURNS_PARTS, [{"role": "user", "content": content}], prompt="Be kind.")
        # The template strips the white space of a part, the one between prompt and picture too.
        assert expected.replace("\n\n<image>", "<image>") in text
    messages = [{"role": "user", "content": [IMAGE, *after]}]
    assert rendered(templates.FOLDED, messages, prompt="Be kind.") == "<start>user\nBe kind.\n\n<image>this?<end>\n"
    assert rendered(templates.PARTS, messages, prompt="Be kind.") == "[system]Be kind.[user]<image>this?[assistant]"


def test_a_chat_that_the_model_begins_gets_the_prompt_before_it() -> None:
    text = rendered(templates.TURNS, [ANSWERED, ASKED], prompt="Be kind.")
    assert text.index("Be kind.") < text.index("Hi") < text.index("Hello")


@pytest.mark.parametrize("policy", ["default", "always"])
def test_tool_calls_survive(policy: str) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": {"city": "Köln"}}}
    messages: list[dict[str, Any]] = [
        ASKED,
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "rain"},
    ]
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {}}}]
    for template in (templates.CHATML, templates.HEADERS):
        wrapped, _placement = wrap_and_try(template, PROMPT, policy, RENDER)
        sent = [{"role": "system", "content": PROMPT}, *messages]
        assert RENDER(wrapped, messages, tools) == RENDER(template, sent, tools)


@given(st.text(), st.sampled_from(sorted(STYLES)), st.sampled_from(["default", "always"]))
def test_any_prompt_arrives_as_it_is(text: str, name: str, policy: str) -> None:
    if not text.strip():
        with pytest.raises(ValueError, match="is empty"):
            clean(text)
        return
    prompt = clean(text)
    template, placement = STYLES[name]
    messages = [say("user", "Hello", template)]
    wrapped = RENDER(wrap(template, prompt, policy, placement), messages, None)
    # The same place with a prompt that needs no escaping.
    plain = RENDER(wrap(template, "PROMPT", policy, placement), messages, None)
    before, after = plain.split("PROMPT")
    assert wrapped == f"{before}{prompt}{after}"


@given(st.text())
def test_a_literal_is_plain_and_the_very_text(text: str) -> None:
    source = literal(text)
    assert source.isascii()
    assert not set(source[1:-1]) & set("{}%#'\"\r\n")
    assert RENDER("{{ " + source + " }}", [ASKED], None) == text


@style
@pytest.mark.parametrize("policy", ["default", "always"])
def test_variables_that_a_request_brings_change_nothing(template: str, placement: Placement, policy: str) -> None:
    """Clients may give a template variables (chat_template_kwargs), any JSON under any name."""
    wrapped, _placement = wrap_and_try(template, PROMPT, policy, RENDER)
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
        # What the prologue calls cannot be taken from it to leave the prompt out.
        renderer({"bos_token": "<s>", "dict": "ours now"})(wrapped, [say("user", "Hello", template)], None)


@style
def test_the_engine_finds_nothing_new_in_the_source(template: str, placement: Placement) -> None:
    """How it hands content over, and to whom a developer's message goes, it tells by searching the template."""
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
        assert rendered(start + template, [asked], prompt="Be kind.") == RENDER(start + template, sent, None)


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ messages[0].content", "does not render a single message of a user: .*end of template"),
        ("{{ raise_exception('Closed today') }}", "a single message of a user: Closed today"),
        ("Hello", "a single message of a user: it leaves out what the user says"),
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


@pytest.mark.parametrize(("text", "message"), [(" \n", "is empty"), ("a\ud800", r"U\+D800\) at position 1")])
def test_what_is_no_prompt_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        clean(text)


def test_white_space_around_a_prompt_is_left_out_for_templates_strip_it() -> None:
    assert clean("\n  Be kind.\n  Always.\n") == "Be kind.\n  Always."


def test_special_tokens_are_texts_or_hold_one() -> None:
    config = {"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": False}, "pad_token": None, "other": "x"}
    assert special_tokens(config) == {"bos_token": "<s>", "eos_token": "</s>"}
