# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the architecture in a model's config.json as the engine does. Private to the collection.

Source of the keys' names and of values for missing keys: vLLM 0.32.0,
vllm/transformers_utils/model_arch_config_convertor.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .attention import Attention, attention, kinds
from .class_defaults import TYPES
from .declared import TEXT_CONFIGS, completed
from .experts import Experts, experts_of
from .heads import Heads, head_size, heads_by_kind, kv_heads
from .labels import labels
from .latent import Mla, cached_size, latent
from .positions import DEFAULT_LENGTH, Rope, default_length, max_positions, read_length, read_rope
from .quantization import Quantization, quantization
from .state import State, state
from .towers import towers
from .values import Reader, as_dict, as_list, text_or_none

MODALITIES = {
    "vision_config": "vision",
    "audio_config": "audio",
    "speech_config": "audio",
    "encoder_config": "encoder",
}

MAX_LAYERS = 1000
"""Largest plausible number of layers. It stops a broken number from making a list of a terabyte."""

DTYPES = ("float32", "float16", "bfloat16")


@dataclass(frozen=True)
class Config:
    """The values of a config.json, completed by its class. Lengths in tokens; None if unknown.

    `full_heads` and `sliding_heads` are the heads in the cache of layers that keep every token, and of layers with a
    window, if they differ from `kv_heads` and `head_size`. `tower_parameters` are the parameters of the parts for
    images and sound, `labels` the classes of a classifier.
    """

    architectures: tuple[str, ...] = ()
    model_type: str | None = None
    layers: int | None = None
    attention_heads: int | None = None
    kv_heads: int | None = None
    head_size: int | None = None
    hidden_size: int | None = None
    intermediate_size: int | None = None
    vocabulary_size: int | None = None
    max_positions: int | None = None
    max_length: int | None = None
    default_length: int | None = None
    rope: Rope | None = None
    sliding_window: int | None = None
    attention: Attention | None = None
    full_heads: Heads | None = None
    sliding_heads: Heads | None = None
    state: State | None = None
    mla: Mla | None = None
    experts: Experts | None = None
    dtype: str | None = None
    quantization: Quantization | None = None
    tied_embeddings: bool | None = None
    modalities: tuple[str, ...] = ()
    tower_parameters: int | None = 0
    labels: int | None = None


def parse(
    raw: Mapping[str, Any],
    tokenizer_max_length: int | None = None,
    quantization_file: Mapping[str, Any] | None = None,
    encoder_max_length: int | None = None,
) -> tuple[Config, list[str]]:
    """Read a configuration. Returns it with the problems of its values, without those of parts for images and sound.

    `tokenizer_max_length` and `encoder_max_length` are from the files of the tokenizer and of Sentence Transformers.
    `quantization_file` is the content of hf_quant_config.json, which Model Optimizer writes next to config.json. Raises
    nothing, for any values.
    """
    whole = completed(raw)
    given, text = _text(raw), _text(whole)
    read = Reader(text)
    model_type = text_or_none(text.get("model_type")) or text_or_none(raw.get("model_type"))
    layers = _layers(given, text, read, model_type)
    heads = read.size("num_attention_heads", "n_head", "n_heads")
    hidden = read.size("hidden_size", "n_embd", "d_model")
    rope = read_rope(text)
    # The engine asks the tokenizer only where a position past the table would be an error.
    tokenizer = tokenizer_max_length if raw.get("position_embedding_type") == "absolute" else None
    positions = max_positions(read) or tokenizer
    known = model_type in TYPES and layers is not None
    longest = read_length(positions or (DEFAULT_LENGTH if known else None), rope, tokenizer, model_type)
    longest = encoder_max_length or longest
    window = read.size("sliding_window") if text.get("use_sliding_window") is not False else None
    window = window or read.size("attention_chunk_size")
    found, problem = attention(text, layers, window, model_type, longest)
    if problem:
        read.problems.append(problem)
    mla = latent(read, model_type)
    size = read.size("head_dim", "hidden_size_per_head") or head_size(text, hidden, heads)
    usual = Heads(kv_heads(text, read, heads), size)
    full, sliding = heads_by_kind(text, usual, kinds(text, layers, model_type), model_type)
    # The engine reports one size for all layers: the largest.
    there = [one for one in (usual, full, sliding) if one]
    if mla is None and (unused := latent(read, None)) and unused.qk_nope_head_dim:
        full = Heads(usual.count, unused.qk_nope_head_dim + unused.qk_rope_head_dim)
    method = quantization(_quantization(raw, text), quantization_file)
    modalities = {key: name for key, name in MODALITIES.items() if as_dict(_with_towers(raw).get(key))}
    return Config(
        architectures=tuple(name for name in as_list(raw.get("architectures")) if isinstance(name, str)),
        model_type=model_type,
        layers=layers,
        attention_heads=heads,
        kv_heads=max((one.count for one in there if one.count), default=None),
        head_size=cached_size(mla, model_type) or max((one.size for one in there if one.size), default=None),
        hidden_size=hidden,
        intermediate_size=read.size("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"),
        vocabulary_size=read.size("vocab_size"),
        max_positions=positions,
        max_length=longest,
        default_length=default_length(text, rope, longest),
        rope=rope,
        sliding_window=window,
        attention=found,
        full_heads=full,
        sliding_heads=sliding,
        state=state(text, hidden),
        mla=mla,
        experts=experts_of(text, read, layers),
        dtype=_dtype(raw, text),
        quantization=method,
        tied_embeddings=next(
            (
                one["tie_word_embeddings"]
                for one in (raw, given, text, whole)
                if isinstance(one.get("tie_word_embeddings"), bool)
            ),
            None,
        ),
        modalities=tuple(sorted(set(modalities.values()))),
        tower_parameters=towers([_with_towers(whole)[key] for key in modalities], hidden),
        labels=labels(raw, given),
    ), read.problems


def _text(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """The configuration of the language part; without such a part, the whole configuration."""
    for key in TEXT_CONFIGS:
        if part := as_dict(raw.get(key)):
            return _text(part)
    return raw


def _with_towers(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """The dictionary that has the parts for images and sound: `thinker_config`, else the whole configuration."""
    return as_dict(raw.get("thinker_config")) or raw


def _layers(given: Mapping[str, Any], text: Mapping[str, Any], read: Reader, model_type: str | None) -> int | None:
    """The number of layers; without a number, the length of the list of their kinds."""
    names = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
    if not any(given.get(name) for name in names) and (words := kinds(text, None, model_type)):
        return len(words) if len(words) <= MAX_LAYERS else None
    layers = read.size(*names, most=MAX_LAYERS)
    outer, inner = read.size("H_cycles", most=MAX_LAYERS), read.size("L_cycles", most=MAX_LAYERS)
    if layers and outer and inner and not given.get("num_layers_per_stack"):
        # HRM: the layers of one stack. Each outer cycle runs the inner stack L_cycles times, then the outer stack.
        total = layers * outer * (inner + 1)
        return total if total <= MAX_LAYERS else None
    return layers


def _dtype(raw: Mapping[str, Any], text: Mapping[str, Any]) -> str | None:
    """The dtype for computation. A model for images and sound may have it only in one part."""
    for part in (raw, text, *(as_dict(raw.get(key)) for key in MODALITIES)):
        for key in ("dtype", "torch_dtype"):
            name = str(part.get(key)).removeprefix("torch.")
            if name in DTYPES:
                return name
    return None


def _quantization(raw: Mapping[str, Any], text: Mapping[str, Any]) -> Mapping[str, Any]:
    candidates = (part.get(key) for part in (raw, text) for key in ("quantization_config", "compression_config"))
    return next((found for one in candidates if (found := as_dict(one))), {})
