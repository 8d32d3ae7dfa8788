# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of what configuration classes declare."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture(scope="module")
def tool(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("class_defaults")


KIND: dict[str, Any] = {
    "values": {"hidden_size": 64, "tie_word_embeddings": False, "multi_query": False, "initializer_range": 0.02},
    "names": {"hidden_size": "n_embd", "image_token_id": "image_token_index"},
    "parts": {"vision_config": "x"},
    "layers": ["full_attention"],
    "kinds": {},
    "lacking": {},
    "missing": {"vision_config": {"hidden_size": 8, "initializer_range": 0.1}, "audio_config": {"dropout": 0.1}},
    "adopted": True,
}


def test_a_row_holds_what_the_library_reads(tool: ModuleType) -> None:
    assert {"hidden_size", "vocab_size", "model_max_length"} <= tool.keys()
    assert tool.row(KIND, tool.keys()) == (
        {"hidden_size": 64, "tie_word_embeddings": False},
        {"hidden_size": "n_embd"},
        {"vision_config": "x"},
        ("full_attention",),
        {},
        {"vision_config": {"hidden_size": 8}},
        True,
    )
    # A key that is read by its second name alone is kept, too.
    heads = {**KIND, "values": {"decoder_heads": 4}, "names": {"num_attention_heads": "decoder_heads"}}
    assert tool.row(heads, tool.keys())[0] == {"decoder_heads": 4}


def test_a_part_that_its_owner_fills_has_a_row_of_its_own(tool: ModuleType) -> None:
    part = {**KIND, "parts": {}, "values": {"hidden_size": 64, "num_hidden_layers": 2}}
    owner = {**KIND, "parts": {"text_config": "part", "vision_config": "part"}}
    owner["lacking"] = {"text_config": {"num_hidden_layers": 7}, "vision_config": {"dropout": 0.1}}
    found = tool.with_own({"owner": owner, "part": part}, tool.keys())
    assert found["owner/text_config"]["values"] == {"hidden_size": 64, "num_hidden_layers": 7, "model_type": "part"}
    assert found["owner"]["parts"] == {"text_config": "owner/text_config", "vision_config": "part"}
    assert found["part"]["values"] == part["values"]


def test_the_code_of_a_row_is_wrapped_at_the_width(tool: ModuleType) -> None:
    names = {"n_embd": "hidden_size", "hidden_size": "n_embd"}
    assert tool.item("x", ({"hidden_size": 1}, names, {}, (), {}, {}, False)) == (
        '    "x": Row(\n        {HIDDEN: 1},\n        names={"n_embd": "hidden_size", HIDDEN: "n_embd"}),'
    )
    values = {f"key_{number}": number for number in range(20)}
    text = tool.item("a-type", (values, {}, {}, (), {}, {}, True))
    assert max(map(len, text.splitlines())) <= tool.WIDTH and len(text.splitlines()) == 5
    assert eval(f"{{{text}}}", {"Row": lambda *args, **fields: (args, fields)}) == {
        "a-type": ((values,), {"adopted": True})
    }
