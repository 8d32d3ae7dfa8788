# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The weights of a model, computed from its configuration alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config import computed
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.config import parse


def test_the_parameters_of_published_models_are_computed(published: dict[str, Any]) -> None:
    for name, entry in published.items():
        found = computed.compute(parse(entry["config"])[0])
        # The computation leaves out biases and the norms of heads.
        assert found and found.parameters == pytest.approx(entry["parameters"], rel=0.0005), name
        assert found.parts.total == found.bytes, name


def test_the_bytes_of_quantized_weights_are_computed(published: dict[str, Any]) -> None:
    """Expected are the sizes of the published files of each model together, in GiB."""
    for name, gib in {
        "deepseek-v3": 627,
        "gpt-oss-120b": 60.8,
        "gpt-oss-20b": 12.8,
        "qwen2.5-7b-gptq-int4": 5.2,
    }.items():
        found = computed.compute(parse(published[name]["config"])[0])
        assert found and found.bytes / (1 << 30) == pytest.approx(gib, rel=0.01), name


def test_the_weights_of_an_unknown_type_are_unknown() -> None:
    raw = {
        "model_type": "unheard_of",
        "num_hidden_layers": 2,
        "hidden_size": 8,
        "num_attention_heads": 2,
        "vocab_size": 9,
    }
    assert computed.compute(parse(raw)[0]) is None
    assert computed.compute(parse({**raw, "model_type": "llama", "intermediate_size": None})[0]) is None
    assert computed.compute(parse({**raw, "model_type": "llama", "intermediate_size": 32})[0]) is not None


def test_the_computed_parts_are_those_of_the_published_tensors(published: dict[str, Any]) -> None:
    found = computed.compute(parse(published["llama-3-8b"]["config"])[0])
    assert found
    parts, table = found.parts, 128256 * 4096 * 2
    assert (parts.embedding, parts.head, parts.rest, parts.experts) == (table, table, 4096 * 2, 0)
    assert parts.layers == (2 * (2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 4096 * 14336 + 2 * 4096),) * 32
    assert parts.kv_projections == 32 * 2 * 2 * 1024 * 4096
    assert parts.replicated == 32 * 2 * 4096 * 2
    assert found.measured is False


def test_a_tied_head_takes_no_memory_of_its_own(published: dict[str, Any]) -> None:
    raw = published["llama-3-8b"]["config"]
    own, tied = (computed.compute(parse({**raw, "tie_word_embeddings": tie})[0]) for tie in (False, True))
    assert own and tied
    assert own.bytes - tied.bytes == own.parts.head == 128256 * 4096 * 2
    assert (own.parameters - tied.parameters, tied.parts.head) == (128256 * 4096, 0)


def test_weights_have_the_size_of_their_dtype(published: dict[str, Any]) -> None:
    raw = published["llama-3-8b"]["config"]
    half, full, none = (
        computed.compute(parse({**raw, "torch_dtype": dtype})[0]) for dtype in ("float16", "float32", None)
    )
    assert half and full and none
    assert (full.bytes, none.bytes) == (2 * half.bytes, half.bytes)


def test_without_all_sizes_of_experts_or_latent_attention_the_weights_are_unknown(published: dict[str, Any]) -> None:
    whole = parse(published["deepseek-v3"]["config"])[0]
    assert whole.mla and whole.experts and computed.compute(whole)
    for mla in (replace(whole.mla, qk_nope_head_dim=None), replace(whole.mla, v_head_dim=None)):
        assert computed.compute(replace(whole, mla=mla)) is None
    assert computed.compute(replace(whole, experts=replace(whole.experts, intermediate_size=None))) is None
