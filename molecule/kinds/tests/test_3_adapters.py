# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two LoRA adapters and their base, served by one engine, through the gateway."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest
from node import Node, changes
from openai import OpenAI

NAMES = {"tiny-a": "tiny-a", "main": "tiny-a", "tiny-legal": "tiny-legal", "tiny-medical": "tiny-medical"}
"""The model that the answer names, by the name in the request."""

AT_ONCE = 24

OTHER_SIZE = 96
"""Hidden size of a model that is not tiny-a."""


def ask(client: OpenAI, name: str) -> str | None:
    answer = client.chat.completions.create(
        model=name, messages=[{"role": "user", "content": "Who are you?"}], max_tokens=30, temperature=0
    )
    return answer.choices[0].message.content


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """An adapter of another model."""
    config = {
        "base_model_name_or_path": "other",
        "peft_type": "LORA",
        "r": 8,
        "lora_alpha": 8,
        "target_modules": ["q_proj"],
    }
    (tmp_path / "adapter_config.json").write_text(json.dumps(config))
    name, size = "base_model.model.model.layers.0.self_attn.q_proj", 8 * OTHER_SIZE * 4
    header = {
        f"{name}.lora_A.weight": {"dtype": "F32", "shape": [8, OTHER_SIZE], "data_offsets": [0, size]},
        f"{name}.lora_B.weight": {"dtype": "F32", "shape": [OTHER_SIZE, 8], "data_offsets": [size, 2 * size]},
    }
    raw = json.dumps(header).encode()
    (tmp_path / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(raw)) + raw + bytes(2 * size))
    return tmp_path


def test_the_names_of_the_base_and_its_adapters_are_listed(client: OpenAI) -> None:
    assert set(NAMES) <= {model.id for model in client.models.list()}


@pytest.mark.parametrize("name", NAMES)
def test_each_name_gets_the_answer_of_its_model(client: OpenAI, name: str) -> None:
    assert ask(client, name) == f"I am {NAMES[name]}."


def test_adapters_answer_at_once(client: OpenAI) -> None:
    # No request is for the base: in a batch with requests for an adapter, vLLM's kernels for the CPU let this adapter
    # answer for the base.
    names = [("tiny-legal", "tiny-medical")[number % 2] for number in range(AT_ONCE)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(lambda name: ask(client, name), names))
    assert answers == [f"I am {NAMES[name]}." for name in names]


def test_a_key_without_the_right_gets_no_adapter(client_of: Callable[[str], OpenAI]) -> None:
    with pytest.raises(openai.PermissionDeniedError) as narrow:
        ask(client_of("kinds-elsewhere-key-90ab"), "tiny-legal")
    assert narrow.value.code == "model_not_allowed"


def refused(node: Node, models: dict[str, Any]) -> str:
    """Run the playbook with another registry. The run must change nothing. Returns the output as one line."""
    output = node.site(check=False, models=models)
    assert changes(output) == 0, output[-3000:]
    return " ".join(output.replace("\\n", " ").split())


def test_an_adapter_of_another_model_is_refused(deb13: Node, models: dict[str, Any], other: Path) -> None:
    wrong = {**models, "tiny-legal": {"base": "tiny-a", "adapter": f"controller:{other}"}}
    said = refused(deb13, wrong)
    assert "models.tiny-legal" in said
    assert f"has q_proj of {OTHER_SIZE} x {OTHER_SIZE}, and its base has 128 x 128" in said


def test_a_rank_above_the_limit_is_refused(deb13: Node, models: dict[str, Any]) -> None:
    said = refused(deb13, {**models, "tiny-a": {**models["tiny-a"], "max-lora-rank": 8}})
    for name in ("tiny-legal", "tiny-medical"):
        assert f"models.{name}" in said
    assert "has rank 16, more than max-lora-rank of tiny-a, 8" in said


def test_mistakes_of_the_registry_are_refused_at_once(deb13: Node, models: dict[str, Any]) -> None:
    wrong = {
        **models,
        "tiny-a": {**models["tiny-a"], "max-loras": 1},
        "tiny-legal": {**models["tiny-legal"], "dtype": "float32"},
        "lost": {"base": "tiny-b", "adapter": "/srv/lost"},
    }
    said = refused(deb13, wrong)
    assert "max-loras: 1: is less than the number of adapters, 2" in said
    assert "models.tiny-legal: dtype: 'float32': is no key of an adapter" in said
    assert "models.lost: base: 'tiny-b': must be another entry of the model registry" in said


def test_an_adapter_without_its_weights_is_refused(deb13: Node, models: dict[str, Any], other: Path) -> None:
    (other / "adapter_model.safetensors").unlink()
    said = refused(deb13, {**models, "tiny-legal": {"base": "tiny-a", "adapter": f"controller:{other}"}})
    assert "adapter_model.safetensors is missing" in said
