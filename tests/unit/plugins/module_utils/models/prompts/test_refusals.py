# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries and models whose system prompt the engine would not serve, each with its message."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.catalogue import choose
from ansible_collections.baremetal.inference.plugins.module_utils.models.prompts.refusals import (
    FLAGS,
    TEMPLATE_MODES,
    check_entry,
    check_model,
)
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry import entries
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.entries import Entry

CATALOGUE = choose("0.32.0")


def bot(**keys: Any) -> Entry:
    entry = {"model": "/models/bot", "system-prompt": "Be kind.", **{k.replace("_", "-"): v for k, v in keys.items()}}
    return entries.read({"bot": {key: value for key, value in entry.items() if value is not None}}, CATALOGUE).entries[
        "bot"
    ]


def test_a_tokenizer_mode_without_a_value_is_the_default() -> None:
    """The check of flags reports the missing value."""
    entry = {"model": "/models/bot", "system-prompt": "Be kind.", "tokenizer-mode": None}
    assert check_entry(entries.read({"bot": entry}, CATALOGUE).entries["bot"]) == []


def test_the_refused_flags_are_flags_of_the_engine() -> None:
    assert set(FLAGS) <= set(CATALOGUE.flags)
    assert "tokenizer-mode" in CATALOGUE.flags
    assert "trust-request-chat-template" in CATALOGUE.flags


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"chat_template": "/t.jinja"},
            "models.bot: chat-template: '/t.jinja': cannot go with system-prompt: the prompt",
        ),
        (
            {"tokenizer": "/models/other"},
            "models.bot: tokenizer: '/models/other': cannot go with system-prompt: templates",
        ),
        ({"skip_tokenizer_init": True}, "without a tokenizer there is no chat"),
        ({"tokenizer_mode": "mistral"}, "models.bot: tokenizer-mode: 'mistral': with this mode the engine renders no"),
        ({"tokenizer_mode": "mistral"}, "set it to hf, or remove system-prompt, and let the clients send"),
        (
            {"trust_request_chat_template": True, "system_prompt_policy": "always"},
            "trust-request-chat-template: True: lets a request bring its own template",
        ),
    ],
)
def test_flags_with_which_a_prompt_would_not_be_served_are_refused(keys: dict[str, Any], message: str) -> None:
    (problem,) = check_entry(bot(**keys))
    assert message in str(problem)
    assert check_entry(bot(**{**keys, "system_prompt": None, "system_prompt_policy": None})) == []


@pytest.mark.parametrize(
    "keys",
    [
        {"trust_request_chat_template": True},
        {"skip_tokenizer_init": False},
        *({"tokenizer_mode": mode} for mode in TEMPLATE_MODES),
    ],
)
def test_flags_with_which_a_prompt_is_served_are_accepted(keys: dict[str, Any]) -> None:
    assert check_entry(bot(**keys)) == []


def test_half_a_character_in_a_prompt_is_refused() -> None:
    (problem,) = check_entry(bot(system_prompt="a\udc00"))
    assert str(problem) == "models.bot: system-prompt: contains half a character (U+DC00) at position 1: remove it"


@pytest.mark.parametrize(
    ("model_type", "architecture", "files", "mode", "message"),
    [
        ("gpt_oss", "GptOssForCausalLM", (), "auto", "the engine writes gpt-oss's chats as Harmony"),
        ("gpt_oss", "GptOssForCausalLM", ("chat_template.jinja",), "hf", "renders no template: remove it, and let the"),
        ("deepseek_v32", "DeepseekV32ForCausalLM", (), "auto", "writes the chats of DeepseekV32ForCausalLM in code"),
        ("mistral", "M", ("consolidated-00001-of-00002.safetensors", "tekken.json"), "auto", "set tokenizer-mode: hf"),
        ("mistral", "M", ("consolidated.safetensors", "tokenizer.model.v3"), "auto", "Mistral's own tokenizer"),
        ("mistral", "M", ("consolidated.safetensors", "tekken.json"), "hf", None),
        ("mistral", "M", ("consolidated.safetensors", "tokenizer.model"), "auto", None),
        ("mistral", "M", ("model.safetensors", "tekken.json"), "auto", None),
        ("deepseek_v32", "DeepseekV32ForCausalLM", (), "hf", None),
        (None, "LlamaForCausalLM", ("model.safetensors", "tokenizer.json"), "auto", None),
    ],
)
def test_a_model_whose_chats_the_engine_writes_without_a_template_is_refused(
    model_type: str | None, architecture: str, files: tuple[str, ...], mode: str, message: str | None
) -> None:
    problems = [str(problem) for problem in check_model(bot(tokenizer_mode=mode), model_type, [architecture], files)]
    assert (message is None and not problems) or (message is not None and message in problems[0])
    assert check_model(bot(system_prompt=None), model_type, [architecture], files) == []
