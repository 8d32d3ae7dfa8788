# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The architecture that a model's config.json describes, as the engine reads it. Private to the collection.

Sources: vLLM 0.32.0, vllm/transformers_utils/model_arch_config_convertor.py for the names of keys and what stands for a
key that is missing; vllm/config/model.py (_get_and_verify_max_len) for the length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .attention import Attention, attention, kinds
from .class_defaults import TYPES
from .declared import completed
from .heads import Heads, heads_by_kind
from .quantization import Quantization, quantization
from .state import State, state
from .towers import towers
from .values import Reader, as_dict, positive

TEXT_CONFIGS = ("text_config", "llm_config", "language_config", "thinker_config", "vlm_config")
"""Where a model that also sees or hears keeps the configuration of its language part."""

MODALITIES = {
    "vision_config": "vision",
    "audio_config": "audio",
    "speech_config": "audio",
    "encoder_config": "encoder",
}

LENGTH_KEYS = (
    *("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length"),
    *("max_target_positions", "max_sequence_length", "max_seq_length", "seq_len"),
)
"""The smallest of them is the length; model_max_length overrules all (derive_max_model_len_and_key)."""

SCALED_ALREADY = frozenset(
    {"su", "longrope", "llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling", "telechat3-yarn"}
)
"""Kinds of rope whose factor is in max_position_embeddings already."""

FALCON_TYPES = frozenset({"falcon", "RefinedWeb", "RefinedWebModel"})
"""Types of which `multi_query` counts more than a number of KV heads (FalconModelArchConfigConvertor)."""

DEFAULT_LENGTH = 2048
"""What the engine takes where neither configuration nor class has a length, which then limits nothing."""

MLA_TYPES = frozenset(
    {
        *("axk1", "deepseek_v2", "deepseek_v3", "deepseek_v32", "deepseek_v4", "deepseek_v41", "dots3_note"),
        *("deepseek_mtp", "k3_dspark", "glm5_next", "glm5_next_text", "glm_moe_dsa", "glm4_moe_lite"),
        *("glm4_moe_lite_mtp", "kimi_k2", "kimi_linear", "longcat_flash", "pangu_ultra_moe", "pangu_ultra_moe_mtp"),
        *("bailing_hybrid", "bailing_hybrid_mtp", "bailing_hybrid_v3_mtp", "hy_v4", "hy_v4_mtp"),
    }
)
"""Types that the engine serves with latent attention (is_deepseek_mla). Others that are known, such as minicpm3, have
keys and values for each head."""

MAX_LAYERS = 1000
"""More than any model has, so that a broken number or name makes no list of a terabyte."""

DTYPES = ("float32", "float16", "bfloat16")


@dataclass(frozen=True)
class Rope:
    """How positions are stretched; lengths in tokens."""

    type: str | None = None
    factor: float | None = None
    original_max_positions: int | None = None


@dataclass(frozen=True)
class Mla:
    """Multi-head latent attention: one compressed vector for all heads instead of keys and values for each."""

    kv_lora_rank: int
    qk_rope_head_dim: int
    qk_nope_head_dim: int | None = None
    v_head_dim: int | None = None
    q_lora_rank: int | None = None


@dataclass(frozen=True)
class Experts:
    """Mixture of experts. `layers`: those that have experts, None where the configuration does not tell."""

    count: int
    per_token: int | None = None
    intermediate_size: int | None = None
    shared_intermediate_size: int | None = None
    layers: int | None = None


@dataclass(frozen=True)
class Config:
    """What a config.json says, with what its class declares. Lengths in tokens; None where neither says anything.

    `full_heads` and `sliding_heads` are the heads in the cache of layers that keep every token, and of those with a
    window, where they are not `kv_heads` of `head_size`. `tower_parameters` are those of the parts that see or hear."""

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


def parse(
    raw: Mapping[str, Any],
    tokenizer_max_length: int | None = None,
    quantization_file: Mapping[str, Any] | None = None,
) -> tuple[Config, list[str]]:
    """Read a configuration, and tell every value in it that cannot be.

    `quantization_file` is the content of hf_quant_config.json, which Model Optimizer writes beside it. Raises nothing,
    whatever the values are.
    """
    whole = completed(raw)
    told, text = _text(raw), _text(whole)
    read = Reader(text)
    model_type = _text_or_none(text.get("model_type")) or _text_or_none(raw.get("model_type"))
    layers = _layers(told, text, read, model_type)
    heads = read.size("num_attention_heads", "n_head", "n_heads")
    hidden = read.size("hidden_size", "n_embd", "d_model")
    rope = read_rope(text)
    max_positions = _max_positions(read) or tokenizer_max_length
    known = model_type in TYPES and layers is not None
    longest = read_length(max_positions or (DEFAULT_LENGTH if known else None), rope, tokenizer_max_length, model_type)
    window = read.size("sliding_window") if text.get("use_sliding_window") is not False else None
    window = window or read.size("attention_chunk_size")
    found, problem = attention(text, layers, window, model_type)
    if problem:
        read.problems.append(problem)
    mla = _mla(read, model_type)
    size = read.size("head_dim", "hidden_size_per_head") or _head_size(text, hidden, heads)
    usual = Heads(_kv_heads(text, read, heads), size)
    full, sliding = heads_by_kind(text, usual, kinds(text, layers, model_type), model_type)
    # The engine tells one size for all layers: the largest.
    there = [one for one in (usual, full, sliding) if one]
    if mla is None and (latent := _mla(read, None)) and latent.qk_nope_head_dim:
        full = Heads(usual.count, latent.qk_nope_head_dim + latent.qk_rope_head_dim)
    method = quantization(_quantization(raw, text), quantization_file)
    modalities = {key: name for key, name in MODALITIES.items() if as_dict(_beside(raw).get(key))}
    return Config(
        architectures=tuple(name for name in _list(raw.get("architectures")) if isinstance(name, str)),
        model_type=model_type,
        layers=layers,
        attention_heads=heads,
        kv_heads=max((one.count for one in there if one.count), default=None),
        head_size=max((one.size for one in there if one.size), default=None),
        hidden_size=hidden,
        intermediate_size=read.size("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"),
        vocabulary_size=read.size("vocab_size"),
        max_positions=max_positions,
        max_length=longest,
        default_length=_default_length(text, rope, longest),
        rope=rope,
        sliding_window=window,
        attention=found,
        full_heads=full,
        sliding_heads=sliding,
        state=state(text, hidden),
        mla=mla,
        experts=_experts(text, read, layers),
        dtype=_dtype(raw, text),
        quantization=method,
        tied_embeddings=next(
            (
                one["tie_word_embeddings"]
                for one in (raw, told, text, whole)
                if isinstance(one.get("tie_word_embeddings"), bool)
            ),
            None,
        ),
        modalities=tuple(sorted(set(modalities.values()))),
        tower_parameters=towers([_beside(whole)[key] for key in modalities], hidden),
    ), read.problems


def _text(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """The configuration of the language part: that of a part where there is one, else the whole."""
    for key in TEXT_CONFIGS:
        if part := as_dict(raw.get(key)):
            return _text(part)
    return raw


def _beside(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Where the parts that see or hear stand: at the top, or in the part that thinks."""
    return as_dict(raw.get("thinker_config")) or raw


def _layers(told: Mapping[str, Any], text: Mapping[str, Any], read: Reader, model_type: str | None) -> int | None:
    """The number of layers; a list of their kinds counts where the configuration tells no number."""
    names = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
    if not any(told.get(name) for name in names) and (words := kinds(text, None, model_type)):
        return len(words) if len(words) <= MAX_LAYERS else None
    return read.size(*names, most=MAX_LAYERS)


def _head_size(text: Mapping[str, Any], hidden: int | None, heads: int | None) -> int | None:
    """The share of each head of the hidden size; some types have heads that are larger by a factor."""
    if not hidden or not heads:
        return None
    ratio = text.get("head_ratio")
    return int(hidden * (ratio if isinstance(ratio, (int, float)) and 0 < ratio < MAX_LAYERS else 1)) // heads


def _kv_heads(text: Mapping[str, Any], read: Reader, heads: int | None) -> int | None:
    """As many as attention heads where nothing is said; multi-query models have one."""
    one = text.get("multi_query") is True and not text.get("new_decoder_architecture")
    if one and text.get("model_type") in FALCON_TYPES:
        return 1
    if text.get("model_type") == "dbrx":
        return positive(as_dict(text.get("attn_config")).get("kv_n_heads")) or 1
    names = ("n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num", "num_attention_groups")
    return read.size(*names) or (1 if one else heads)


def _max_positions(read: Reader) -> int | None:
    lengths = [length for key in LENGTH_KEYS if (length := read.size(key)) is not None]
    return read.size("model_max_length") or min(lengths, default=None)


def _ropes(text: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The parameters of rope; `rope_parameters` may have them by kind of layer."""
    for key in ("rope_parameters", "rope_scaling"):
        told = as_dict(text.get(key))
        inner = [part for part in told.values() if isinstance(part, dict)]
        if told:
            yield from inner or [told]


def read_rope(text: Mapping[str, Any]) -> Rope | None:
    """The rope that stretches positions, where there is one among those of the layers."""
    found = [
        Rope(
            _text_or_none(one.get("rope_type")) or _text_or_none(one.get("type")),
            float(factor) if isinstance(factor := one.get("factor"), (int, float)) and 0 < factor < 1e9 else None,
            positive(one.get("original_max_position_embeddings"))
            or positive(text.get("original_max_position_embeddings")),
        )
        for one in _ropes(text)
    ]
    return next((rope for rope in found if rope.factor), found[0] if found else None)


def read_length(positions: int | None, rope: Rope | None, tokenizer: int | None, model_type: str | None) -> int | None:
    """The most tokens of a request that the engine takes."""
    if positions is None:
        return None
    length = min(positions, tokenizer or positions)
    # Gemma 3's length is scaled already, whatever its rope says.
    if rope and rope.factor and rope.type not in SCALED_ALREADY and "gemma3" not in (model_type or ""):
        length = int(length * rope.factor)
    return length


def _default_length(text: Mapping[str, Any], rope: Rope | None, longest: int | None) -> int | None:
    """What the engine takes without --max-model-len: for longrope, no more than what needs no stretching."""
    if longest and rope and rope.type == "longrope":
        return positive(text.get("original_max_position_embeddings")) or longest
    return longest


def _mla(read: Reader, model_type: str | None) -> Mla | None:
    """Latent attention, where the engine has it for this type; of a type that is not known, the keys tell."""
    if model_type in TYPES and model_type not in MLA_TYPES:
        return None
    rank, rope = read.size("kv_lora_rank"), read.size("qk_rope_head_dim")
    if rank is None or (rope is None and model_type not in MLA_TYPES):
        return None
    nope, value, query = (read.size(key) for key in ("qk_nope_head_dim", "v_head_dim", "q_lora_rank"))
    return Mla(rank, rope or 0, nope, value, query)


def _experts(text: Mapping[str, Any], read: Reader, layers: int | None) -> Experts | None:
    count = read.size("num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts")
    if count is None:
        return None
    # Mixtral and gpt-oss have no other intermediate size than that of their experts.
    size = read.size("moe_intermediate_size") or read.size("intermediate_size")
    shared = read.size("shared_expert_intermediate_size")
    if shared is None and size and (number := read.size("n_shared_experts")):
        shared = number * size
    return Experts(
        count=count,
        per_token=read.size("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_topk", "moe_top_k"),
        intermediate_size=size,
        shared_intermediate_size=shared,
        layers=_expert_layers(text, layers),
    )


def _expert_layers(text: Mapping[str, Any], layers: int | None) -> int | None:
    """DeepSeek's first layers are dense; Qwen's are dense where listed, or all but each step-th."""
    if layers is None:
        return None
    dense = set(range(positive(text.get("first_k_dense_replace")) or 0))
    dense |= {index for index in _list(text.get("mlp_only_layers")) if isinstance(index, int)}
    steps = ("decoder_sparse_step", "moe_layer_freq", "interleave_moe_layer_step")
    step = next((found for key in steps if (found := positive(text.get(key)))), 1)
    return sum(index not in dense and (index + 1) % step == 0 for index in range(layers))


def _dtype(raw: Mapping[str, Any], text: Mapping[str, Any]) -> str | None:
    """What the weights are meant to be computed in; a model that also sees may tell it for one part only."""
    for part in (raw, text, *(as_dict(raw.get(key)) for key in MODALITIES)):
        for key in ("dtype", "torch_dtype"):
            name = str(part.get(key)).removeprefix("torch.")
            if name in DTYPES:
                return name
    return None


def _quantization(raw: Mapping[str, Any], text: Mapping[str, Any]) -> Mapping[str, Any]:
    candidates = (part.get(key) for part in (raw, text) for key in ("quantization_config", "compression_config"))
    return next((found for one in candidates if (found := as_dict(one))), {})


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
