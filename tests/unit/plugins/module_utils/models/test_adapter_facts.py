# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts that are read from a LoRA adapter's files, and the adapters that are refused."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models import adapter_facts
from ansible_collections.baremetal.inference.plugins.module_utils.models.adapter_facts import WEIGHTS, AdapterFacts
from ansible_collections.baremetal.inference.plugins.module_utils.models.file_names import ADAPTER_CONFIG

PEFT: dict[str, Any] = {
    "base_model_name_or_path": "org/base",
    "peft_type": "LORA",
    "r": 16,
    "lora_alpha": 32,
    "bias": "none",
    "target_modules": ["q_proj", "down_proj"],
}

LAYER = "base_model.model.model.layers"

SHAPES: dict[str, list[int]] = {
    f"{LAYER}.0.self_attn.q_proj.lora_A.weight": [16, 128],
    f"{LAYER}.0.self_attn.q_proj.lora_B.weight": [64, 16],
    f"{LAYER}.1.self_attn.q_proj.lora_A.weight": [16, 128],
    f"{LAYER}.1.self_attn.q_proj.lora_B.weight": [64, 16],
    f"{LAYER}.1.mlp.down_proj.lora_A.weight": [16, 256],
    f"{LAYER}.1.mlp.down_proj.lora_B.weight": [128, 16],
    f"{LAYER}.1.mlp.experts.0.up_proj.lora_A.weight": [16, 128],
    f"{LAYER}.1.mlp.experts.0.up_proj.lora_B.weight": [32, 16],
    "base_model.model.lm_head.lora_A.weight": [16, 128],
}


def write(root: Path, config: Mapping[str, Any] | None = None, shapes: Mapping[str, list[int]] | None = None) -> Path:
    """The directory of an adapter."""
    root.mkdir(parents=True, exist_ok=True)
    (root / ADAPTER_CONFIG).write_text(json.dumps(PEFT if config is None else config))
    header, end = {}, 0
    for name, shape in (SHAPES if shapes is None else shapes).items():
        size = shape[0] * shape[1] * 4
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    raw = json.dumps(header).encode()
    (root / WEIGHTS).write_bytes(struct.pack("<Q", len(raw)) + raw + bytes(end))
    return root


def messages(root: Path) -> list[str]:
    return [f"{one.file} {one.message}" for one in adapter_facts.gather(root).problems]


def test_rank_base_layers_and_shapes_are_read(tmp_path: Path) -> None:
    facts = adapter_facts.gather(write(tmp_path))
    assert facts == AdapterFacts(
        rank=16,
        base="org/base",
        layers=2,
        shapes=(("model.layers.mlp.down_proj", 256, 128), ("model.layers.self_attn.q_proj", 128, 64)),
    )
    assert AdapterFacts.from_dict(json.loads(json.dumps(facts.to_dict()))) == facts
    assert AdapterFacts.from_dict({}) == AdapterFacts()


def test_the_highest_rank_counts(tmp_path: Path) -> None:
    assert adapter_facts.gather(write(tmp_path, {**PEFT, "rank_pattern": {"q_proj": 64}})).rank == 64
    larger = {name: [max(shape[0], 24), shape[1]] if "lora_A" in name else shape for name, shape in SHAPES.items()}
    assert adapter_facts.gather(write(tmp_path, shapes=larger)).rank == 24


def test_layers_of_a_part_for_images_do_not_count(tmp_path: Path) -> None:
    tower = "base_model.model.vision_tower.vision_model.encoder.layers.26.self_attn.q_proj"
    shapes = {**SHAPES, f"{tower}.lora_A.weight": [16, 72], f"{tower}.lora_B.weight": [72, 16]}
    assert adapter_facts.gather(write(tmp_path, shapes=shapes)).layers == 2


def test_a_layer_number_with_thousands_of_digits_is_no_problem(tmp_path: Path) -> None:
    name = f"{LAYER}.{'9' * 5000}.self_attn.q_proj.lora_A.weight"
    assert adapter_facts.gather(write(tmp_path, shapes={name: [16, 128]})).problems == ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"peft_type": "IA3"}, "has peft_type 'IA3': the engine serves only LORA"),
        ({"r": 0}, "has r 0: the rank must be a whole number from 1"),
        ({"r": True}, "has r True"),
        ({"lora_alpha": None}, "has no lora_alpha"),
        ({"target_modules": []}, "has no target_modules"),
        ({"bias": "all"}, "has bias 'all'"),
        ({"use_dora": True}, "has use_dora, which the engine does not serve"),
        ({"modules_to_save": ["embed_tokens"]}, "the engine takes only classifier, score"),
        ({"init_lora_weights": "pissa"}, "has init_lora_weights 'pissa', which changes the base"),
        ({"init_lora_weights": "lora_ga"}, "has init_lora_weights 'lora_ga', which changes the base"),
    ],
)
def test_an_adapter_that_the_engine_does_not_serve_is_refused(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    (found,) = messages(write(tmp_path, {**PEFT, **changes}))
    assert found.startswith(f"{ADAPTER_CONFIG} has ") and words in found


def test_an_adapter_that_the_engine_serves_is_accepted(tmp_path: Path) -> None:
    more = {"modules_to_save": ["score"], "init_lora_weights": "gaussian", "use_dora": False, "use_rslora": True}
    assert messages(write(tmp_path, {**PEFT, **more})) == []


def test_missing_and_damaged_files_are_refused(tmp_path: Path) -> None:
    assert messages(tmp_path / "none") == [" is missing, or is not a directory"]
    root = write(tmp_path)
    (root / WEIGHTS).write_bytes((root / WEIGHTS).read_bytes()[:-4])
    (root / ADAPTER_CONFIG).write_text("no JSON")
    config, weights = messages(root)
    assert config.startswith(f"{ADAPTER_CONFIG} is not JSON") and weights.startswith(f"{WEIGHTS} is cut")
    gone = {name: root / "gone" / name for name in (ADAPTER_CONFIG, WEIGHTS)}
    unreadable = [one.message for one in adapter_facts.read(gone)[0].problems]
    assert unreadable == ["cannot be read: No such file or directory"] * 2
    for name in (ADAPTER_CONFIG, WEIGHTS):
        (root / name).unlink()
    config, weights = messages(root)
    assert config.startswith(f"{ADAPTER_CONFIG} is missing") and weights.startswith(f"{WEIGHTS} is missing")
    (found,) = messages(write(tmp_path, shapes={"model.norm.weight": [4, 4]}))
    assert "has no weights of LoRA" in found


def test_a_check_returns_the_bytes_of_the_weights_and_all_problems(tmp_path: Path) -> None:
    root = write(tmp_path, {**PEFT, "bias": "all"})
    size, (problem,) = adapter_facts.check(
        root, {ADAPTER_CONFIG: root / ADAPTER_CONFIG, WEIGHTS: root / WEIGHTS}, "models.legal"
    )
    assert size == sum(4 * rows * columns for rows, columns in SHAPES.values())
    assert str(problem).startswith(f"models.legal: {root / ADAPTER_CONFIG} has bias 'all'")
