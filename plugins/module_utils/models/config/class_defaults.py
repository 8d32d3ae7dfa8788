# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What configuration classes declare: vllm 0.32.0, transformers 5.19.0. Private to the collection.

Made by `make catalogue`: do not edit. declared.py says what the table is for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Row(NamedTuple):
    """What the class of a type declares."""

    values: Mapping[str, Any]
    names: Mapping[str, str] = {}
    """The key that a second name stands for."""
    parts: Mapping[str, str] = {}
    """Types of parts."""
    layers: tuple[str, ...] = ()
    """Kinds of layers in their order."""
    sizes: Mapping[str, Mapping[str, int]] = {}
    """Sizes that a kind of layer has for itself."""
    missing: Mapping[str, Mapping[str, Any]] = {}
    """Values of parts that are missing as a whole, if the part's class has others."""
    adopted: bool = False
    """Whether the engine runs the model with the code of transformers."""


HEADS = "num_attention_heads"
HIDDEN = "hidden_size"
INNER = "intermediate_size"
KV = "num_key_value_heads"
LAYERS = "num_hidden_layers"
LENGTH = "max_position_embeddings"
TIED = "tie_word_embeddings"
WORDS = "vocab_size"

# fmt: off
TYPES: Mapping[str, Row] = {
    "RefinedWeb": Row(
        {HIDDEN: 64, "multi_query": True, "n_head": 8, "n_layer": 2, WORDS: 250880},
        names={HEADS: "n_head", LAYERS: "n_layer", "num_kv_heads": "n_head_kv"}),
    "RefinedWebModel": Row(
        {HIDDEN: 64, "multi_query": True, "n_head": 8, "n_layer": 2, WORDS: 250880},
        names={HEADS: "n_head", LAYERS: "n_layer", "num_kv_heads": "n_head_kv"}),
    "afmoe": Row(
        {"head_dim": 128, HIDDEN: 2048, INNER: 6144, LENGTH: 16384, "moe_intermediate_size": 1408, HEADS: 16,
         "num_experts": 64, "num_experts_per_tok": 6, LAYERS: 32, "sliding_window": 1024, TIED: False, WORDS: 200192},
        layers=("sliding_attention", "sliding_attention", "sliding_attention", "full_attention")),
    "albert": Row(
        {HIDDEN: 4096, INNER: 16384, LENGTH: 512, HEADS: 64, LAYERS: 12, TIED: True, WORDS: 30000},
        adopted=True),
    "apertus": Row(
        {HIDDEN: 4096, INNER: 14336, LENGTH: 65536, HEADS: 32, LAYERS: 32, TIED: False, WORDS: 131072}),
    "arcee": Row(
        {HIDDEN: 2560, INNER: 18432, LENGTH: 4096, HEADS: 32, LAYERS: 32, TIED: False, WORDS: 32000}),
    "aria": Row(
        {TIED: False},
        parts={"text_config": "aria_text", "vision_config": "idefics3_vision"}),
    "aria_text": Row(
        {HIDDEN: 4096, INNER: 4096, LENGTH: 2048, "moe_num_experts": 8, "moe_topk": 2, HEADS: 32, LAYERS: 32, TIED:
         False, WORDS: 32000}),
    "audioflamingo3": Row(
        {},
        parts={"audio_config": "audioflamingo3_encoder", "text_config": "qwen2"}),
    "audioflamingo3_encoder": Row(
        {HIDDEN: 1280, INNER: 5120, HEADS: 20, LAYERS: 32},
        names={"d_model": "hidden_size", "encoder_attention_heads": "num_attention_heads", "encoder_ffn_dim":
               "intermediate_size", "encoder_layers": "num_hidden_layers"}),
    "axk1": Row(
        {"first_k_dense_replace": 1, "head_dim": 64, HIDDEN: 7168, INNER: 18432, "kv_lora_rank": 512, LENGTH: 32768,
         "moe_intermediate_size": 2048, "n_routed_experts": 192, "n_shared_experts": 1, HEADS: 64,
         "num_experts_per_tok": 8, LAYERS: 61, KV: 64, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
         "qk_rope_head_dim": 64, TIED: False, "v_head_dim": 128, WORDS: 163840},
        names={"num_local_experts": "n_routed_experts"}),
    "axk2": Row(
        {"head_dim": 64, HIDDEN: 2048, INNER: 5120, "kv_lora_rank": 128, LENGTH: 131072, "moe_intermediate_size": 512,
         "n_routed_experts": 128, "n_shared_experts": 1, HEADS: 32, "num_experts_per_tok": 8, LAYERS: 48, KV: 32,
         "q_lora_rank": 384, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, TIED: False, "v_head_dim": 64, WORDS:
         163840},
        names={"head_dim": "qk_rope_head_dim", "num_local_experts": "n_routed_experts"},
        layers=("indexed_attention",),
        adopted=True),
    "aya_vision": Row(
        {TIED: True},
        parts={"text_config": "cohere2", "vision_config": "siglip_vision_model"},
        missing={"vision_config": {HIDDEN: 1152, INNER: 4304, HEADS: 14, LAYERS: 26, "patch_size": 14}},
        adopted=True),
    "bagel": Row(
        {},
        parts={"llm_config": "qwen2", "vit_config": "siglip_vision_model"}),
    "bailing_moe_v3_vl": Row(
        {TIED: False},
        parts={"text_config": "bailing_moe_v3_vl/text_config", "vision_config": "qwen3_moe_vit"}),
    "bailing_moe_v3_vl/text_config": Row(
        {"first_k_dense_replace": 1, "head_dim": 128, HIDDEN: 2048, INNER: 5120, "kv_lora_rank": 512, LENGTH: 32768,
         "max_window_layers": 20, "model_type": "bailing_hybrid", "moe_intermediate_size": 512, HEADS: 16,
         "num_experts": 256, "num_experts_per_tok": 8, LAYERS: 20, KV: 4, "qk_nope_head_dim": 128, "qk_rope_head_dim":
         64, TIED: False, "v_head_dim": 128, WORDS: 157184}),
    "bamba": Row(
        {HIDDEN: 4096, INNER: 14336, "mamba_d_conv": 4, "mamba_d_head": "auto", "mamba_d_state": 256, "mamba_expand":
         2, "mamba_n_groups": 1, "mamba_n_heads": 128, LENGTH: 262144, HEADS: 32, LAYERS: 32, KV: 8, TIED: False,
         WORDS: 128000},
        names={"layer_types": "layers_block_type"},
        layers=("linear_attention",),
        adopted=True),
    "bart": Row(
        {"d_model": 1024, "encoder_attention_heads": 16, "encoder_ffn_dim": 4096, "encoder_layers": 12, LENGTH: 1024,
         TIED: True, WORDS: 50265},
        names={HIDDEN: "d_model", HEADS: "encoder_attention_heads", LAYERS: "encoder_layers"},
        adopted=True),
    "bert": Row(
        {HIDDEN: 768, INNER: 3072, LENGTH: 512, HEADS: 12, LAYERS: 12, TIED: True, WORDS: 30522}),
    "bert-generation": Row(
        {HIDDEN: 1024, INNER: 4096, LENGTH: 512, HEADS: 16, LAYERS: 24, TIED: True, WORDS: 50358},
        adopted=True),
    "bigbird_pegasus": Row(
        {"d_model": 1024, "encoder_attention_heads": 16, "encoder_ffn_dim": 4096, "encoder_layers": 16, LENGTH: 4096,
         TIED: True, WORDS: 96103},
        names={HIDDEN: "d_model", HEADS: "encoder_attention_heads", LAYERS: "encoder_layers"},
        adopted=True),
    "biogpt": Row(
        {HIDDEN: 1024, INNER: 4096, LENGTH: 1024, HEADS: 16, LAYERS: 24, TIED: True, WORDS: 42384},
        adopted=True),
    "bitnet": Row(
        {HIDDEN: 2560, INNER: 6912, LENGTH: 2048, HEADS: 20, LAYERS: 30, KV: 5, TIED: False, WORDS: 128256},
        adopted=True),
    "blenderbot": Row(
        {"d_model": 2560, "encoder_attention_heads": 32, "encoder_ffn_dim": 10240, "encoder_layers": 2, LENGTH: 128,
         TIED: True, WORDS: 8008},
        names={HIDDEN: "d_model", HEADS: "encoder_attention_heads", LAYERS: "encoder_layers"},
        adopted=True),
    "blenderbot-small": Row(
        {"d_model": 512, "encoder_attention_heads": 16, "encoder_ffn_dim": 2048, "encoder_layers": 8, LENGTH: 512,
         TIED: True, WORDS: 50265},
        names={HIDDEN: "d_model", HEADS: "encoder_attention_heads", LAYERS: "encoder_layers"},
        adopted=True),
    "blip-2": Row(
        {},
        parts={"qformer_config": "blip_2_qformer", "text_config": "opt", "vision_config": "blip_2_vision_model"}),
    "blip_2_qformer": Row(
        {HIDDEN: 768, INNER: 3072, LENGTH: 512, HEADS: 12, LAYERS: 12, WORDS: 30522}),
    "blip_2_vision_model": Row(
        {HIDDEN: 1408, INNER: 6144, HEADS: 16, LAYERS: 39, "patch_size": 14}),
    "bloom": Row(
        {HIDDEN: 64, "n_head": 8, "n_layer": 2, TIED: True, WORDS: 250880},
        names={HEADS: "n_head", LAYERS: "n_layer"}),
    "blt": Row(
        {LENGTH: 4096, "patch_size": 4, TIED: False, WORDS: 260},
        parts={"decoder_config": "blt_local_decoder", "encoder_config": "blt_local_encoder", "global_config":
               "blt_global_transformer", "patcher_config": "blt_patcher"},
        adopted=True),
    "blt_global_transformer": Row(
        {HIDDEN: 2048, INNER: 5632, LENGTH: 4096, HEADS: 16, LAYERS: 25, TIED: False},
        adopted=True),
    "blt_local_decoder": Row(
        {HIDDEN: 1024, INNER: 2816, LENGTH: 24576, HEADS: 16, LAYERS: 9, TIED: False, WORDS: 260},
        adopted=True),
    "blt_local_encoder": Row(
        {HIDDEN: 1024, LENGTH: 24576, HEADS: 16, LAYERS: 1, WORDS: 260},
        adopted=True),
    "blt_patcher": Row(
        {HIDDEN: 768, INNER: 2048, LENGTH: 8192, HEADS: 12, LAYERS: 14, TIED: False, WORDS: 260},
        adopted=True),
    "camembert": Row(
        {HIDDEN: 768, INNER: 3072, LENGTH: 512, HEADS: 12, LAYERS: 12, TIED: True, WORDS: 30522},
        adopted=True),
    "chameleon": Row(
        {HIDDEN: 4096, INNER: 11008, LENGTH: 4096, HEADS: 32, LAYERS: 32, KV: 32, TIED: False, WORDS: 65536},
        parts={"vq_config": "chameleon_vqgan"},
        adopted=True),
    "chameleon_vqgan": Row(
        {"embed_dim": 256},
        adopted=True),
    "chatglm": Row(
        {"ffn_hidden_size": 13696, HIDDEN: 4096, "multi_query_group_num": 1, HEADS: 32, "num_layers": 28,
         "seq_length": 2048},
        names={"n_head_kv": "multi_query_group_num", LAYERS: "num_layers"}),
    "clip": Row(
        {},
        parts={"text_config": "clip_text_model", "vision_config": "clip_vision_model"}),
    "clip_text_model": Row(
        {HIDDEN: 512, INNER: 2048, LENGTH: 77, HEADS: 8, LAYERS: 12, WORDS: 49408}),
    "clip_vision_model": Row(
        {HIDDEN: 768, INNER: 3072, HEADS: 12, LAYERS: 12, "patch_size": 32}),
    "cohere": Row(
        {HIDDEN: 8192, INNER: 22528, LENGTH: 8192, HEADS: 64, LAYERS: 40, TIED: True, WORDS: 256000}),
    "cohere2": Row(
        {HIDDEN: 8192, INNER: 22528, LENGTH: 8192, HEADS: 64, LAYERS: 40, "sliding_window": 4096, TIED: True, WORDS:
         256000},
        layers=("sliding_attention", "sliding_attention", "sliding_attention", "full_attention")),
    "cohere2_moe": Row(
        {"head_dim": 128, HIDDEN: 8192, INNER: 22528, LENGTH: 8192, HEADS: 64, "num_experts": 8,
         "num_experts_per_tok": 2, LAYERS: 40, "sliding_window": 4096, TIED: True, WORDS: 256000},
        layers=("sliding_attention", "sliding_attention", "sliding_attention", "full_attention")),
    "cohere2_vision": Row(
        {TIED: True},
        parts={"text_config": "cohere2", "vision_config": "siglip_vision_model"},
        missing={"vision_config": {HIDDEN: 1152, LAYERS: 27}}),
    "cohere_asr": Row(
        {HIDDEN: 1024, INNER: 4096, LENGTH: 1024, HEADS: 8, LAYERS: 8, TIED: False, WORDS: 16384},
        parts={"encoder_config": "cohere_asr/encoder_config"}),
    "cohere_asr/encoder_config": Row(
        {HIDDEN: 1280, INNER: 5120, LENGTH: 5000, "model_type": "parakeet_encoder", HEADS: 8, LAYERS: 48}),
    "cohere_compass": Row(
        {TIED: False},
        parts={"text_config": "cohere_compass_text", "vision_config": "cohere_compass_vision"}),
    "cohere_compass_text": Row(
        {HIDDEN: 8192, INNER: 22528, LENGTH: 8192, HEADS: 64, LAYERS: 40, "sliding_window": 4096, TIED: True, WORDS:
         256000},
        layers=("full_attention",)),
    "cohere_compass_vision": Row(
        {"depth": 27, HIDDEN: 1152, INNER: 4304, "num_heads": 16, "out_hidden_size": 3584, "patch_size": 16},
        names={HEADS: "num_heads"}),
    "colmodernvbert": Row(
        {},
        parts={"vlm_config": "colmodernvbert/vlm_config"}),
    "colmodernvbert/vlm_config": Row(
        {"model_type": "modernvbert", TIED: False, WORDS: 50368},
        parts={"text_config": "modernbert", "vision_config": "siglip_vision_model"}),
    "colpali": Row(
        {HIDDEN: 2048, TIED: True, WORDS: 257152},
        parts={"text_config": "colpali/text_config", "vision_config": "siglip_vision_model"},
        missing={"text_config": {"head_dim": 256, HIDDEN: 2048, INNER: 16384, HEADS: 8, LAYERS: 18, KV: 1, WORDS:
                 257152}, "vision_config": {HIDDEN: 1152, INNER: 4096, HEADS: 16, LAYERS: 27, "patch_size": 14, WORDS:
                 257152}}),
    "colpali/text_config": Row(
        {"head_dim": 256, HIDDEN: 3072, INNER: 24576, LENGTH: 8192, "model_type": "gemma", HEADS: 16, LAYERS: 28, KV:
         16, TIED: True, WORDS: 256000}),
    "colqwen3": Row(
        {TIED: False},
        parts={"text_config": "qwen3_vl_text", "vision_config": "qwen3_vl_vision"}),
    "cosmos3_edge": Row(
        {TIED: False},
        parts={"projector_config": "cosmos3_edge_projector", "text_config": "cosmos3_edge/text_config",
               "vision_config": "cosmos3_edge/vision_config"}),
    "cosmos3_edge/text_config": Row(
        {"conv_kernel": 4, "expand": 2, "head_dim": 128, HIDDEN: 4096, INNER: 21504, "mamba_head_dim": 64,
         "mamba_num_heads": 128, "mamba_ssm_cache_dtype": "float32", LENGTH: 4096, "model_type": "cosmos3_edge_text",
         "moe_intermediate_size": 7688, "n_groups": 8, "n_routed_experts": 8, "n_shared_experts": 1, HEADS: 32,
         "num_experts_per_tok": 2, LAYERS: 28, KV: 8, "ssm_state_size": 128, TIED: False, WORDS: 131072},
        names={"layer_types": "layers_block_type", "num_local_experts": "n_routed_experts"}),
    "cosmos3_edge/vision_config": Row(
        {HIDDEN: 768, INNER: 3072, "model_type": "cosmos3_edge_vision", HEADS: 12, LAYERS: 12, "out_hidden_size":
         1024, "patch_size": 16}),
    "cosmos3_omni": Row(
        {TIED: False},
        parts={"text_config": "qwen3_vl_text", "vision_config": "qwen3_vl_vision"},
        adopted=True),
    "ctrl": Row(
        {"n_embd": 1280, "n_head": 16, "n_layer": 48, "n_positions": 256, TIED: True, WORDS: 246534},
        names={HIDDEN: "n_embd", LENGTH: "n_positions", HEADS: "n_head", LAYERS: "n_layer"},
        adopted=True),
    "cwm": Row(
        {"head_dim": 128, HIDDEN: 6144, INNER: 21504, LENGTH: 131072, HEADS: 48, LAYERS: 64, KV: 8, "sliding_window":
         8192, TIED: False, WORDS: 128256},
        layers=("full_attention", "sliding_attention", "sliding_attention", "sliding_attention")),
    "data2vec-text": Row(
        {HIDDEN: 768, INNER: 3072, LENGTH: 512, HEADS: 12, LAYERS: 12, TIED: True, WORDS: 30522},
        adopted=True),
    "dbrx": Row(
        {"d_model": 2048, "max_seq_len": 2048, "n_heads": 16, "n_layers": 24, TIED: False, WORDS: 32000},
        names={HIDDEN: "d_model", LENGTH: "max_seq_len", HEADS: "n_heads", LAYERS: "n_layers"}),
    "deepseek_ocr2": Row(
        {TIED: False},
        parts={"text_config": "deepseek_ocr2_text", "vision_config": "deepseek_ocr2_vision"},
        adopted=True),
    "deepseek_ocr2_encoder": Row(
        {HIDDEN: 4096, INNER: 22016, LENGTH: 32768, "max_window_layers": 28, HEADS: 32, LAYERS: 32, KV: 32,
         "sliding_window": 4096, TIED: False, "use_sliding_window": False, WORDS: 151936},
        layers=("full_attention",),
        adopted=True),
    "deepseek_ocr2_sam_vision_model": Row(
        {HIDDEN: 768, "mlp_ratio": 4.0, HEADS: 12, LAYERS: 12, "patch_size": 16},
        adopted=True),
    "deepseek_ocr2_text": Row(
        {HIDDEN: 4096, INNER: 11008, LENGTH: 2048, "moe_intermediate_size": 1407, "n_routed_experts": 64,
         "n_shared_experts": 2, HEADS: 32, LAYERS: 32, TIED: False, WORDS: 102400},
        names={"num_experts": "n_routed_experts"},
        adopted=True),
    "deepseek_ocr2_vision": Row(
        {},
        parts={"encoder_config": "deepseek_ocr2_encoder", "sam_config": "deepseek_ocr2_sam_vision_model"},
        adopted=True),
    "deepseek_v2": Row(
        {"head_dim": 64, HIDDEN: 4096, INNER: 11008, "kv_lora_rank": 512, LENGTH: 2048, "moe_intermediate_size": 1407,
         "n_routed_experts": 64, "n_shared_experts": 2, HEADS: 32, LAYERS: 32, "q_lora_rank": 1536,
         "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, TIED: False, "v_head_dim": 128, WORDS: 102400},
        names={"head_dim": "qk_rope_head_dim", "num_experts": "n_routed_experts"}),
    "deepseek_v3": Row(
        {"first_k_dense_replace": 3, "head_dim": 64, HIDDEN: 7168, INNER: 18432, "kv_lora_rank": 512, LENGTH: 4096,
         "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1, HEADS: 128,
         "num_experts_per_tok": 8, LAYERS: 61, KV: 128, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
         "qk_rope_head_dim": 64, TIED: False, "v_head_dim": 128, WORDS: 129280},
        names={"num_local_experts": "n_routed_experts"}),
    "deepseek_v32": Row(
        {"first_k_dense_replace": 3, "head_dim": 64, HIDDEN: 7168, INNER: 18432, "kv_lora_rank": 512, LENGTH: 4096,
         "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1, HEADS: 128,
         "num_experts_per_tok": 8, LAYERS: 61, KV: 128, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
         "qk_rope_head_dim": 64, TIED: False, "v_head_dim": 128, WORDS: 129280},
        names={"num_local_experts": "n_routed_experts"}),
    "deepseek_v4": Row(
        {LENGTH: 1048576}),
    "deepseek_vl": Row(
        {TIED: True},
        parts={"text_config": "llama", "vision_config": "siglip_vision_model"},
        adopted=True),
    "deepseek_vl_hybrid": Row(
        {TIED: True},
        parts={"high_res_vision_config": "sam_vision_model", "text_config": "llama", "vision_config":
               "siglip_vision_model"},
        adopted=True),
    "deepseek_vl_v2": Row(
        {},
        parts={"projector_config": "mlp_projector", "text_config": "deepseek_vl_v2/text_config", "vision_config":
               "vision"}),
    "deepseek_vl_v2/text_config": Row(
        {"head_dim": 64, HIDDEN: 4096, INNER: 11008, "kv_lora_rank": 512, LENGTH: 2048, "model_type": "deepseek_v2",
         "moe_intermediate_size": 1407, "n_routed_experts": 64, "n_shared_experts": 2, HEADS: 32, LAYERS: 32,
         "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, TIED: False, "v_head_dim": 128, WORDS:
         102400},
        names={"head_dim": "qk_rope_head_dim", "num_experts": "n_routed_experts"}),
    "diffllama": Row(
        {HIDDEN: 2048, INNER: 8192, LENGTH: 2048, HEADS: 32, LAYERS: 16, TIED: False, WORDS: 32000},
        adopted=True),
    "diffusion_gemma": Row(
        {TIED: True},
        parts={"text_config": "diffusion_gemma_text"}),
    "diffusion_gemma_text": Row(
        {"head_dim": 256, HIDDEN: 2304, INNER: 9216, LENGTH: 131072, HEADS: 8, LAYERS: 30, KV: 4, "sliding_window":
         512, TIED: True, WORDS: 262144},
        layers=("sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
                "sliding_attention", "full_attention"),
        sizes={"full_attention": {"head_dim": 512}}),
    "distilbert": Row(
        {"dim": 768, LENGTH: 512, "n_heads": 12, "n_layers": 6, TIED: True, WORDS: 30522},
        names={HIDDEN: "dim", HEADS: "n_heads", LAYERS: "n_layers"},
        adopted=True),
    "doge": Row(
        {HIDDEN: 1024, INNER: 2048, LENGTH: 2048, HEADS: 8, "num_experts": 16384, "num_experts_per_tok": 64, LAYERS:
         32, TIED: False, WORDS: 32768},
        adopted=True),
    "dots1": Row(
        {HIDDEN: 4608, INNER: 10944, LENGTH: 2048, "max_window_layers": 62, "moe_intermediate_size": 1408, HEADS: 32,
         LAYERS: 62, KV: 32, "sliding_window": 4096, TIED: False, WORDS: 152064},
        names={"num_local_experts": "n_routed_experts"},
        adopted=True),
    "dots3_note": Row(
        {"first_k_dense_replace": 3, "head_dim": 64, HIDDEN: 7168, INNER: 18432, "kv_lora_rank": 512, LENGTH: 4096,
         "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1, HEADS: 128,
         "num_experts_per_tok": 8, LAYERS: 61, KV: 128, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
         "qk_rope_head_dim": 64, TIED: False, "v_head_dim": 128, WORDS: 129280},
        names={"num_local_experts": "n_routed_experts"}),
    "electra": Row(
        {HIDDEN: 256, INNER: 1024, LENGTH: 512, HEADS: 4, LAYERS: 12, TIED: True, WORDS: 30522},
        adopted=True),
    "embedding_gemma2": Row(
        {},
        parts={"text_config": "embedding_gemma2_text"}),
    "embedding_gemma2_text": Row(
        {"head_dim": 256, HIDDEN: 512, INNER: 2048, LENGTH: 262144, HEADS: 4, LAYERS: 24, KV: 2, "sliding_window":
         512, WORDS: 262144},
        layers=("sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
                "sliding_attention", "full_attention"),
        sizes={"full_attention": {"head_dim": 512, KV: 1}}),
    "emu3": Row(
        {TIED: False},
        parts={"text_config": "emu3_text_model", "vq_config": "emu3_vqgan"}),
    "emu3_text_model": Row(
        {HIDDEN: 4096, INNER: 14336, LENGTH: 9216, HEADS: 32, LAYERS: 32, KV: 8, TIED: False, WORDS: 184622}),
    "emu3_vqgan": Row(
        {"embed_dim": 4, HIDDEN: 1024, HEADS: 1}),
    "ernie": Row(
        {HIDDEN: 768, INNER: 3072, LENGTH: 512, HEADS: 12, LAYERS: 12, TIED: True, WORDS: 30522},
        adopted=True),
    "ernie4_5": Row(
        {"head_dim": 128, HIDDEN: 1024, INNER: 3072, LENGTH: 131072, HEADS: 16, LAYERS: 18, KV: 2, TIED: True, WORDS:
         103424}),
    "ernie4_5_moe": Row(
        {HIDDEN: 2560, INNER: 12288, LENGTH: 131072, "moe_intermediate_size": 1536, "moe_k": 6, "moe_num_experts": 64,
         HEADS: 20, LAYERS: 28, KV: 4, TIED: True, WORDS: 103424},
        names={"num_experts": "moe_num_experts", "num_experts_per_tok": "moe_k"}),
    "ernie4_5_vl_moe": Row(
        {TIED: True},
        parts={"text_config": "ernie4_5_vl_moe_text", "vision_config": "ernie4_5_vl_moe_vision"}),
    "ernie4_5_vl_moe_text": Row(
        {HIDDEN: 2560, INNER: 12288, LENGTH: 131072, "moe_k": 6, "moe_num_experts": 64, HEADS: 20, LAYERS: 28, KV: 4,
         TIED: True, WORDS: 103424},
        names={"num_experts": "moe_num_experts", "num_experts_per_tok": "moe_k"}),
    "ernie4_5_vl_moe_vision": Row(
        {"depth": 32, HIDDEN: 1280, INNER: 5120, "num_heads": 16, "patch_size": 14},
        names={HEADS: "num_heads"}),
    "esm": Row(
        {HIDDEN: 768, INNER: 3072, LENGTH: 1026, HEADS: 12, LAYERS: 12, TIED: True},
        adopted=True),
    "esmc": Row(
        {HIDDEN: 2560, INNER: 6912, LENGTH: 2048, HEADS: 40, LAYERS: 80, TIED: False, WORDS: 64},
        adopted=True),
    "eurobert": Row(
        {HIDDEN: 768, INNER: 3072, LENGTH: 8192, HEADS: 12, LAYERS: 12, TIED: False, WORDS: 128256},
        adopted=True),
    "evolla": Row(
        {HIDDEN: 4096, INNER: 14336, LENGTH: 8192, HEADS: 32, LAYERS: 32, KV: 8, TIED: False, WORDS: 128256},
        adopted=True),
    "exaone4": Row(
        {HIDDEN: 4096, INNER: 16384, LENGTH: 2048, HEADS: 32, LAYERS: 32, KV: 32, "sliding_window": 4096, TIED: False,
         WORDS: 102400},
        layers=("sliding_attention", "sliding_attention", "sliding_attention", "full_attention")),
    "exaone4_5": Row(
        {TIED: False},
        parts={"text_config": "exaone4", "vision_config": "exaone4_5_vision"}),
    "exaone4_5_vision": Row(
        {"depth": 32, HIDDEN: 3584, INNER: 3420, "num_heads": 16, KV: 8, "out_hidden_size": 3584, "patch_size": 14},
        names={HEADS: "num_heads"}),
    "exaone_moe": Row(
        {"first_k_dense_replace": 1, HIDDEN: 4096, INNER: 16384, LENGTH: 2048, "moe_intermediate_size": 1024, HEADS:
         32, "num_experts": 64, "num_experts_per_tok": 8, LAYERS: 32, KV: 32, "sliding_window": 4096, TIED: False,
         WORDS: 102400},
        layers=("sliding_attention", "sliding_attention", "sliding_attention", "full_attention")),
    "falcon": Row(
        {HIDDEN: 4544, LENGTH: 2048, "multi_query": True, HEADS: 71, LAYERS: 32, TIED: True, WORDS: 65024}),
    "falcon_h1": Row(
        {HIDDEN: 4096, INNER: 14336, "mamba_d_conv": 4, "mamba_d_head": "auto", "mamba_d_ssm": 1024, "mamba_d_state":
         256, "mamba_expand": 2, "mamba_n_groups": 1, "mamba_n_heads": 128, LENGTH: 8192, HEADS: 32, LAYERS: 32, KV:
         8, TIED: False, WORDS: 128000},
        names={"layer_types": "layers_block_type"},
        layers=("hybrid",)),
    "falcon_mamba": Row(
        {"conv_kernel": 4, "expand": 2, HIDDEN: 768, LAYERS: 32, "state_size": 16, TIED: True, WORDS: 50280},
        layers=("linear_attention",)),
    "fast_vlm": Row(
        {TIED: False},
        parts={"text_config": "qwen2", "vision_config": "timm_wrapper"},
        missing={"text_config": {HIDDEN: 3584, INNER: 18944, HEADS: 28, LAYERS: 28, KV: 4, WORDS: 152128},
                 "vision_config": {HIDDEN: 3072}},
        adopted=True),
    "flex_olmo": Row(
        {HIDDEN: 4096, INNER: 11008, LENGTH: 4096, HEADS: 32, "num_experts": 7, "num_experts_per_tok": 5, LAYERS: 32,
         TIED: False, WORDS: 100352},
        names={"num_local_experts": "num_experts"}),
    "fnet": Row(
        {HIDDEN: 768, INNER: 3072, LENGTH: 512, LAYERS: 12, TIED: True, WORDS: 32000},
        adopted=True),
    "fun_asr_nano": Row(
        {TIED: True},
        parts={"audio_config": "fun_asr_nano_encoder", "text_config": "qwen3"},
        missing={"text_config": {"head_dim": 128, HIDDEN: 1024, INNER: 3072, LENGTH: 40960, HEADS: 16, LAYERS: 28, KV:
                 8, TIED: True}},
        adopted=True),
    "fun_asr_nano_encoder": Row(
        {HIDDEN: 512, INNER: 2048, LENGTH: 2049, HEADS: 4, LAYERS: 70},
        adopted=True),
    "funaudiochat": Row(
        {},
        parts={"audio_config": "funaudiochat_audio_encoder", "text_config": "qwen2"}),
    "fuyu": Row(
        {HIDDEN: 4096, INNER: 16384, LENGTH: 16384, HEADS: 64, LAYERS: 36, "patch_size": 30, TIED: False, WORDS:
         262144},
        parts={"text_config": "persimmon"},
        adopted=True),
    "gemma": Row(
        {"head_dim": 256, HIDDEN: 3072, INNER: 24576, LENGTH: 8192, HEADS: 16, LAYERS: 28, KV: 16, TIED: True, WORDS:
         256000}),
    "gemma2": Row(
        {"head_dim": 256, HIDDEN: 2304, INNER: 9216, LENGTH: 8192, HEADS: 8, LAYERS: 26, KV: 4, "sliding_window":
         4096, TIED: True, WORDS: 256000},
        layers=("sliding_attention", "full_attention")),
    "gemma3": Row(
        {TIED: True},
        parts={"text_config": "gemma3_text", "vision_config": "siglip_vision_model"}),
    "gemma3_text": Row(
        {"head_dim": 256, HIDDEN: 2304, INNER: 9216, LENGTH: 131072, HEADS: 8, LAYERS: 26, KV: 4, "sliding_window":
         4096, TIED: True, WORDS: 262208},
        layers=("sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
                "sliding_attention", "full_attention")),
    "gemma3n": Row(
        {TIED: True},
        parts={"audio_config": "gemma3n_audio", "text_config": "gemma3n_text", "vision_config": "gemma3n_vision"}),
    "gemma3n_audio": Row(
        {HIDDEN: 1536, WORDS: 128}),
    "gemma3n_text": Row(
        {"head_dim": 256, HIDDEN: 2048, INNER: 16384, LENGTH: 32768, HEADS: 8, LAYERS: 35, KV: 2,
         "num_kv_shared_layers": 15, "sliding_window": 512, TIED: True, WORDS: 262400},
        layers=("sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention")),
    "gemma3n_vision": Row(
        {HIDDEN: 2048, WORDS: 128}),
    "gemma4": Row(
        {TIED: True},
        parts={"audio_config": "gemma4_audio", "text_config": "gemma4_text", "vision_config": "gemma4_vision"}),
    "gemma4_assistant": Row(
        {TIED: True},
        adopted=True),
    "gemma4_audio": Row(
        {"attention_chunk_size": 12, HIDDEN: 1024, HEADS: 8, LAYERS: 12}),
    "gemma4_text": Row(
        {"head_dim": 256, HIDDEN: 2304, INNER: 9216, LENGTH: 131072, HEADS: 8, LAYERS: 30, KV: 4, "sliding_window":
         512, TIED: True, WORDS: 262144},
        layers=("sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
                "sliding_attention", "full_attention"),
        sizes={"full_attention": {"head_dim": 512}}),
    "gemma4_unified": Row(
        {TIED: True},
        parts={"audio_config": "gemma4_unified_audio", "text_config": "gemma4_unified_text", "vision_config":
               "gemma4_unified_vision"}),
    "gemma4_unified_assistant": Row(
        {TIED: True},
        adopted=True),
    "gemma4_unified_text": Row(
        {"head_dim": 256, HIDDEN: 2304, INNER: 9216, LENGTH: 262144, HEADS: 8, LAYERS: 30, KV: 4, "sliding_window":
         1024, TIED: True, WORDS: 262144},
        layers=("sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
                "sliding_attention", "full_attention"),
        sizes={"full_attention": {"head_dim": 512}}),
    "gemma4_unified_vision": Row(
        {"patch_size": 16}),
    "gemma4_vision": Row(
        {"head_dim": 64, HIDDEN: 768, INNER: 3072, LENGTH: 131072, HEADS: 12, LAYERS: 16, KV: 12, "patch_size": 16}),
    "git": Row(
        {HIDDEN: 768, INNER: 3072, LENGTH: 1024, HEADS: 12, LAYERS: 6, TIED: False, WORDS: 30522},
        parts={"vision_config": "git_vision_model"},
        adopted=True),
    "git_vision_model": Row(
        {HIDDEN: 768, INNER: 3072, HEADS: 12, LAYERS: 12, "patch_size": 16},
        adopted=True),
    "glm": Row(
        {"head_dim": 128, HIDDEN: 4096, INNER: 13696, LENGTH: 131072, HEADS: 32, LAYERS: 40, KV: 2, TIED: False,
         WORDS: 151552}),
    "glm4": Row(
        {"head_dim": 128, HIDDEN: 4096, INNER: 13696, LENGTH: 131072, HEADS: 32, LAYERS: 40, KV: 2, TIED: False,
         WORDS: 151552}),
    "glm46v": Row(
        {TIED: False},
        parts={"text_config": "glm4v_text", "vision_config": "glm4v_vision"},
        adopted=True),
    "glm4_moe": Row(
        {"first_k_dense_replace": 1, HIDDEN: 4096, INNER: 10944, LENGTH: 131072, "moe_intermediate_size": 1408,
         "n_routed_experts": 128, "n_shared_experts": 1, HEADS: 96, "num_experts_per_tok": 8, LAYERS: 46, KV: 8, TIED:
         False, WORDS: 151552},
        names={"num_local_experts": "n_routed_experts"}),
    "glm4_moe_lite": Row(
        {"head_dim": 64, HIDDEN: 2048, INNER: 10240, "kv_lora_rank": 512, LENGTH: 202752, "moe_intermediate_size":
         1536, "n_routed_experts": 64, "n_shared_experts": 1, HEADS: 20, "num_experts_per_tok": 4, LAYERS: 47, KV: 20,
         "q_lora_rank": 768, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, TIED: False, "v_head_dim": 256, WORDS:
         154880},
        names={"head_dim": "qk_rope_head_dim", "num_local_experts": "n_routed_experts"}),
    "glm4v": Row(
        {TIED: False},
        parts={"text_config": "glm4v_text", "vision_config": "glm4v_vision"}),
    "glm4v_moe": Row(
        {TIED: False},
        parts={"text_config": "glm4v_moe_text", "vision_config": "glm4v_moe_vision"}),
    "glm4v_moe_text": Row(
        {"first_k_dense_replace": 1, HIDDEN: 4096, INNER: 10944, LENGTH: 65536, "moe_intermediate_size": 1408,
         "n_routed_experts": 128, "n_shared_experts": 1, HEADS: 96, "num_experts_per_tok": 8, LAYERS: 46, KV: 8, TIED:
         False, WORDS: 151424},
        names={"num_local_experts": "n_routed_experts"}),
    "glm4v_moe_vision": Row(
        {"depth": 24, HIDDEN: 1536, INNER: 13696, "num_heads": 12, "out_hidden_size": 4096, "patch_size": 14},
        names={HEADS: "num_heads"}),
    "glm4v_text": Row(
        {HIDDEN: 4096, INNER: 13696, LENGTH: 32768, HEADS: 32, LAYERS: 40, KV: 2, WORDS: 151552}),
    "glm4v_vision": Row(
        {"depth": 24, HIDDEN: 1536, INNER: 13696, "num_heads": 12, "out_hidden_size": 4096, "patch_size": 14},
        names={HEADS: "num_heads"}),
    "glm5_next": Row(
        {TIED: False},
        parts={"text_config": "glm5_next_text", "vision_config": "glm5_next_vision"}),
    "glm5_next_text": Row(
        {HIDDEN: 4096, INNER: 12288, "kv_lora_rank": 512, "linear_conv_kernel_dim": 4, LENGTH: 1048576,
         "moe_intermediate_size": 2048, "n_routed_experts": 288, "n_shared_experts": 1, HEADS: 64,
         "num_experts_per_tok": 8, LAYERS: 45, KV: 64, "q_lora_rank": 1536, "qk_nope_head_dim": 256, TIED: False,
         "v_head_dim": 256, WORDS: 154880},
        names={"num_local_experts": "n_routed_experts"},
        layers=("linear_attention", "linear_attention", "linear_attention", "indexed_attention")),
    "glm5_next_vision": Row(
        {"depth": 24, HIDDEN: 1024, INNER: 4096, "num_heads": 16, "out_hidden_size": 1536, "patch_size": 14},
        names={HEADS: "num_heads"}),
    "glm_moe_dsa": Row(
        {"first_k_dense_replace": 3, "head_dim": 64, HIDDEN: 6144, INNER: 12288, "kv_lora_rank": 512, LENGTH: 202752,
         "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1, HEADS: 64,
         "num_experts_per_tok": 8, LAYERS: 78, KV: 64, "q_lora_rank": 2048, "qk_nope_head_dim": 192,
         "qk_rope_head_dim": 64, TIED: False, "v_head_dim": 256, WORDS: 154880},
        names={"head_dim": "qk_rope_head_dim", "num_local_experts": "n_routed_experts"},
        layers=("indexed_attention",)),
    "glm_ocr": Row(
        {TIED: False},
        parts={"text_config": "glm_ocr_text", "vision_config": "glm_ocr_vision"}),
    "glm_ocr_text": Row(
        {HIDDEN: 1024, INNER: 4096, LENGTH: 131072, HEADS: 16, LAYERS: 16, KV: 8, WORDS: 59392}),
    "glm_ocr_vision": Row(
        {"depth": 24, HIDDEN: 1024, INNER: 4096, "num_heads": 16, "out_hidden_size": 1536, "patch_size": 14},
        names={HEADS: "num_heads"}),
    "glmasr": Row(
        {TIED: True},
        parts={"audio_config": "glmasr_encoder", "text_config": "glmasr/text_config"}),
    "glmasr/text_config": Row(
        {HIDDEN: 2048, INNER: 6144, LENGTH: 8192, "model_type": "llama", HEADS: 16, LAYERS: 28, KV: 4, TIED: False,
         WORDS: 59264}),
    "glmasr_encoder": Row(
        {HIDDEN: 1280, INNER: 5120, LENGTH: 1500, HEADS: 20, LAYERS: 32}),
    "glmga": Row(
        {TIED: False},
        parts={"text_config": "glm4v_text", "vision_config": "glm4v_vision"},
        adopted=True),
    "got_ocr2": Row(
        {TIED: True},
        parts={"text_config": "qwen2"},
        missing={"text_config": {HIDDEN: 1024, INNER: 2816, "max_window_layers": 21, HEADS: 16, LAYERS: 24, KV: 16,
                 TIED: True, WORDS: 151860}},
        adopted=True),
    "gpt-sw3": Row(
        {"n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, TIED: True, WORDS: 50257},
        names={HIDDEN: "n_embd", LENGTH: "n_positions", HEADS: "n_head", LAYERS: "n_layer"}),
    "gpt2": Row(
        {"n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, TIED: True, WORDS: 50257},
        names={HIDDEN: "n_embd", LENGTH: "n_positions", HEADS: "n_head", LAYERS: "n_layer"}),
    "gpt_bigcode": Row(
        {"multi_query": True, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, TIED: True, WORDS:
         50257},
        names={HIDDEN: "n_embd", LENGTH: "n_positions", HEADS: "n_head", LAYERS: "n_layer"}),
    "gpt_neox": Row(
        {HIDDEN: 6144, INNER: 24576, LENGTH: 2048, HEADS: 64, LAYERS: 44, TIED: False, WORDS: 50432}),
    "gpt_oss": Row(
        {"head_dim": 64, HIDDEN: 2880, INNER: 2880, LENGTH: 131072, HEADS: 64, "num_experts_per_tok": 4, LAYERS: 36,
         KV: 8, "num_local_experts": 128, "sliding_window": 128, TIED: False, WORDS: 201088},
        names={"num_experts": "num_local_experts"},
        layers=("sliding_attention", "full_attention")),
    "gptj": Row(
        {"n_embd": 4096, "n_head": 16, "n_layer": 28, "n_positions": 2048, TIED: False, WORDS: 50400},
        names={HIDDEN: "n_embd", LENGTH: "n_positions", HEADS: "n_head", LAYERS: "n_layer"}),
    "granite": Row(
        {HIDDEN: 4096, INNER: 11008, LENGTH: 2048, HEADS: 32, LAYERS: 32, TIED: False, WORDS: 32000}),
    "granite4_vision": Row(
        {TIED: False},
        parts={"qformer_config": "blip_2_qformer", "text_config": "llama", "vision_config": "siglip_vision_model"},
        missing={"qformer_config": {LENGTH: 2048, LAYERS: 1}}),
    "granite_speech": Row(
        {TIED: True},
        parts={"encoder_config": "granite_speech_encoder", "projector_config": "blip_2_qformer", "text_config":
               "granite"}),
    "granite_speech_encoder": Row(
        {"hidden_dim": 1024, "num_heads": 8, "num_layers": 10},
        names={HIDDEN: "hidden_dim", HEADS: "num_heads", LAYERS: "num_layers"}),
    "granite_speech_plus": Row(
        {TIED: True},
        parts={"encoder_config": "granite_speech_plus_encoder", "projector_config": "blip_2_qformer", "text_config":
               "granite"}),
    "granite_speech_plus_encoder": Row(
        {"hidden_dim": 1024, "num_heads": 8, "num_layers": 10},
        names={HIDDEN: "hidden_dim", HEADS: "num_heads", LAYERS: "num_layers"}),
    "granite_swa": Row(
        {HIDDEN: 2560, INNER: 8192, LENGTH: 8192, HEADS: 20, LAYERS: 24, KV: 4, "sliding_window": 128, TIED: True,
         WORDS: 100352},
        layers=("full_attention", "sliding_attention", "sliding_attention", "sliding_attention")),
    "granitemoe": Row(
        {HIDDEN: 4096, INNER: 11008, LENGTH: 2048, HEADS: 32, "num_experts_per_tok": 2, LAYERS: 32,
         "num_local_experts": 8, TIED: False, WORDS: 32000}),
    "granitemoe_swa": Row(
        {HIDDEN: 4096, INNER: 11008, LENGTH: 2048, HEADS: 32, "num_experts_per_tok": 2, LAYERS: 32,
         "num_local_experts": 8, "sliding_window": 128, TIED: False, WORDS: 32000},
        layers=("full_attention", "sliding_attention", "sliding_attention", "sliding_attention")),
    "granitemoehybrid": Row(
        {HIDDEN: 4096, INNER: 11008, "mamba_d_conv": 4, "mamba_d_head": "auto", "mamba_d_state": 256, "mamba_expand":
         2, "mamba_n_groups": 1, "mamba_n_heads": 128, LENGTH: 2048, HEADS: 32, "num_experts_per_tok": 2, LAYERS: 32,
         "num_local_experts": 8, TIED: False, WORDS: 32000},
        names={"layers_block_type": "layer_types"},
        layers=("linear_attention",)),
    "granitemoeshared": Row(
        {HIDDEN: 4096, INNER: 11008, LENGTH: 2048, HEADS: 32, "num_experts_per_tok": 2, LAYERS: 32,
         "num_local_experts": 8, TIED: False, WORDS: 32000}),
    "gte": Row(
        {HIDDEN: 768, INNER: 3072, LENGTH: 8192, HEADS: 12, LAYERS: 12, TIED: True, WORDS: 250048}),
    "helium": Row(
        {"head_dim": 128, HIDDEN: 2560, INNER: 7040, LENGTH: 4096, HEADS: 20, LAYERS: 24, KV: 20, TIED: False, WORDS:
         48000},
        adopted=True),
    "hrm_text": Row(
        {"H_cycles": 2, "L_cycles": 3, "head_dim": 128, HIDDEN: 1536, INNER: 4096, LENGTH: 2048, HEADS: 12, LAYERS:
         16, TIED: False, WORDS: 151808}),
    "hunyuan_v1_dense": Row(
        {HIDDEN: 4096, INNER: 11008, LENGTH: 2048, HEADS: 32, LAYERS: 32, TIED: False, WORDS: 290943}),
    "hunyuan_v1_moe": Row(
        {HIDDEN: 4096, INNER: 11008, LENGTH: 2048, "moe_topk": 1, HEADS: 32, "num_experts": 1, LAYERS: 32, TIED:
         False, WORDS: 290943},
        names={"num_experts_per_tok": "moe_topk", "num_local_experts": "num_experts"}),
    "hunyuan_vl": Row(
        {TIED: True},
        parts={"text_config": "hunyuan_vl_text", "vision_config": "hunyuan_vl_vision"}),
    "hunyuan_vl_text": Row(
        {HIDDEN: 4096, INNER: 11008, LENGTH: 2048, HEADS: 32, LAYERS: 32, TIED: True, WORDS: 290943},
        names={"attention_head_dim": "head_dim", "org_vocab_size": "vocab_size"}),
    "hunyuan_vl_vision": Row(
        {HIDDEN: 1152, INNER: 4304, HEADS: 16, LAYERS: 27, "out_hidden_size": 4096, "patch_size": 16},
        names={"attention_heads": "num_attention_heads"}),
    "hy_v3": Row(
        {"head_dim": 128, HIDDEN: 4096, INNER: 13312, LENGTH: 131072, "moe_intermediate_size": 1536, HEADS: 64,
         "num_experts": 192, "num_experts_per_tok": 8, LAYERS: 80, KV: 8, TIED: False, WORDS: 120832},
        names={"num_local_experts": "num_experts"}),
    "hy_v4": Row(
        {"head_dim": 256, HIDDEN: 2816, INNER: 6912, "kv_lora_rank": 512, LENGTH: 262144, "moe_intermediate_size":
         768, "n_routed_experts": 256, "n_shared_experts": 1, HEADS: 32, "num_experts_per_tok": 8, LAYERS: 34, KV: 32,
         "q_lora_rank": 1536, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, TIED: False, "v_head_dim": 256, WORDS:
         120832},
        names={"head_dim": "qk_rope_head_dim", "num_local_experts": "n_routed_experts"}),
    "hyperclovax": Row(
        {HIDDEN: 4096, INNER: 11008, LENGTH: 2048, HEADS: 32, LAYERS: 32, TIED: False, WORDS: 32000}),
    "hyperclovax_vision_v2": Row(
        {TIED: True},
        parts={"text_config": "hyperclovax", "vision_config": "qwen2_5_vl_vision"},
        adopted=True),
    "idefics": Row(
        {HIDDEN: 4096, INNER: 11008, LENGTH: 2048, HEADS: 32, LAYERS: 32, TIED: False, WORDS: 32000},
        parts={"perceiver_config": "idefics_perciever", "vision_config": "idefics_vision"},
        adopted=True),
    "idefics2": Row(
        {TIED: False},
        parts={"perceiver_config": "idefics2_perceiver", "text_config": "mistral", "vision_config": "idefics2_vision"},
        missing={"text_config": {"head_dim": 128, LENGTH: 32768}},
        adopted=True),
    "idefics2_perceiver": Row(
        {HIDDEN: 4096, KV: 4},
        adopted=True),
    "idefics2_vision": Row(
        {HIDDEN: 768, INNER: 3072, HEADS: 12, LAYERS: 12, "patch_size": 32},
        adopted=True),
    "idefics3": Row(
        {TIED: False},
        parts={"text_config": "llama", "vision_config": "idefics3_vision"},
        missing={"text_config": {"head_dim": 128}}),
    "idefics3_vision": Row(
        {HIDDEN: 1152, INNER: 3072, HEADS: 16, LAYERS: 12, "patch_size": 32}),
    "idefics_perciever": Row(
        {},
        adopted=True),
    "idefics_vision": Row(
        {"embed_dim": 768, INNER: 5120, HEADS: 16, LAYERS: 32, "patch_size": 14},
        names={HIDDEN: "embed_dim"},
        adopted=True),
    "inkling_mm_model": Row(
        {HEADS: 12, LAYERS: 16, TIED: False},
        parts={"audio_config": "inkling_audio_model", "text_config": "inkling_model", "vision_config":
               "inkling_vision_model"}),
    "inkling_model": Row(
        {HIDDEN: 1536, INNER: 768, HEADS: 12, "num_experts_per_tok": 1, LAYERS: 16, KV: 4, TIED: False, WORDS: 201024}),
    "inkling_text": Row(
        {"head_dim": 128, HIDDEN: 6144, INNER: 24576, LENGTH: 131072, "moe_intermediate_size": 3072,
         "n_routed_experts": 256, "n_shared_experts": 2, HEADS: 64, "num_experts_per_tok": 6, LAYERS: 66, KV: 8,
         "sliding_window_size": 512, WORDS: 201024},
        names={"model_max_length": "max_position_embeddings", "num_local_experts": "n_routed_experts",
               "sliding_window": "sliding_window_size"},
        layers=("hybrid_sliding", "hybrid_sliding", "hybrid_sliding", "hybrid_sliding", "hybrid_sliding", "hybrid")),
    "instructblip": Row(
        {},
        parts={"qformer_config": "instructblip_qformer", "text_config": "opt", "vision_config":
               "instructblip_vision_model"},
        adopted=True),
    "instructblip_qformer": Row(
        {HIDDEN: 768, INNER: 3072, LENGTH: 512, HEADS: 12, LAYERS: 12, WORDS: 30522},
        adopted=True),
    "instructblip_vision_model": Row(
        {HIDDEN: 1408, INNER: 6144, HEADS: 16, LAYERS: 39, "patch_size": 14},
        adopted=True),
    "instructblipvideo": Row(
        {},
        parts={"qformer_config": "instructblipvideo_qformer", "text_config": "opt", "vision_config":
               "instructblipvideo_vision_model"},
        adopted=True),
    "instructblipvideo_qformer": Row(
        {HIDDEN: 768, INNER: 3072, LENGTH: 512, HEADS: 12, LAYERS: 12, WORDS: 30522},
        adopted=True),
    "instructblipvideo_vision_model": Row(
        {HIDDEN: 1408, INNER: 6144, HEADS: 16, LAYERS: 39, "patch_size": 14},
        adopted=True),
    "internvl": Row(
        {TIED: True},
        parts={"text_config": "qwen2", "vision_config": "internvl_vision"}),
    "internvl_vision": Row(
        {HIDDEN: 1024, INNER: 4096, HEADS: 16, LAYERS: 24}),
    "isaac": Row(
        {"head_dim": 128, HIDDEN: 4096, INNER: 22016, LENGTH: 32768, "max_sequence_length": 16384,
         "max_window_layers": 28, HEADS: 32, LAYERS: 32, KV: 32, "sliding_window": 4096, TIED: False,
         "use_sliding_window": False, WORDS: 151936},
        parts={"text_config": "qwen3", "vision_config": "pixel_shuffle_siglip2"},
        layers=("full_attention",)),
    "jais2": Row(
        {HIDDEN: 3328, INNER: 26624, LENGTH: 8192, HEADS: 26, LAYERS: 32, TIED: False, WORDS: 150272}),
    "jamba": Row(
        {"expert_layer_period": 2, HIDDEN: 4096, INNER: 14336, "mamba_d_conv": 4, "mamba_d_state": 16, "mamba_expand":
         2, LENGTH: 262144, HEADS: 32, "num_experts": 16, "num_experts_per_tok": 2, LAYERS: 32, KV: 8, TIED: False,
         WORDS: 65536},
        names={"num_local_experts": "num_experts"},
        layers=("linear_attention", "linear_attention", "linear_attention", "linear_attention", "full_attention",
                "linear_attention", "linear_attention", "linear_attention")),
    "janus": Row(
        {TIED: True},
        parts={"text_config": "llama", "vision_config": "janus_vision_model", "vq_config": "janus_vqgan"},
        adopted=True),
    "janus_vision_model": Row(
        {"depth": 2, HIDDEN: 1024, "mlp_ratio": 4.0, HEADS: 16, LAYERS: 24, "patch_size": 16},
        adopted=True),
    "janus_vqgan": Row(
        {"embed_dim": 8, LAYERS: 2},
        adopted=True),
    "jetmoe": Row(
        {"head_dim": 128, HIDDEN: 2048, INNER: 5632, "kv_channels": 128, LENGTH: 4096, HEADS: 32,
         "num_experts_per_tok": 2, LAYERS: 12, KV: 16, "num_local_experts": 8, TIED: True, WORDS: 32000},
        names={"head_dim": "kv_channels"},
        adopted=True),
    "jina_embeddings_v3": Row(
        {HIDDEN: 1024, INNER: 4096, LENGTH: 8194, HEADS: 16, LAYERS: 24, TIED: True, WORDS: 250002},
        adopted=True),
    "k3_dspark": Row(
        {"first_k_dense_replace": 3, HIDDEN: 7168, INNER: 18432, "kv_lora_rank": 512, LENGTH: 4096,
         "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1, HEADS: 128,
         "num_experts_per_tok": 8, LAYERS: 61, KV: 128, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
         "qk_rope_head_dim": 64, TIED: False, "v_head_dim": 128, WORDS: 129280},
        names={"num_local_experts": "n_routed_experts"}),
    "kimi_k2": Row(
        {"first_k_dense_replace": 3, "head_dim": 64, HIDDEN: 7168, INNER: 18432, "kv_lora_rank": 512, LENGTH: 4096,
         "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1, HEADS: 128,
         "num_experts_per_tok": 8, LAYERS: 61, KV: 128, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
         "qk_rope_head_dim": 64, TIED: False, "v_head_dim": 128, WORDS: 129280},
        names={"num_local_experts": "n_routed_experts"}),
    "kimi_k25": Row(
        {TIED: True},
        parts={"text_config": "deepseek_v3", "vision_config": "kimi_k25_vision"}),
    "kimi_k25_vision": Row(
        {HIDDEN: 1152, INNER: 4304, HEADS: 16, LAYERS: 27, "patch_size": 14}),
    "kimi_k3": Row(
        {},
        parts={"text_config": "kimi_linear", "vision_config": "kimi_k3_vision"}),
    "kimi_linear": Row(
        {HIDDEN: 4096, INNER: 11008, LENGTH: 4096, "model_type": "kimi_linear", "moe_layer_freq": 1, HEADS: 32,
         LAYERS: 32, TIED: False, WORDS: 163840}),
    "kimi_vl": Row(
        {},
        parts={"text_config": "deepseek_v2", "vision_config": "moonvit"}),
    "kosmos-2": Row(
        {TIED: True},
        parts={"text_config": "kosmos_2_text_model", "vision_config": "kosmos_2_vision_model"},
        adopted=True),
    "kosmos-2.5": Row(
        {TIED: True},
        parts={"text_config": "kosmos_2_5_text_model", "vision_config": "kosmos_2_5_vision_model"},
        adopted=True),
    "kosmos_2_5_text_model": Row(
        {"attention_heads": 16, "embed_dim": 1536, "ffn_dim": 6144, "layers": 24, LENGTH: 4096, LAYERS: 24, TIED:
         True, WORDS: 108481},
        names={HIDDEN: "embed_dim", HEADS: "attention_heads", LAYERS: "layers"},
        adopted=True),
    "kosmos_2_5_vision_model": Row(
        {"head_dim": 64, HIDDEN: 1536, INNER: 3968, HEADS: 24, LAYERS: 18},
        adopted=True),
    "kosmos_2_text_model": Row(
        {"attention_heads": 32, "embed_dim": 2048, "ffn_dim": 8192, "layers": 24, LENGTH: 2048, LAYERS: 24, TIED:
         True, WORDS: 65037},
        names={HIDDEN: "embed_dim", HEADS: "attention_heads", LAYERS: "layers"},
        adopted=True),
    "kosmos_2_vision_model": Row(
        {HIDDEN: 1024, INNER: 4096, HEADS: 16, LAYERS: 24, "patch_size": 14},
        adopted=True),
    "kyutai_speech_to_text": Row(
        {"ffn_dim": 11264, HIDDEN: 2048, LENGTH: 750, HEADS: 32, LAYERS: 48, "sliding_window": 375, TIED: False,
         WORDS: 4001},
        parts={"codec_config": "mimi"},
        adopted=True),
    "laguna": Row(
        {"head_dim": 128, HIDDEN: 2048, INNER: 8192, LENGTH: 131072, "moe_intermediate_size": 512, HEADS: 48,
         "num_experts": 256, "num_experts_per_tok": 8, LAYERS: 40, KV: 8, "shared_expert_intermediate_size": 512,
         "sliding_window": 512, TIED: False, WORDS: 100352},
        layers=("full_attention",)),
    "layoutlm": Row(
        {HIDDEN: 768, INNER: 3072, LENGTH: 512, HEADS: 12, LAYERS: 12, TIED: True, WORDS: 30522},
        adopted=True),
    "lfm2": Row(
        {"conv_L_cache": 3, HIDDEN: 2560, INNER: 12288, LENGTH: 128000, HEADS: 32, LAYERS: 32, KV: 8, TIED: True,
         WORDS: 65536},
        layers=("full_attention",)),
    "lfm2_moe": Row(
        {"conv_L_cache": 3, HIDDEN: 2048, INNER: 7168, LENGTH: 128000, "moe_intermediate_size": 1792, HEADS: 32,
         "num_experts": 32, "num_experts_per_tok": 4, LAYERS: 32, KV: 8, TIED: True, WORDS: 65536}),
    "lfm2_vl": Row(
        {TIED: True},
        parts={"text_config": "lfm2", "vision_config": "siglip2_vision_model"}),
    "lighton_ocr": Row(
        {TIED: True},
        parts={"text_config": "qwen3", "vision_config": "pixtral"},
        missing={"text_config": {"head_dim": 128, HIDDEN: 1024, INNER: 3072, LENGTH: 40960, HEADS: 16, LAYERS: 28, KV:
                 8}, "vision_config": {"head_dim": 64, "patch_size": 14}},
        adopted=True),
    "llama": Row(
        {HIDDEN: 4096, INNER: 11008, LENGTH: 2048, HEADS: 32, LAYERS: 32, TIED: False, WORDS: 32000}),
    "llama4": Row(
        {TIED: False},
        parts={"text_config": "llama4_text", "vision_config": "llama4_vision_model"}),
    "llama4_text": Row(
        {"attention_chunk_size": 8192, "head_dim": 128, HIDDEN: 5120, "interleave_moe_layer_step": 1, INNER: 8192,
         "intermediate_size_mlp": 16384, LENGTH: 131072, HEADS: 40, "num_experts_per_tok": 1, LAYERS: 48, KV: 8,
         "num_local_experts": 16, TIED: False, WORDS: 202048},
        layers=("chunked_attention", "chunked_attention", "chunked_attention", "full_attention")),
    "llama4_vision_model": Row(
        {HIDDEN: 768, INNER: 5632, HEADS: 16, LAYERS: 34, "patch_size": 14}),
    "llava": Row(
        {TIED: False},
        parts={"text_config": "llama", "vision_config": "clip_vision_model"},
        missing={"vision_config": {HIDDEN: 1024, INNER: 4096, HEADS: 16, LAYERS: 24, "patch_size": 14, WORDS: 32000}}),
    "llava_next": Row(
        {TIED: False},
        parts={"text_config": "llama", "vision_config": "clip_vision_model"},
        missing={"vision_config": {HIDDEN: 1024, INNER: 4096, HEADS: 16, LAYERS: 24, "patch_size": 14, WORDS: 32000}}),
    "llava_next_video": Row(
        {TIED: False},
        parts={"text_config": "llama", "vision_config": "clip_vision_model"},
        missing={"vision_config": {HIDDEN: 1024, INNER: 4096, HEADS: 16, LAYERS: 24, "patch_size": 14, WORDS: 32000}}),
    "llava_onevision": Row(
        {TIED: False},
        parts={"text_config": "qwen2", "vision_config": "siglip_vision_model"},
        missing={"vision_config": {HIDDEN: 1152, INNER: 4304, HEADS: 16, LAYERS: 26, "patch_size": 14}}),
    "longcat_flash": Row(
        {"expert_ffn_hidden_size": 2048, "ffn_hidden_size": 12288, "head_dim": 64, HIDDEN: 6144, "kv_lora_rank": 512,
         LENGTH: 131072, "moe_topk": 12, "n_routed_experts": 512, HEADS: 64, "num_layers": 28, "q_lora_rank": 1536,
         "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, TIED: False, "v_head_dim": 128, WORDS: 131072},
        names={INNER: "ffn_hidden_size", "moe_intermediate_size": "expert_ffn_hidden_size", "num_experts_per_tok":
               "moe_topk", "num_local_experts": "n_routed_experts"}),
    "mamba": Row(
        {"conv_kernel": 4, "expand": 2, HIDDEN: 768, LAYERS: 32, "state_size": 16, TIED: True, WORDS: 50280},
        layers=("linear_attention",)),
    "mamba2": Row(
        {"conv_kernel": 4, "expand": 2, "head_dim": 64, HIDDEN: 4096, "n_groups": 8, "num_heads": 128, LAYERS: 64,
         "state_size": 128, TIED: False, WORDS: 32768},
        layers=("linear_attention",)),
    "marian": Row(
        {"d_model": 1024, "encoder_attention_heads": 16, "encoder_ffn_dim": 4096, "encoder_layers": 12, LENGTH: 1024,
         TIED: True, WORDS: 58101},
        names={HIDDEN: "d_model", HEADS: "encoder_attention_heads", LAYERS: "encoder_layers"},
        adopted=True),
    "markuplm": Row(
        {HIDDEN: 768, INNER: 3072, LENGTH: 512, HEADS: 12, LAYERS: 12, WORDS: 30522},
        adopted=True),
    "mbart": Row(
        {"d_model": 1024, "encoder_attention_heads": 16, "encoder_ffn_dim": 4096, "encoder_layers": 12, LENGTH: 1024,
         TIED: True, WORDS: 50265},
        names={HIDDEN: "d_model", HEADS: "encoder_attention_heads", LAYERS: "encoder_layers"},
        adopted=True),
    "medusa": Row(
        {HIDDEN: 4096, "num_heads": 5, LAYERS: 1, WORDS: 32001}),
    "mellum": Row(
        {"head_dim": 128, HIDDEN: 2304, INNER: 7168, LENGTH: 131072, "moe_intermediate_size": 896, HEADS: 32,
         "num_experts": 64, "num_experts_per_tok": 8, LAYERS: 28, KV: 4, "sliding_window": 1024, TIED: False, WORDS:
         98304},
        names={"num_experts": "num_local_experts"},
        layers=("full_attention",)),
    "midashenglm": Row(
        {},
        parts={"audio_encoder_config": "midashenglm_dasheng_encoder", "text_config": "qwen2_5_omni_text"}),
    "mimi": Row(
        {HIDDEN: 512, INNER: 2048, LENGTH: 8000, HEADS: 8, LAYERS: 8, KV: 8, "sliding_window": 250, TIED: True},
        adopted=True),
    "mimo_v2_flash": Row(
        {"head_dim": 192, HIDDEN: 4096, INNER: 16384, LENGTH: 131072, "moe_intermediate_size": 2048,
         "n_routed_experts": 256, HEADS: 64, "num_experts_per_tok": 8, LAYERS: 48, KV: 4, "sliding_window": 128, TIED:
         False, "v_head_dim": 128, WORDS: 152576},
        names={"num_local_experts": "n_routed_experts"}),
    "minicpm3": Row(
        {"head_dim": 32, HIDDEN: 2560, INNER: 6400, "kv_lora_rank": 256, LENGTH: 32768, HEADS: 40, LAYERS: 62, KV: 40,
         "q_lora_rank": 768, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, TIED: True, WORDS: 73448},
        names={"head_dim": "qk_rope_head_dim"}),
    "minicpmv4_6": Row(
        {TIED: False},
        parts={"text_config": "qwen3_5_text", "vision_config": "minicpmv4_6_vision"}),
    "minicpmv4_6_vision": Row(
        {HIDDEN: 768, INNER: 3072, HEADS: 12, LAYERS: 12, "patch_size": 16}),
    "minicpmv4_7": Row(
        {TIED: False},
        parts={"text_config": "qwen3_5_text", "vision_config": "minicpmv4_7_vision"}),
    "minicpmv4_7_vision": Row(
        {HIDDEN: 768, INNER: 3072, HEADS: 12, LAYERS: 12, "patch_size": 16}),
    "minimax": Row(
        {HIDDEN: 4096, INNER: 14336, LENGTH: 131072, HEADS: 32, "num_experts_per_tok": 2, LAYERS: 32, KV: 8,
         "num_local_experts": 8, TIED: False, WORDS: 32000},
        names={"num_experts": "num_local_experts"},
        layers=("full_attention", "linear_attention"),
        adopted=True),
    "minimax_m2": Row(
        {"head_dim": 128, HIDDEN: 3072, INNER: 1536, LENGTH: 196608, HEADS: 48, "num_experts_per_tok": 8, LAYERS: 62,
         KV: 8, "num_local_experts": 256, TIED: False, WORDS: 200064},
        names={"num_experts": "num_local_experts"}),
    "minimax_m3_mtp": Row(
        {"head_dim": 128, HEADS: 64, LAYERS: 1}),
    "minimax_m3_vl": Row(
        {},
        parts={"text_config": "minimax_m3_vl/text_config"}),
    "minimax_m3_vl/text_config": Row(
        {"head_dim": 128, HIDDEN: 6144, INNER: 3072, LENGTH: 524288, "model_type": "minimax_m3_text",
         "n_shared_experts": 1, HEADS: 64, "num_experts_per_tok": 4, LAYERS: 60, KV: 4, "num_local_experts": 128,
         TIED: False, WORDS: 200064}),
    "minimax_m3_vl_text": Row(
        {"head_dim": 128, HIDDEN: 6144, INNER: 3072, LENGTH: 524288, HEADS: 64, "num_experts_per_tok": 4, LAYERS: 60,
         KV: 4, "num_local_experts": 128, TIED: False, WORDS: 200064},
        names={"num_experts": "num_local_experts"},
        layers=("full_attention",),
        adopted=True),
    "ministral": Row(
        {HIDDEN: 4096, INNER: 14336, LENGTH: 131072, HEADS: 32, LAYERS: 32, KV: 8, "sliding_window": 4096, TIED:
         False, WORDS: 32000},
        layers=("sliding_attention",),
        adopted=True),
    "ministral3": Row(
        {"head_dim": 128, HIDDEN: 4096, INNER: 14336, LENGTH: 262144, HEADS: 32, LAYERS: 34, KV: 8, TIED: False,
         WORDS: 131072}),
    "mistral": Row(
        {HIDDEN: 4096, INNER: 14336, LENGTH: 131072, HEADS: 32, LAYERS: 32, KV: 8, "sliding_window": 4096, TIED:
         False, WORDS: 32000}),
    "mistral3": Row(
        {TIED: True},
        parts={"text_config": "mistral", "vision_config": "pixtral"},
        missing={"text_config": {"head_dim": 128, HIDDEN: 5120, INNER: 32768, LAYERS: 40, WORDS: 131072},
                 "vision_config": {"head_dim": 64, "patch_size": 14, WORDS: 32000}}),
    "mistral4": Row(
        {"head_dim": 128, HIDDEN: 4096, INNER: 12288, "kv_lora_rank": 256, LENGTH: 1048576, "moe_intermediate_size":
         2048, "n_routed_experts": 128, "n_shared_experts": 1, HEADS: 32, "num_experts_per_tok": 4, LAYERS: 36, KV:
         32, "q_lora_rank": 1024, "qk_nope_head_dim": 64, "qk_rope_head_dim": 64, TIED: False, "v_head_dim": 128,
         WORDS: 131072},
        names={"num_local_experts": "n_routed_experts"},
        adopted=True),
    "mixtral": Row(
        {HIDDEN: 4096, INNER: 14336, LENGTH: 131072, HEADS: 32, "num_experts_per_tok": 2, LAYERS: 32, KV: 8,
         "num_local_experts": 8, TIED: False, WORDS: 32000},
        names={"num_experts": "num_local_experts"}),
    "mllama": Row(
        {},
        parts={"text_config": "mllama_text_model", "vision_config": "mllama_vision_model"},
        adopted=True),
    "mllama_text_model": Row(
        {HIDDEN: 4096, INNER: 14336, LENGTH: 131072, HEADS: 32, LAYERS: 40, KV: 8, TIED: False, WORDS: 128256},
        adopted=True),
    "mllama_vision_model": Row(
        {"attention_heads": 16, HIDDEN: 1280, INNER: 5120, LAYERS: 32, "patch_size": 14},
        names={HEADS: "attention_heads"},
        adopted=True),
    "mlp_speculator": Row(
        {"emb_dim": 4096, WORDS: 32000},
        names={HIDDEN: "emb_dim"}),
    "mobilebert": Row(
        {HIDDEN: 512, INNER: 512, LENGTH: 512, HEADS: 4, LAYERS: 24, TIED: True, WORDS: 30522},
        adopted=True),
    "modernbert": Row(
        {HIDDEN: 768, INNER: 1152, LENGTH: 8192, HEADS: 12, LAYERS: 22, TIED: True, WORDS: 50368},
        layers=("full_attention", "sliding_attention", "sliding_attention")),
    "modernbert-decoder": Row(
        {HIDDEN: 768, INNER: 1152, LENGTH: 8192, HEADS: 12, LAYERS: 22, TIED: True, WORDS: 50368},
        layers=("full_attention", "sliding_attention", "sliding_attention"),
        adopted=True),
    "modernvbert": Row(
        {},
        parts={"text_config": "modernvbert/text_config", "vision_config": "siglip_vision_model"}),
    "modernvbert/text_config": Row(
        {HIDDEN: 768, INNER: 1152, LENGTH: 8192, "model_type": "modernbert", HEADS: 12, LAYERS: 22, TIED: True, WORDS:
         50408},
        layers=("full_attention", "sliding_attention", "sliding_attention")),
    "moondream3": Row(
        {HEADS: 32, LAYERS: 24},
        parts={"text_config": "moondream3/text_config", "vision_config": "moondream3_vision"}),
    "moondream3/text_config": Row(
        {"model_type": "moondream3_text", "n_heads": 32, "n_layers": 24, HEADS: 32, WORDS: 51200}),
    "moshi": Row(
        {"ffn_dim": 22528, HIDDEN: 4096, LENGTH: 3000, HEADS: 32, LAYERS: 32, "sliding_window": 3000, TIED: False,
         WORDS: 32000},
        parts={"audio_encoder_config": "mimi", "depth_decoder_config": "moshi_depth"},
        adopted=True),
    "moshi_depth": Row(
        {"ffn_dim": 5632, HIDDEN: 1024, LENGTH: 9, HEADS: 16, LAYERS: 6, "sliding_window": 8, TIED: False, WORDS:
         32000},
        adopted=True),
    "moss_transcribe_diarize": Row(
        {"head_dim": 128, "head_ratio": 2.0, HEADS: 16, LAYERS: 28, TIED: True},
        parts={"audio_config": "whisper", "text_config": "moss_transcribe_diarize/text_config"},
        missing={"audio_config": {"d_model": 1024, "encoder_ffn_dim": 4096, "encoder_layers": 24}, "text_config":
                 {"head_dim": 128, HIDDEN: 1024, INNER: 3072, LENGTH: 40960, HEADS: 16, LAYERS: 28, KV: 8}}),
    "moss_transcribe_diarize/text_config": Row(
        {"head_dim": 128, HIDDEN: 4096, INNER: 22016, LENGTH: 32768, "max_window_layers": 28, "model_type": "qwen3",
         HEADS: 32, LAYERS: 32, KV: 32, "sliding_window": 4096, TIED: True, "use_sliding_window": False, WORDS:
         151936},
        layers=("full_attention",)),
    "muse_glimmer": Row(
        {},
        parts={"text_config": "muse_glimmer_text", "vision_config": "muse_glimmer_vision"}),
    "muse_glimmer_assistant": Row(
        {"head_dim": 128, HIDDEN: 4096, INNER: 22016, LENGTH: 32768, "max_window_layers": 28, HEADS: 32, LAYERS: 32,
         KV: 32, "sliding_window": 4096, TIED: False, "use_sliding_window": True, WORDS: 202048}),
    "muse_glimmer_text": Row(
        {"head_dim": 128, HIDDEN: 6656, INNER: 19968, LENGTH: 16384, HEADS: 32, LAYERS: 52, KV: 2, "sliding_window":
         2048, TIED: False, WORDS: 202048},
        layers=("sliding_attention", "sliding_attention", "sliding_attention", "full_attention")),
    "muse_glimmer_vision": Row(
        {HIDDEN: 1536, INNER: 8960, LENGTH: 1024, HEADS: 16, LAYERS: 50, "patch_size": 14},
        layers=("sliding_attention", "sliding_attention", "sliding_attention", "full_attention")),
    "musicgen": Row(
        {},
        parts={"decoder": "musicgen_decoder"},
        adopted=True),
    "musicgen_decoder": Row(
        {"ffn_dim": 4096, HIDDEN: 1024, LENGTH: 2048, HEADS: 16, LAYERS: 24, TIED: False, WORDS: 2048},
        adopted=True),
    "musicgen_melody": Row(
        {},
        parts={"decoder": "musicgen_melody_decoder"},
        adopted=True),
    "musicgen_melody_decoder": Row(
        {"ffn_dim": 4096, HIDDEN: 1024, LENGTH: 2048, HEADS: 16, LAYERS: 24, TIED: False, WORDS: 2048},
        adopted=True),
    "nanochat": Row(
        {HIDDEN: 768, INNER: 8192, LENGTH: 2048, HEADS: 6, LAYERS: 12, TIED: False, WORDS: 50304},
        adopted=True),
    "nemotron": Row(
        {HIDDEN: 6144, INNER: 24576, LENGTH: 4096, HEADS: 48, LAYERS: 32, TIED: False, WORDS: 256000}),
    "nemotron_h": Row(
        {"conv_kernel": 4, "expand": 2, "head_dim": 128, HIDDEN: 4096, INNER: 21504, "mamba_head_dim": 64,
         "mamba_num_heads": 128, "mamba_ssm_cache_dtype": "float32", LENGTH: 4096, "moe_intermediate_size": 7688,
         "n_groups": 8, "n_routed_experts": 8, "n_shared_experts": 1, HEADS: 32, "num_experts_per_tok": 2, LAYERS: 4,
         KV: 8, "ssm_state_size": 128, TIED: False, WORDS: 131072},
        names={"layer_types": "layers_block_type", "num_local_experts": "n_routed_experts"}),
    "nemotron_h_omni": Row(
        {},
        parts={"text_config": "nemotron_h", "vision_config": "radio"}),
    "nomic_bert": Row(
        {HIDDEN: 768, INNER: 3072, LENGTH: 2048, HEADS: 12, LAYERS: 12, WORDS: 30528}),
    "olmo": Row(
        {HIDDEN: 4096, INNER: 11008, LENGTH: 2048, HEADS: 32, LAYERS: 32, TIED: False, WORDS: 50304}),
    "olmo2": Row(
        {HIDDEN: 4096, INNER: 11008, LENGTH: 2048, HEADS: 32, LAYERS: 32, TIED: False, WORDS: 50304}),
    "olmo3": Row(
        {HIDDEN: 4096, INNER: 11008, LENGTH: 2048, HEADS: 32, LAYERS: 32, "sliding_window": 4096, TIED: False, WORDS:
         50304},
        layers=("sliding_attention", "sliding_attention", "sliding_attention", "full_attention")),
    "olmo_hybrid": Row(
        {HIDDEN: 3840, INNER: 11008, "linear_conv_kernel_dim": 4, LENGTH: 65536, HEADS: 30, LAYERS: 32, TIED: False,
         WORDS: 100352},
        layers=("linear_attention", "linear_attention", "linear_attention", "full_attention")),
    "olmoe": Row(
        {HIDDEN: 2048, INNER: 2048, LENGTH: 4096, HEADS: 16, "num_experts": 64, "num_experts_per_tok": 8, LAYERS: 16,
         TIED: False, WORDS: 50304},
        names={"num_local_experts": "num_experts"}),
    "openai_privacy_filter": Row(
        {"head_dim": 64, HIDDEN: 640, INNER: 640, LENGTH: 131072, HEADS: 14, "num_experts_per_tok": 4, LAYERS: 8, KV:
         2, "num_local_experts": 128, "sliding_window": 128, TIED: False, WORDS: 200064},
        names={"num_experts": "num_local_experts"}),
    "openvla": Row(
        {},
        parts={"text_config": "llama"}),
    "ops_colqwen3": Row(
        {TIED: False},
        parts={"text_config": "qwen3_vl_text", "vision_config": "qwen3_vl_vision"}),
    "opt": Row(
        {"ffn_dim": 3072, HIDDEN: 768, LENGTH: 2048, HEADS: 12, LAYERS: 12, TIED: True, WORDS: 50272}),
    "ovis2": Row(
        {HIDDEN: 1536, TIED: True, WORDS: 151643},
        parts={"text_config": "qwen2"},
        adopted=True),
    "paddleocr_vl": Row(
        {TIED: True},
        parts={"text_config": "paddleocr_vl_text", "vision_config": "paddleocr_vl_vision"}),
    "paddleocr_vl_text": Row(
        {"head_dim": 128, HIDDEN: 1024, INNER: 3072, LENGTH: 131072, HEADS: 16, LAYERS: 18, KV: 2, TIED: True, WORDS:
         103424}),
    "paddleocr_vl_vision": Row(
        {HIDDEN: 1152, INNER: 4304, HEADS: 16, LAYERS: 27, "patch_size": 14}),
    "paligemma": Row(
        {HIDDEN: 2048, TIED: True, WORDS: 257152},
        parts={"text_config": "paligemma/text_config", "vision_config": "siglip_vision_model"},
        missing={"text_config": {"head_dim": 256, HIDDEN: 2048, INNER: 16384, HEADS: 8, LAYERS: 18, KV: 1, WORDS:
                 257152}, "vision_config": {HIDDEN: 1152, INNER: 4096, HEADS: 16, LAYERS: 27, "patch_size": 14, WORDS:
                 257152}}),
    "paligemma/text_config": Row(
        {"head_dim": 256, HIDDEN: 3072, INNER: 24576, LENGTH: 8192, "model_type": "gemma", HEADS: 16, LAYERS: 28, KV:
         16, TIED: True, WORDS: 256000}),
    "parakeet_encoder": Row(
        {HIDDEN: 1024, INNER: 4096, LENGTH: 5000, HEADS: 8, LAYERS: 24}),
    "pegasus": Row(
        {"d_model": 1024, "encoder_attention_heads": 16, "encoder_ffn_dim": 4096, "encoder_layers": 12, LENGTH: 1024,
         TIED: True, WORDS: 50265},
        names={HIDDEN: "d_model", HEADS: "encoder_attention_heads", LAYERS: "encoder_layers"},
        adopted=True),
    "perception_lm": Row(
        {},
        parts={"text_config": "llama", "vision_config": "timm_wrapper"},
        adopted=True),
    "persimmon": Row(
        {HIDDEN: 4096, INNER: 16384, LENGTH: 16384, HEADS: 64, LAYERS: 36, TIED: False, WORDS: 262144},
        adopted=True),
    "phi": Row(
        {HIDDEN: 2048, INNER: 8192, LENGTH: 2048, HEADS: 32, LAYERS: 24, TIED: False, WORDS: 51200}),
    "phi3": Row(
        {HIDDEN: 3072, INNER: 8192, LENGTH: 4096, HEADS: 32, LAYERS: 32, "original_max_position_embeddings": 4096,
         TIED: False, WORDS: 32064}),
    "phi4_multimodal": Row(
        {HIDDEN: 3072, INNER: 8192, LENGTH: 131072, HEADS: 32, LAYERS: 32, KV: 8, "original_max_position_embeddings":
         4096, TIED: False, WORDS: 200064},
        parts={"audio_config": "phi4_multimodal_audio", "vision_config": "phi4_multimodal_vision"},
        adopted=True),
    "phi4_multimodal_audio": Row(
        {HIDDEN: 1024, INNER: 1536, HEADS: 16},
        adopted=True),
    "phi4_multimodal_vision": Row(
        {HIDDEN: 1152, INNER: 4304, HEADS: 16, LAYERS: 27, "patch_size": 14},
        adopted=True),
    "phimoe": Row(
        {HIDDEN: 4096, INNER: 6400, LENGTH: 131072, HEADS: 32, "num_experts_per_tok": 2, LAYERS: 32, KV: 8,
         "num_local_experts": 16, TIED: False, WORDS: 32064},
        adopted=True),
    "pi0": Row(
        {},
        parts={"dit_config": "pi0/dit_config", "vlm_config": "paligemma"},
        missing={"dit_config": {"head_dim": 256, HIDDEN: 1024, INNER: 4096, HEADS: 8, LAYERS: 18, KV: 1, WORDS:
                 257152}},
        adopted=True),
    "pi0/dit_config": Row(
        {"head_dim": 256, HIDDEN: 3072, INNER: 24576, LENGTH: 8192, "model_type": "gemma", HEADS: 16, LAYERS: 28, KV:
         16, TIED: True, WORDS: 256000}),
    "pixtral": Row(
        {HIDDEN: 1024, INNER: 4096, HEADS: 16, LAYERS: 24, "patch_size": 16}),
    "plbart": Row(
        {"d_model": 768, "encoder_attention_heads": 12, "encoder_ffn_dim": 3072, "encoder_layers": 6, LENGTH: 1024,
         TIED: True, WORDS: 50005},
        names={HIDDEN: "d_model", HEADS: "encoder_attention_heads", LAYERS: "encoder_layers"},
        adopted=True),
    "pp_chart2table": Row(
        {TIED: True},
        parts={"text_config": "qwen2"},
        missing={"text_config": {HIDDEN: 1024, INNER: 2816, "max_window_layers": 21, HEADS: 16, LAYERS: 24, KV: 16,
                 TIED: True, WORDS: 151860}},
        adopted=True),
    "qianfan_ocr": Row(
        {TIED: False},
        parts={"text_config": "qwen3", "vision_config": "qianfan_ocr/vision_config"}),
    "qianfan_ocr/vision_config": Row(
        {HIDDEN: 1024, INNER: 4096, "model_type": "qianfan_ocr_vision", HEADS: 16, LAYERS: 24, "patch_size": 14}),
    "qianfan_ocr_vision": Row(
        {HIDDEN: 1024, INNER: 4096, HEADS: 16, LAYERS: 24}),
    "qwen2": Row(
        {HIDDEN: 4096, INNER: 22016, LENGTH: 32768, "max_window_layers": 28, HEADS: 32, LAYERS: 32, KV: 32,
         "sliding_window": 4096, TIED: False, "use_sliding_window": False, WORDS: 151936},
        layers=("full_attention",)),
    "qwen2_5_omni": Row(
        {},
        parts={"talker_config": "qwen2_5_omni_talker", "thinker_config": "qwen2_5_omni_thinker", "token2wav_config":
               "qwen2_5_omni_token2wav"}),
    "qwen2_5_omni_audio_encoder": Row(
        {"d_model": 1280, "encoder_attention_heads": 20, "encoder_ffn_dim": 5120, "encoder_layers": 32},
        names={HIDDEN: "d_model", INNER: "encoder_ffn_dim", HEADS: "encoder_attention_heads", LAYERS:
               "encoder_layers"}),
    "qwen2_5_omni_dit": Row(
        {"head_dim": 64, HIDDEN: 1024, LENGTH: 32768, HEADS: 16, LAYERS: 22}),
    "qwen2_5_omni_talker": Row(
        {"head_dim": 128, HIDDEN: 3584, INNER: 18944, LENGTH: 32768, "max_window_layers": 28, HEADS: 28, LAYERS: 28,
         KV: 4, "sliding_window": 32768, TIED: False, "use_sliding_window": False, WORDS: 8448},
        layers=("full_attention",)),
    "qwen2_5_omni_text": Row(
        {HIDDEN: 3584, INNER: 18944, LENGTH: 32768, "max_window_layers": 28, HEADS: 28, LAYERS: 28, KV: 4,
         "sliding_window": 32768, TIED: True, "use_sliding_window": False, WORDS: 152064},
        layers=("full_attention",)),
    "qwen2_5_omni_thinker": Row(
        {TIED: False},
        parts={"audio_config": "qwen2_5_omni_audio_encoder", "text_config": "qwen2_5_omni_text", "vision_config":
               "qwen2_5_omni_vision_encoder"}),
    "qwen2_5_omni_token2wav": Row(
        {},
        parts={"bigvgan_config": "qwen2_5_omni_bigvgan", "dit_config": "qwen2_5_omni_dit"}),
    "qwen2_5_omni_vision_encoder": Row(
        {"depth": 32, HIDDEN: 3584, INNER: 3420, "num_heads": 16, "out_hidden_size": 3584, "patch_size": 14},
        names={HEADS: "num_heads"}),
    "qwen2_5_vl": Row(
        {TIED: False},
        parts={"text_config": "qwen2_5_vl_text", "vision_config": "qwen2_5_vl_vision"}),
    "qwen2_5_vl_text": Row(
        {HIDDEN: 8192, INNER: 29568, LENGTH: 32768, "max_window_layers": 80, HEADS: 64, LAYERS: 80, KV: 8,
         "sliding_window": 4096, "use_sliding_window": False, WORDS: 152064},
        layers=("full_attention",)),
    "qwen2_5_vl_vision": Row(
        {"depth": 32, HIDDEN: 3584, INNER: 3420, "num_heads": 16, "out_hidden_size": 3584, "patch_size": 14},
        names={HEADS: "num_heads"}),
    "qwen2_audio": Row(
        {},
        parts={"audio_config": "qwen2_audio_encoder", "text_config": "qwen2"}),
    "qwen2_audio_encoder": Row(
        {"d_model": 1280, "encoder_attention_heads": 20, "encoder_ffn_dim": 5120, "encoder_layers": 32},
        names={HIDDEN: "d_model", INNER: "encoder_ffn_dim", HEADS: "encoder_attention_heads", LAYERS:
               "encoder_layers"}),
    "qwen2_moe": Row(
        {"decoder_sparse_step": 1, HIDDEN: 2048, INNER: 5632, LENGTH: 32768, "max_window_layers": 28,
         "moe_intermediate_size": 1408, HEADS: 16, "num_experts": 60, "num_experts_per_tok": 4, LAYERS: 24, KV: 16,
         "shared_expert_intermediate_size": 5632, "sliding_window": 4096, TIED: False, "use_sliding_window": False,
         WORDS: 151936},
        layers=("full_attention",)),
    "qwen2_vl": Row(
        {TIED: False},
        parts={"text_config": "qwen2_vl_text", "vision_config": "qwen2_vl_vision"}),
    "qwen2_vl_text": Row(
        {HIDDEN: 8192, INNER: 29568, LENGTH: 32768, "max_window_layers": 80, HEADS: 64, LAYERS: 80, KV: 8,
         "sliding_window": 4096, "use_sliding_window": False, WORDS: 152064},
        layers=("full_attention",)),
    "qwen2_vl_vision": Row(
        {"depth": 32, "embed_dim": 1280, HIDDEN: 3584, "mlp_ratio": 4, "num_heads": 16, "patch_size": 14},
        names={HEADS: "num_heads"}),
    "qwen3": Row(
        {"head_dim": 128, HIDDEN: 4096, INNER: 22016, LENGTH: 32768, "max_window_layers": 28, HEADS: 32, LAYERS: 32,
         KV: 32, "sliding_window": 4096, TIED: False, "use_sliding_window": False, WORDS: 151936},
        layers=("full_attention",)),
    "qwen3_5": Row(
        {TIED: False},
        parts={"text_config": "qwen3_5_text", "vision_config": "qwen3_5_vision"}),
    "qwen3_5_moe": Row(
        {TIED: False},
        parts={"text_config": "qwen3_5_moe_text", "vision_config": "qwen3_5_moe_vision"}),
    "qwen3_5_moe_text": Row(
        {"head_dim": 256, HIDDEN: 2048, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
         "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_value_head_dim": 128, LENGTH: 32768,
         "moe_intermediate_size": 512, HEADS: 16, "num_experts": 256, "num_experts_per_tok": 8, LAYERS: 40, KV: 2,
         "shared_expert_intermediate_size": 512, TIED: False, WORDS: 248320},
        layers=("linear_attention", "linear_attention", "linear_attention", "full_attention")),
    "qwen3_5_moe_vision": Row(
        {"depth": 27, HIDDEN: 1152, INNER: 4304, "num_heads": 16, "out_hidden_size": 3584, "patch_size": 16},
        names={HEADS: "num_heads"}),
    "qwen3_5_text": Row(
        {"head_dim": 256, HIDDEN: 4096, INNER: 12288, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
         "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_value_head_dim": 128, LENGTH: 32768, HEADS:
         16, LAYERS: 32, KV: 4, TIED: False, WORDS: 248320},
        layers=("linear_attention", "linear_attention", "linear_attention", "full_attention")),
    "qwen3_5_vision": Row(
        {"depth": 27, HIDDEN: 1152, INNER: 4304, "num_heads": 16, "out_hidden_size": 3584, "patch_size": 16},
        names={HEADS: "num_heads"}),
    "qwen3_asr": Row(
        {},
        parts={"thinker_config": "qwen3_asr/thinker_config"}),
    "qwen3_asr/thinker_config": Row(
        {"model_type": "qwen3_asr_thinker"},
        parts={"audio_config": "qwen3_asr_audio_encoder", "text_config": "qwen3_asr/thinker_config/text_config"}),
    "qwen3_asr/thinker_config/text_config": Row(
        {"head_dim": 128, HIDDEN: 4096, INNER: 22016, LENGTH: 128000, "model_type": "qwen3_asr_text", HEADS: 32,
         LAYERS: 32, KV: 32, TIED: False, WORDS: 151936}),
    "qwen3_moe": Row(
        {"decoder_sparse_step": 1, HIDDEN: 2048, INNER: 6144, LENGTH: 32768, "moe_intermediate_size": 768, HEADS: 32,
         "num_experts": 128, "num_experts_per_tok": 8, LAYERS: 24, KV: 4, "sliding_window": 4096, TIED: False,
         "use_sliding_window": False, WORDS: 151936},
        names={"num_experts": "num_local_experts"}),
    "qwen3_next": Row(
        {"decoder_sparse_step": 1, "head_dim": 256, HIDDEN: 2048, INNER: 5632, "linear_conv_kernel_dim": 4,
         "linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
         "linear_value_head_dim": 128, LENGTH: 32768, "moe_intermediate_size": 512, HEADS: 16, "num_experts": 512,
         "num_experts_per_tok": 10, LAYERS: 48, KV: 2, "shared_expert_intermediate_size": 512, TIED: False, WORDS:
         151936},
        layers=("linear_attention", "linear_attention", "linear_attention", "full_attention")),
    "qwen3_omni_moe": Row(
        {},
        parts={"thinker_config": "qwen3_omni_moe_thinker"}),
    "qwen3_omni_moe_audio_encoder": Row(
        {"d_model": 1280, "encoder_attention_heads": 20, "encoder_ffn_dim": 5120, "encoder_layers": 32},
        names={HIDDEN: "d_model", INNER: "encoder_ffn_dim", HEADS: "encoder_attention_heads", LAYERS:
               "encoder_layers"}),
    "qwen3_omni_moe_text": Row(
        {"decoder_sparse_step": 1, HIDDEN: 2048, INNER: 18944, LENGTH: 32768, "moe_intermediate_size": 768, HEADS: 28,
         "num_experts": 128, "num_experts_per_tok": 8, LAYERS: 28, KV: 4, WORDS: 3584}),
    "qwen3_omni_moe_thinker": Row(
        {TIED: False},
        parts={"audio_config": "qwen3_omni_moe_audio_encoder", "text_config": "qwen3_omni_moe_text", "vision_config":
               "qwen3_omni_moe_vision_encoder"}),
    "qwen3_omni_moe_vision_encoder": Row(
        {"depth": 27, HIDDEN: 1152, INNER: 4304, "num_heads": 16, "out_hidden_size": 3584, "patch_size": 16},
        names={HEADS: "num_heads"}),
    "qwen3_vl": Row(
        {TIED: False},
        parts={"text_config": "qwen3_vl_text", "vision_config": "qwen3_vl_vision"}),
    "qwen3_vl_moe": Row(
        {TIED: False},
        parts={"text_config": "qwen3_vl_moe_text", "vision_config": "qwen3_vl_moe_vision"}),
    "qwen3_vl_moe_text": Row(
        {"decoder_sparse_step": 1, HIDDEN: 2048, INNER: 5632, LENGTH: 128000, "moe_intermediate_size": 1408, HEADS:
         16, "num_experts": 60, "num_experts_per_tok": 4, LAYERS: 24, KV: 16, TIED: True, WORDS: 151936},
        names={"num_experts": "num_local_experts"}),
    "qwen3_vl_moe_vision": Row(
        {"depth": 27, HIDDEN: 1152, INNER: 4304, "num_heads": 16, "out_hidden_size": 3584, "patch_size": 16},
        names={HEADS: "num_heads"}),
    "qwen3_vl_nemotron_embed": Row(
        {TIED: False},
        parts={"text_config": "qwen3_vl_text", "vision_config": "qwen3_vl_vision"}),
    "qwen3_vl_text": Row(
        {"head_dim": 128, HIDDEN: 4096, INNER: 22016, LENGTH: 128000, HEADS: 32, LAYERS: 32, KV: 32, WORDS: 151936}),
    "qwen3_vl_vision": Row(
        {"depth": 27, HIDDEN: 1152, INNER: 4304, "num_heads": 16, "out_hidden_size": 3584, "patch_size": 16},
        names={HEADS: "num_heads"}),
    "qwen4_exp": Row(
        {TIED: False},
        parts={"text_config": "qwen4_exp_text", "vision_config": "qwen4_exp_vision"}),
    "qwen4_exp_text": Row(
        {"head_dim": 256, HIDDEN: 2048, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
         "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_value_head_dim": 128, LENGTH: 32768,
         "moe_intermediate_size": 512, HEADS: 16, "num_experts": 512, "num_experts_per_tok": 10, LAYERS: 40, KV: 2,
         "shared_expert_intermediate_size": 512, TIED: False, WORDS: 248320},
        layers=("linear_attention", "linear_attention", "linear_attention", "indexed_attention")),
    "qwen4_exp_vision": Row(
        {"depth": 27, HIDDEN: 1152, INNER: 4304, "num_heads": 16, "out_hidden_size": 3584, "patch_size": 16},
        names={HEADS: "num_heads"}),
    "radio": Row(
        {HIDDEN: 1280, "mlp_ratio": 4.0, HEADS: 16, LAYERS: 32, "patch_size": 16}),
    "recurrent_gemma": Row(
        {"attention_window_size": 2048, HIDDEN: 2560, INNER: 7680, HEADS: 10, LAYERS: 26, TIED: True, WORDS: 256000},
        names={"sliding_window": "attention_window_size"},
        adopted=True),
    "roberta": Row(
        {HIDDEN: 768, INNER: 3072, LENGTH: 512, HEADS: 12, LAYERS: 12, TIED: True, WORDS: 50265}),
    "roberta-prelayernorm": Row(
        {HIDDEN: 768, INNER: 3072, LENGTH: 512, HEADS: 12, LAYERS: 12, TIED: True, WORDS: 50265},
        adopted=True),
    "roc_bert": Row(
        {HIDDEN: 768, INNER: 3072, LENGTH: 512, HEADS: 12, LAYERS: 12, TIED: True, WORDS: 30522},
        adopted=True),
    "sam_vision_model": Row(
        {HIDDEN: 768, "mlp_ratio": 4.0, HEADS: 12, LAYERS: 12, "patch_size": 16},
        adopted=True),
    "seed_oss": Row(
        {"head_dim": 128, HIDDEN: 4096, INNER: 27648, LENGTH: 524288, HEADS: 80, LAYERS: 64, KV: 8, TIED: False,
         WORDS: 155136}),
    "shieldgemma2": Row(
        {},
        parts={"text_config": "gemma3_text", "vision_config": "siglip_vision_model"}),
    "siglip": Row(
        {},
        parts={"text_config": "siglip_text_model", "vision_config": "siglip_vision_model"}),
    "siglip2_vision_model": Row(
        {HIDDEN: 768, INNER: 3072, HEADS: 12, LAYERS: 12, "patch_size": 16}),
    "siglip_text_model": Row(
        {HIDDEN: 768, INNER: 3072, LENGTH: 64, HEADS: 12, LAYERS: 12, WORDS: 32000}),
    "siglip_vision_model": Row(
        {HIDDEN: 768, INNER: 3072, HEADS: 12, LAYERS: 12, "patch_size": 16}),
    "smollm3": Row(
        {HIDDEN: 2048, INNER: 11008, LENGTH: 32768, HEADS: 16, LAYERS: 36, KV: 4, TIED: True, "use_sliding_window":
         False, WORDS: 128256},
        layers=("full_attention",)),
    "smolvlm": Row(
        {TIED: False},
        parts={"text_config": "llama", "vision_config": "smolvlm_vision"},
        missing={"text_config": {"head_dim": 128}}),
    "smolvlm_vision": Row(
        {HIDDEN: 1152, INNER: 3072, HEADS: 16, LAYERS: 12, "patch_size": 32}),
    "solar_open": Row(
        {"head_dim": 128, HIDDEN: 4096, LENGTH: 131072, "moe_intermediate_size": 1280, "n_routed_experts": 128,
         "n_shared_experts": 1, HEADS: 64, "num_experts_per_tok": 8, LAYERS: 48, KV: 8, TIED: False, WORDS: 196608},
        names={"num_local_experts": "n_routed_experts"},
        adopted=True),
    "stablelm": Row(
        {HIDDEN: 2560, INNER: 6912, LENGTH: 4096, HEADS: 32, LAYERS: 32, KV: 32, TIED: False, WORDS: 50304}),
    "starcoder2": Row(
        {HIDDEN: 3072, INNER: 12288, LENGTH: 4096, HEADS: 24, LAYERS: 30, KV: 2, TIED: True, WORDS: 49152}),
    "step3_text": Row(
        {"head_dim": 256, HIDDEN: 7168, INNER: 18432, "max_seq_len": 65536, "moe_intermediate_size": 5120,
         "moe_num_experts": 48, "moe_top_k": 3, "num_attention_groups": 1, HEADS: 64, LAYERS: 61, WORDS: 128815}),
    "step3_vl": Row(
        {},
        parts={"text_config": "step3_text", "vision_config": "step3_vision_encoder"}),
    "step3p5": Row(
        {HIDDEN: 5120, INNER: 13312, "max_seq_len": 4096, "moe_intermediate_size": 10240, "moe_num_experts": 16,
         "moe_top_k": 4, "num_attention_groups": 8, HEADS: 40, LAYERS: 48, WORDS: 65536}),
    "step3p5_vision": Row(
        {HIDDEN: 1536, INNER: 3072, LENGTH: 2704, "mlp_ratio": 5.833333333333333, HEADS: 16, LAYERS: 47, "patch_size":
         14}),
    "step3p7": Row(
        {},
        parts={"text_config": "step3p7/text_config", "vision_config": "step3p5_vision"}),
    "step3p7/text_config": Row(
        {"head_dim": 128, HIDDEN: 4096, INNER: 11264, LENGTH: 128000, "model_type": "step3p5",
         "moe_intermediate_size": 1280, "n_routed_experts": 288, HEADS: 64, "num_experts_per_tok": 8, LAYERS: 45, KV:
         8, "num_local_experts": 128, TIED: False, WORDS: 128815},
        names={"moe_num_experts": "n_routed_experts", "moe_top_k": "num_experts_per_tok", "num_attention_groups":
               "num_key_value_heads", "num_local_experts": "n_routed_experts"},
        layers=("full_attention",)),
    "timm_wrapper": Row(
        {},
        adopted=True),
    "ultravox": Row(
        {HIDDEN: 4096},
        parts={"audio_config": "whisper", "wrapped_model_config": "llama"}),
    "unlimited-ocr": Row(
        {},
        parts={"projector_config": "mlp_projector", "text_config": "unlimited-ocr/text_config", "vision_config":
               "vision"}),
    "unlimited-ocr/text_config": Row(
        {"head_dim": 64, HIDDEN: 4096, INNER: 11008, "kv_lora_rank": 512, LENGTH: 2048, "model_type": "deepseek_v2",
         "moe_intermediate_size": 1407, "n_routed_experts": 64, "n_shared_experts": 2, HEADS: 32, LAYERS: 32,
         "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, TIED: False, "v_head_dim": 128, WORDS:
         102400},
        names={"head_dim": "qk_rope_head_dim", "num_experts": "n_routed_experts"}),
    "unlimited_ocr": Row(
        {},
        parts={"projector_config": "mlp_projector", "text_config": "unlimited_ocr/text_config", "vision_config":
               "vision"}),
    "unlimited_ocr/text_config": Row(
        {"head_dim": 64, HIDDEN: 4096, INNER: 11008, "kv_lora_rank": 512, LENGTH: 2048, "model_type": "deepseek_v2",
         "moe_intermediate_size": 1407, "n_routed_experts": 64, "n_shared_experts": 2, HEADS: 32, LAYERS: 32,
         "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, TIED: False, "v_head_dim": 128, WORDS:
         102400},
        names={"head_dim": "qk_rope_head_dim", "num_experts": "n_routed_experts"}),
    "vaultgemma": Row(
        {"head_dim": 256, HIDDEN: 2304, INNER: 9216, LENGTH: 8192, HEADS: 8, LAYERS: 26, KV: 4, "sliding_window":
         4096, TIED: True, WORDS: 256000},
        layers=("sliding_attention", "full_attention")),
    "vibevoice_acoustic_tokenizer_encoder": Row(
        {HIDDEN: 64}),
    "vibevoice_asr": Row(
        {},
        parts={"acoustic_tokenizer_encoder_config": "vibevoice_acoustic_tokenizer_encoder",
               "semantic_tokenizer_encoder_config": "vibevoice_acoustic_tokenizer_encoder", "text_config": "qwen2"},
        missing={"semantic_tokenizer_encoder_config": {HIDDEN: 128}}),
    "video_llama_3": Row(
        {TIED: False},
        parts={"text_config": "qwen2", "vision_config": "video_llama_3_vision"},
        adopted=True),
    "video_llama_3_vision": Row(
        {HIDDEN: 768, INNER: 3072, HEADS: 12, LAYERS: 12, "patch_size": 16},
        adopted=True),
    "video_llava": Row(
        {TIED: False},
        parts={"text_config": "llama", "vision_config": "clip_vision_model"},
        missing={"vision_config": {HIDDEN: 1024, INNER: 4096, HEADS: 16, LAYERS: 24, "patch_size": 14, WORDS: 32000}},
        adopted=True),
    "vipllava": Row(
        {TIED: False},
        parts={"text_config": "llama", "vision_config": "clip_vision_model"},
        missing={"vision_config": {HIDDEN: 1024, INNER: 4096, HEADS: 16, LAYERS: 24, "patch_size": 14, WORDS: 32000}},
        adopted=True),
    "voxtral": Row(
        {},
        parts={"audio_config": "voxtral_encoder", "text_config": "voxtral/text_config"}),
    "voxtral/text_config": Row(
        {"head_dim": 128, HIDDEN: 3072, INNER: 8192, LENGTH: 131072, "model_type": "llama", HEADS: 32, LAYERS: 30, KV:
         8, TIED: False, WORDS: 131072}),
    "voxtral_encoder": Row(
        {HIDDEN: 1280, INNER: 5120, HEADS: 20, LAYERS: 32, WORDS: 51866},
        names={"d_model": "hidden_size", "encoder_attention_heads": "num_attention_heads", "encoder_ffn_dim":
               "intermediate_size", "encoder_layers": "num_hidden_layers"}),
    "voxtral_realtime": Row(
        {TIED: True},
        parts={"audio_config": "voxtral_realtime_encoder", "text_config": "voxtral_realtime/text_config"},
        adopted=True),
    "voxtral_realtime/text_config": Row(
        {"head_dim": 128, HIDDEN: 3072, INNER: 9216, LENGTH: 131072, "model_type": "voxtral_realtime_text", HEADS: 32,
         LAYERS: 26, KV: 8, "sliding_window": 8192, TIED: True, WORDS: 131072},
        adopted=True),
    "voxtral_realtime_encoder": Row(
        {"head_dim": 64, HIDDEN: 1280, INNER: 5120, LENGTH: 1500, HEADS: 32, LAYERS: 32, "sliding_window": 750, WORDS:
         131072},
        names={"d_model": "hidden_size", "encoder_attention_heads": "num_attention_heads", "encoder_ffn_dim":
               "intermediate_size", "encoder_layers": "num_hidden_layers", KV: "num_attention_heads"},
        adopted=True),
    "voxtral_realtime_text": Row(
        {HIDDEN: 4096, INNER: 14336, LENGTH: 131072, HEADS: 32, LAYERS: 32, KV: 8, "sliding_window": 4096, WORDS:
         32000},
        adopted=True),
    "whisper": Row(
        {"d_model": 384, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536, "encoder_layers": 4,
         "max_target_positions": 448, TIED: True, WORDS: 51865},
        names={HIDDEN: "d_model", HEADS: "encoder_attention_heads", LAYERS: "encoder_layers", KV:
               "encoder_attention_heads"}),
    "xlm-roberta": Row(
        {HIDDEN: 768, INNER: 3072, LENGTH: 512, HEADS: 12, LAYERS: 12, TIED: True, WORDS: 30522}),
    "xlm-roberta-xl": Row(
        {HIDDEN: 2560, INNER: 10240, LENGTH: 514, HEADS: 32, LAYERS: 36, TIED: True, WORDS: 250880},
        adopted=True),
    "xlstm": Row(
        {HIDDEN: 4096, "num_heads": 8, LAYERS: 32, TIED: False, WORDS: 50304},
        adopted=True),
    "xmod": Row(
        {HIDDEN: 768, INNER: 3072, LENGTH: 512, HEADS: 12, LAYERS: 12, TIED: True, WORDS: 30522},
        adopted=True),
    "youtu": Row(
        {"head_dim": 64, HIDDEN: 2048, INNER: 6144, "kv_lora_rank": 512, LENGTH: 131072, HEADS: 16, LAYERS: 32, KV:
         16, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, TIED: True, "v_head_dim": 128,
         WORDS: 128256},
        adopted=True),
    "zamba": Row(
        {"head_ratio": 2.0, HIDDEN: 3712, INNER: 14848, "mamba_d_conv": 4, "mamba_d_state": 16, "mamba_expand": 2,
         LENGTH: 4096, "n_mamba_heads": 2, HEADS: 16, LAYERS: 76, KV: 16, TIED: True, WORDS: 32000},
        names={"head_dim": "attention_head_dim", "layer_types": "layers_block_type"},
        adopted=True),
    "zamba2": Row(
        {"head_ratio": 2.0, HIDDEN: 2560, "mamba_d_conv": 4, "mamba_d_state": 64, "mamba_expand": 2, "mamba_ngroups":
         1, LENGTH: 4096, "n_mamba_heads": 8, HEADS: 32, LAYERS: 54, TIED: True, WORDS: 32000},
        names={"head_dim": "attention_head_dim", "layer_types": "layers_block_type"}),
    "zaya": Row(
        {"head_dim": 128, HIDDEN: 2048, LENGTH: 131072, "moe_intermediate_size": 2048, HEADS: 8, "num_experts": 16,
         "num_experts_per_tok": 1, LAYERS: 40, KV: 2, TIED: True, WORDS: 262272},
        layers=("hybrid",),
        adopted=True),
}
