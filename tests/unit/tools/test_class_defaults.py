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


KIND = {
    "values": {"hidden_size": 64, "tie_word_embeddings": False, "multi_query": False, "initializer_range": 0.02},
    "names": {"hidden_size": "n_embd", "image_token_id": "image_token_index"},
    "parts": {"vision_config": "x"},
    "layers": ["full_attention"],
    "kinds": {},
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
    )
