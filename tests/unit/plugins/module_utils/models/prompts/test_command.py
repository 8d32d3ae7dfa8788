# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a variant from those of its base, as the program in the engine's container makes them."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.prompts import command
from ansible_collections.baremetal.inference.plugins.module_utils.models.prompts.rendering import renderer
from ansible_collections.baremetal.inference.plugins.module_utils.store import variant_files

from . import example_templates

CONFIG = {"bos_token": {"content": "<s>"}, "chat_template": "{{ bos_token + messages[0].content }}"}


def run(texts: dict[str, str], prompt: str = " Sei nett – 日本\n") -> Any:
    request = {"texts": texts, "prompt": prompt, "policy": "default", "where": "models.bot"}
    stdout = io.StringIO()
    assert command.main(io.StringIO(json.dumps(request)), stdout) == 0
    return json.loads(stdout.getvalue())


def test_every_template_gets_the_prompt_and_is_rendered_with_the_tokenizers_special_tokens() -> None:
    """A template that adds text to a special token fails if the token is unknown."""
    answer = run({"tokenizer_config.json": json.dumps(CONFIG), "chat_template.jinja": example_templates.HEADERS})
    assert answer["problems"] == []
    render = renderer({"bos_token": "<s>"})
    wrapped = json.loads(answer["files"].pop("tokenizer_config.json"))["chat_template"]
    asked = [{"role": "user", "content": "Hallo"}]
    assert render(wrapped, asked, None) == "<s>Sei nett – 日本\n\nHallo"
    assert "Sei nett – 日本" in render(answer["files"].pop("chat_template.jinja"), asked, None)
    assert answer["files"] == {}


def test_all_problems_are_reported_at_once() -> None:
    answer = run({"tokenizer_config.json": "[", "chat_template.jinja": "{{ raise_exception('Closed') }}"})
    assert answer["files"] == {}
    assert [problem["message"].partition(":")[0] for problem in answer["problems"]] == [
        "chat_template.jinja",
        "tokenizer_config.json",
    ]


def test_a_file_that_is_nested_too_deeply_is_a_problem() -> None:
    (problem,) = run({"tokenizer_config.json": "[" * 100_000})["problems"]
    assert "nested too deeply" in problem["message"]


@pytest.mark.parametrize("text", ["[]", '"text"', "{}"])
def test_a_tokenizer_configuration_without_a_template_is_a_problem(text: str) -> None:
    (problem,) = run({"tokenizer_config.json": text})["problems"]
    assert problem["where"] == "models.bot"
    assert "has no chat template" in problem["message"]


def test_modules_that_nodes_import_do_not_need_jinja() -> None:
    base = command.__name__.rpartition(".")[0]
    names = [f"{base}.{name}" for name in ("command", "refusals", "wrapper")] + [variant_files.__name__]
    program = f"import sys; sys.modules['jinja2'] = None; import {', '.join(names)}"
    subprocess.run([sys.executable, "-c", program], check=True)
