# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of what configuration classes declare."""

from __future__ import annotations

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

TOOL = Path(__file__).parents[3] / "tests/tools/class_defaults"


def tool() -> Any:
    """The command, which has no extension that an import would know it by."""
    loader = SourceFileLoader("class_defaults_tool", str(TOOL))
    spec = spec_from_loader(loader.name, loader)
    assert spec
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


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


def test_a_row_holds_what_the_library_reads() -> None:
    made = tool()
    assert {"hidden_size", "vocab_size", "model_max_length"} <= made.keys()
    assert made.row(KIND, made.keys()) == (
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
    assert made.row(heads, made.keys())[0] == {"decoder_heads": 4}


def test_a_part_that_its_owner_fills_has_a_row_of_its_own() -> None:
    made = tool()
    part = {**KIND, "parts": {}, "values": {"hidden_size": 64, "num_hidden_layers": 2}}
    owner = {**KIND, "parts": {"text_config": "part", "vision_config": "part"}}
    owner["lacking"] = {"text_config": {"num_hidden_layers": 7}, "vision_config": {"dropout": 0.1}}
    found = made.with_own({"owner": owner, "part": part}, made.keys())
    assert found["owner/text_config"]["values"] == {"hidden_size": 64, "num_hidden_layers": 7, "model_type": "part"}
    assert found["owner"]["parts"] == {"text_config": "owner/text_config", "vision_config": "part"}
    assert found["part"]["values"] == part["values"]


def test_the_source_of_a_row_has_full_lines() -> None:
    made = tool()
    names = {"n_embd": "hidden_size", "hidden_size": "n_embd"}
    assert made.item("x", ({"hidden_size": 1}, names, {}, (), {}, {}, False)) == (
        '    "x": Row(\n        {HIDDEN: 1},\n        names={"n_embd": "hidden_size", HIDDEN: "n_embd"}),'
    )
    values = {f"key_{number}": number for number in range(20)}
    text = made.item("a-type", (values, {}, {}, (), {}, {}, True))
    assert max(map(len, text.splitlines())) <= made.WIDTH and len(text.splitlines()) == 5
    assert eval(f"{{{text}}}", {"Row": lambda *args, **fields: (args, fields)}) == {
        "a-type": ((values,), {"adopted": True})
    }
