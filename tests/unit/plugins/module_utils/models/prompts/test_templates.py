# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a model that contain chat templates, and the prompt in each template."""

from __future__ import annotations

import json

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.models.prompts.templates import (
    rewrite,
    template_files,
)


def wrap(template: str) -> str:
    if "bad" in template:
        raise ValueError("does not take the prompt")
    return f"<{template}>"


def test_templates_are_where_the_engine_looks_for_them() -> None:
    names = ["chat_template.jinja", "chat_template.json", "processor_config.json", "tokenizer_config.json"]
    names = ["additional_chat_templates/rag.jinja", *names]
    others = ["config.json", "examples/chat_template.jinja", "tool.jinja", "additional_chat_templates/README.md"]
    assert template_files([*others, *names]) == names


def test_every_template_is_wrapped_in_its_place_and_other_content_stays() -> None:
    config = {"bos_token": "é", "model_max_length": 10**30, "chat_template": [{"name": "default", "template": "d"}]}
    config["chat_template"] += [{"name": "tool_use", "template": "t"}]  # type: ignore[operator]
    rewritten = rewrite(
        {
            "chat_template.jinja": "j\n",
            "additional_chat_templates/rag.jinja": "r",
            "chat_template.json": json.dumps({"chat_template": "p"}),
            "processor_config.json": json.dumps({"image_size": 1}),
            "tokenizer_config.json": json.dumps(config),
        },
        wrap,
        "models.bot",
    )
    assert rewritten.pop("chat_template.jinja") == "<j\n>"
    assert rewritten.pop("additional_chat_templates/rag.jinja") == "<r>"
    assert json.loads(rewritten.pop("chat_template.json")) == {"chat_template": "<p>"}
    named = [{"name": "default", "template": "<d>"}, {"name": "tool_use", "template": "<t>"}]
    assert json.loads(rewritten.pop("tokenizer_config.json")) == {**config, "chat_template": named}
    assert rewritten == {}


def test_every_file_whose_template_cannot_be_wrapped_is_a_problem() -> None:
    named = {"chat_template": [{"name": "rag", "template": "bad"}]}
    texts = {
        "chat_template.jinja": "bad",
        "chat_template.json": "{",
        "processor_config.json": json.dumps({"chat_template": 7}),
        "tokenizer_config.json": json.dumps(named),
    }
    with pytest.raises(InputError) as caught:
        rewrite(texts, wrap, "models.bot")
    messages = [str(problem) for problem in caught.value.problems]
    assert messages[0] == "models.bot: chat_template.jinja: does not take the prompt"
    assert messages[1].startswith("models.bot: chat_template.json: is not JSON (line 1, column 2)")
    assert messages[2].endswith("processor_config.json: chat_template is neither a text nor a list of named templates")
    assert messages[3] == "models.bot: tokenizer_config.json: template 'rag' does not take the prompt"


def test_a_file_that_is_nested_too_deeply_is_a_problem() -> None:
    with pytest.raises(InputError) as caught:
        rewrite({"tokenizer_config.json": "[" * 100_000}, wrap, "models.bot")
    assert str(caught.value) == "models.bot: tokenizer_config.json: is not JSON: it is nested too deeply"


def test_a_model_without_a_template_is_refused() -> None:
    with pytest.raises(InputError, match=r"models\.bot: .*has no chat template.*: remove system-prompt"):
        rewrite({"tokenizer_config.json": json.dumps({"chat_template": None})}, wrap, "models.bot")
