# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The weights of a model by the tensors of its files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config import computed
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.config import Config, parse
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.quantization import Quantization
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.weights import Weights, weigh
from ansible_collections.baremetal.inference.plugins.module_utils.models.safetensors import BITS, Tensor

Shapes = Mapping[str, tuple[str, tuple[int, ...]]]


def tensors(shapes: Shapes) -> dict[str, Tensor]:
    return {
        name: Tensor(dtype, shape, 0, math.prod(shape) * BITS[dtype] // 8) for name, (dtype, shape) in shapes.items()
    }


def weights(shapes: Shapes, **config: Any) -> Weights:
    found = weigh(tensors(shapes), Config(**config))
    assert found
    return found


def llama(config: dict[str, Any], dtype: str = "BF16") -> Shapes:
    """The tensors of a model of Llama's kind."""
    hidden, inner, size = config["hidden_size"], config["intermediate_size"], config.get("head_dim", 128)
    heads, kv_heads = config["num_attention_heads"] * size, config["num_key_value_heads"] * size
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (config["vocab_size"], hidden),
        "lm_head.weight": (config["vocab_size"], hidden),
        "model.norm.weight": (hidden,),
    }
    for layer in range(config["num_hidden_layers"]):
        for name, shape in {
            "self_attn.q_proj": (heads, hidden),
            "self_attn.k_proj": (kv_heads, hidden),
            "self_attn.v_proj": (kv_heads, hidden),
            "self_attn.o_proj": (hidden, heads),
            "mlp.gate_proj": (inner, hidden),
            "mlp.up_proj": (inner, hidden),
            "mlp.down_proj": (hidden, inner),
            "input_layernorm": (hidden,),
            "post_attention_layernorm": (hidden,),
        }.items():
            shapes[f"model.layers.{layer}.{name}.weight"] = shape
    return {name: (dtype, shape) for name, shape in shapes.items()}


@pytest.mark.parametrize("name", ["llama-3-8b", "llama-3-70b"])
def test_the_weights_by_files_and_by_configuration_are_equal(name: str, published: dict[str, Any]) -> None:
    raw = published[name]["config"]
    config = parse(raw)[0]
    measured, expected = weigh(tensors(llama(raw)), config), computed.compute(config)
    assert measured and expected
    assert measured.parameters == expected.parameters == published[name]["parameters"]
    assert measured.bytes == expected.bytes == 2 * published[name]["parameters"]
    assert measured.parts == expected.parts
    assert (measured.measured, expected.measured) == (True, False)
    assert measured.by_dtype == {"BF16": measured.bytes}


def test_a_tied_head_counts_once() -> None:
    shapes = {"model.embed_tokens.weight": ("F16", (100, 8)), "lm_head.weight": ("F16", (100, 8))}
    found = weights(shapes, tied_embeddings=True)
    assert (found.bytes, found.unused_bytes, found.parts.head) == (1600, 1600, 0)
    assert weights(shapes, tied_embeddings=False).bytes == weights(shapes).bytes == 3200
    # A head without an embedding is no copy of the embedding.
    assert weights({"lm_head.weight": ("F16", (100, 8))}, tied_embeddings=True).bytes == 1600


def test_layers_for_speculative_decoding_and_computed_buffers_do_not_count() -> None:
    found = weights(
        {
            "model.layers.0.mlp.up_proj.weight": ("BF16", (4, 4)),
            "model.layers.1.mlp.up_proj.weight": ("BF16", (4, 4)),
            "model.layers.2.eh_proj.weight": ("BF16", (8, 4)),
            "mtp.fc.weight": ("BF16", (8, 4)),
            "model.layers.0.self_attn.rotary_emb.inv_freq": ("F32", (2,)),
        },
        layers=2,
    )
    assert (found.bytes, found.unused_bytes, found.parts.layers) == (64, 64 + 64 + 8, (32, 32))


def test_weights_are_counted_by_part() -> None:
    found = weights(
        {
            "model.layers.0.self_attn.q_proj.weight": ("BF16", (10,)),
            "model.layers.0.self_attn.k_proj.weight": ("BF16", (20,)),
            "model.layers.0.self_attn.kv_a_proj_with_mqa.weight": ("BF16", (40,)),
            "model.layers.0.input_layernorm.weight": ("BF16", (80,)),
            "model.layers.0.mlp.gate.weight": ("BF16", (160,)),
            "model.layers.0.mlp.experts.7.gate_proj.weight": ("BF16", (320,)),
            "model.layers.0.mlp.shared_experts.gate_proj.weight": ("BF16", (640,)),
            "model.visual.blocks.0.norm1.weight": ("BF16", (1280,)),
            "vision_tower.vision_model.encoder.layers.5.self_attn.k_proj.weight": ("BF16", (2560,)),
        }
    )
    parts = found.parts
    assert parts.layers == (2 * (10 + 20 + 40 + 80 + 160 + 320 + 640),)
    assert parts.kv_projections == 2 * 20
    assert parts.replicated == 2 * (40 + 80 + 160)
    assert parts.experts == 2 * 320
    assert parts.rest == 2 * (1280 + 2560)
    assert found.bytes == parts.total


def test_the_parameters_of_packed_weights_are_counted_unpacked() -> None:
    packed = weights(
        {
            "model.layers.0.mlp.up_proj.qweight": ("I32", (512, 4096)),
            "model.layers.0.mlp.up_proj.scales": ("F16", (32, 4096)),
            "model.layers.0.mlp.up_proj.qzeros": ("I32", (32, 512)),
            "model.layers.0.mlp.up_proj.g_idx": ("I32", (4096,)),
        },
        quantization=Quantization("gptq", 4, 128),
    )
    assert packed.parameters == 4096 * 4096
    assert packed.bytes == 4 * 512 * 4096 + 2 * 32 * 4096 + 4 * 32 * 512 + 4 * 4096
    blocks = {
        "model.layers.0.mlp.experts.gate_up_proj_blocks": ("U8", (32, 5760, 90, 16)),
        "model.layers.0.mlp.experts.gate_up_proj_scales": ("U8", (32, 5760, 90)),
    }
    assert weights(blocks, quantization=Quantization("mxfp4", 4)).parameters == 32 * 5760 * 2880
    fp8 = {"model.layers.0.a.weight": ("F8_E4M3", (128, 128)), "model.layers.0.a.weight_scale_inv": ("F32", (1, 1))}
    assert weights(fp8, quantization=Quantization("fp8", 8, None, (128, 128))).parameters == 128 * 128


@pytest.mark.parametrize("digits", [11, 5000])
def test_a_layer_with_an_absurd_number_is_unused(digits: int) -> None:
    absurd = f"model.layers.{'9' * digits}.a.weight"
    found = weights({absurd: ("F16", (4,)), "model.layers.1.a.weight": ("F16", (4,))})
    assert (found.bytes, found.unused_bytes, len(found.parts.layers)) == (8, 8, 2)


def test_no_tensors_are_no_weights() -> None:
    assert weigh({}, Config()) is None
