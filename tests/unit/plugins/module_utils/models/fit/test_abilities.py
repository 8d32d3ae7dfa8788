# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the GPUs and the image can compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts, from_config
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.positions import Rope
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit import abilities
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.capabilities import Capability
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.devices import (
    UNREPORTED,
    Device,
    hypothetical,
    processors,
)
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.flags import Flags, read
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.misfit import Misfit

Model = Callable[..., ModelFacts]


def check(
    facts: ModelFacts, devices: str | list[Device], lowest: Capability | None = None, **flags: Any
) -> list[Misfit]:
    there = hypothetical(devices) if isinstance(devices, str) else devices
    return abilities.check(facts.config, Flags(**flags), there, (2, 4), lowest)


def only(found: list[Misfit]) -> Misfit:
    """The only misfit."""
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    ("stored", "asked", "gpu", "expected"),
    [
        ("bfloat16", "auto", "L4", "bfloat16"),
        ("bfloat16", "auto", "V100-32GB", "float16"),
        ("float32", "auto", "L4", "bfloat16"),
        ("float32", "auto", "V100-32GB", "float16"),
        (None, "auto", "L4", "bfloat16"),
        ("float16", "auto", "L4", "float16"),
        ("bfloat16", "float32", "V100-32GB", "float32"),
        ("bfloat16", "fp16", "L4", None),
    ],
)
def test_the_engine_computes_in_a_dtype_that_the_gpu_has(
    stored: str | None, asked: str, gpu: str, expected: str | None, model: Model
) -> None:
    config = model("llama-3-8b", torch_dtype=stored).config
    assert abilities.engine_dtype(config, Flags(dtype=asked), hypothetical(gpu)[0]) == expected
    assert abilities.engine_dtype(config, Flags(), processors(None)[0]) == (
        "float16" if stored == "float16" else "bfloat16"
    )


def test_the_needed_gpus_are_the_product_of_all_parallel_sizes(model: Model) -> None:
    flags: dict[str, Any] = {"tensor_parallel_size": 2, "pipeline_parallel_size": 3, "data_parallel_size": 2}
    misfit = only(check(model("llama-3-8b"), "4xL4", **flags))
    assert (misfit.check, misfit.key, misfit.value) == ("gpus", "gpus", 4)
    assert misfit.message.startswith("is too few: tensor-parallel-size 2 x pipeline-parallel-size 3 x ")
    assert misfit.message.endswith("data-parallel-size 2 needs 12")
    assert misfit.fits == [{"gpus": 12}, {"tensor-parallel-size": 2}, {"tensor-parallel-size": 4}]
    assert check(model("llama-3-8b"), "12xL4", **flags) == []
    # Processors are not counted. Without any device, the dtype of the KV cache is not checked.
    assert check(model("llama-3-8b"), processors(None), **flags) == []
    assert only(check(model("llama-3-8b"), [], kv_cache_dtype="nvfp4")).check == "gpus"


def test_gpus_of_different_generations_or_memory_do_not_fit(model: Model) -> None:
    flags: dict[str, Any] = {"tensor_parallel_size": 2}
    facts = model("llama-3-8b")
    kinds = only(check(facts, "1xL4,1xA10", **flags))
    assert (kinds.check, "of different generations (A10, L4)" in kinds.message) == ("same_gpus", True)
    memory = only(check(facts, "1xA100-80GB,1xA100-40GB", **flags))
    assert (memory.check, memory.message.startswith("have from 40960 to 81920 MiB")) == ("same_gpus", True)
    # GPUs that are not used do not count, and names do not matter.
    assert check(facts, "2xL4,1xT4", **flags) == []
    assert check(facts, "1xH100-80GB,1xH100-PCIe-80GB", **flags) == []
    # A GPU that is not reported yet may be of the same kind.
    assert check(facts, [*hypothetical("1xL4"), UNREPORTED], **flags) == []


def test_bfloat16_needs_a_gpu_that_supports_bfloat16(model: Model) -> None:
    misfit = only(check(model("llama-3-8b"), "1xV100-16GB", dtype="bfloat16"))
    assert misfit.message == "needs compute capability 8.0 or later, V100-16GB has 7.0"
    assert misfit.fits == [{"dtype": "float16"}]
    assert check(model("llama-3-8b"), "1xV100-16GB", dtype="float16") == []
    assert check(model("llama-3-8b"), processors(None), dtype="bfloat16") == []


def test_models_that_overflow_in_float16_do_not_fit_with_float16(model: Model) -> None:
    gemma = model("llama-3-8b", model_type="gemma2")
    for dtype in ("auto", "bfloat16"):
        assert only(check(gemma, "1xV100-32GB", dtype=dtype)).fits == [{"dtype": "float32"}]
    assert only(check(gemma, "1xL4", dtype="float16")).fits == [{"dtype": "bfloat16"}]
    assert check(gemma, "1xL4") == []


def test_an_unknown_dtype_is_a_misfit(model: Model) -> None:
    misfit = only(check(model("llama-3-8b"), "1xL40S", dtype="fp16"))
    assert misfit.message == "must be one of auto, float32, float16, bfloat16"
    assert misfit.fits == [{"dtype": "auto"}]


@pytest.mark.parametrize(
    ("name", "gpu", "flags", "key", "message"),
    [
        ("qwen3-8b-fp8", "V100-32GB", {}, "quantization", "needs compute capability 7.5 or later, V100-32GB has 7.0"),
        ("qwen3-8b-fp8", "L4", {"quantization": "gptq"}, "quantization", "is not how the model is quantized: fp8"),
        ("gpt-oss-120b", "H100-80GB", {"dtype": "float16"}, "dtype", "mxfp4 weights can be computed in: bfloat16"),
        ("qwen2.5-7b-gptq-int4", "T4", {"dtype": "float32"}, "dtype", "weights can be computed in: bfloat16, float16"),
    ],
)
def test_a_method_of_quantization_needs_certain_gpus_and_dtypes(
    name: str, gpu: str, flags: dict[str, Any], key: str, message: str, model: Model
) -> None:
    misfit = only(check(model(name), gpu, **flags))
    assert (misfit.check, misfit.key) == ("quantization", key)
    assert message in misfit.message


def test_a_method_of_quantization_that_the_gpu_supports_fits(model: Model) -> None:
    assert check(model("qwen2.5-7b-gptq-int4"), "1xT4", quantization="gptq_marlin") == []
    # A dtype that the GPU lacks is no advice.
    assert only(check(model("qwen2.5-7b-gptq-int4"), "1xT4", dtype="float32")).fits == [{"dtype": "float16"}]
    assert check(model("qwen3-8b-fp8"), processors(None)) == []


@pytest.mark.parametrize(
    ("kind", "gpu", "needed"),
    [("fp8", "A100-80GB", "8.9"), ("bfloat16", "V100-16GB", "8.0"), ("nvfp4", "H100-80GB", "10.0")],
)
def test_a_dtype_of_the_kv_cache_needs_certain_gpus(kind: str, gpu: str, needed: str, model: Model) -> None:
    misfit = only(check(model("qwen3-8b"), gpu, kv_cache_dtype=kind))
    assert (misfit.check, misfit.key, misfit.value) == ("kv_cache_dtype", "kv-cache-dtype", kind)
    assert misfit.message.startswith(f"needs compute capability {needed} or later, {gpu} has ")
    assert misfit.fits == [{"kv-cache-dtype": "auto"}]
    assert check(model("qwen3-8b"), "1xB200", kv_cache_dtype=kind) == []


def test_the_cpu_engine_has_limits_of_its_own(model: Model) -> None:
    found = check(model("llama-3-8b", head_dim=16), processors(64 * 1024), kv_cache_dtype="nvfp4")
    assert [one.check for one in found] == ["kv_cache_dtype", "head_size"]
    assert found[0].message == "is not supported by the CPU engine, which has auto, fp8, fp8_e4m3, fp8_e5m2"
    assert (found[1].value, "32, 64, 80, 96" in found[1].message) == (16, True)
    assert check(model("llama-3-8b", head_dim=16), "1xL4") == []


def test_a_gpu_for_which_the_image_has_no_code_does_not_fit(model: Model) -> None:
    misfit = only(check(model("llama-3-8b"), "1xT4", (8, 0)))
    assert (misfit.check, misfit.value) == ("image", "7.5")
    assert misfit.message == "T4: the engine's image has no code for it, only for 8.0 and later"
    assert check(model("llama-3-8b"), "1xT4", (7, 5)) == []
    # A GPU of unknown compute capability is not refused.
    assert check(model("llama-3-8b"), [Device("X", 80000)], (8, 0)) == []


def test_max_model_len_above_the_models_length_is_a_misfit(model: Model) -> None:
    misfit = only(check(model("llama-3.1-70b"), "1xL4", max_model_len=200_000))
    assert (misfit.check, misfit.fits) == ("max_model_len", [{"max-model-len": 131072}])
    assert misfit.message == (
        "is more than the model's 131072 tokens (rope llama3 with factor 8 is counted in). For more, write "
        "hf-overrides with max_position_embeddings and rope_parameters, as the model's card says. If the weights are "
        "made for longer requests, set VLLM_ALLOW_LONG_MAX_MODEL_LEN: '1' in environment of the instance instead"
    )
    assert check(model("llama-3.1-70b"), "1xL4", max_model_len=131072) == []
    assert check(model("llama-3.1-70b"), "1xL4", max_model_len=-1) == []


def test_hf_overrides_are_no_advice_if_a_file_of_sentence_transformers_sets_the_length(model: Model) -> None:
    facts = model("llama-3.1-70b")
    limited = replace(facts, config=replace(facts.config, max_length=512))
    misfit = only(check(limited, "1xL4", max_model_len=1024))
    assert misfit.fits == [{"max-model-len": 512}]
    assert "which a file beside config.json says: max_seq_length of Sentence Transformers" in misfit.message
    assert misfit.message.endswith("VLLM_ALLOW_LONG_MAX_MODEL_LEN: '1' in environment of the instance allows more")
    assert "hf-overrides" not in misfit.message


@pytest.mark.parametrize("name", ["GH200", "GB200", "GB300", "GB10"])
def test_machines_with_shared_memory_are_refused(name: str, model: Model) -> None:
    misfit = only(check(model("llama-3-8b"), f"1x{name}"))
    assert (misfit.check, misfit.value) == ("machine", name)
    assert "only x86_64 (amd64)" in misfit.message


YARN = Rope("yarn", 4.0, 32768)


def test_hf_overrides_are_advised_up_to_the_length_of_the_rope(model: Model) -> None:
    facts = model("qwen3-8b")
    stretched = replace(facts, config=replace(facts.config, rope=YARN))
    misfit = only(check(stretched, "1xL4", max_model_len=131072))
    assert misfit.fits == [
        {"max-model-len": 40960},
        {"hf-overrides": {"max_position_embeddings": 131072}},
    ]
    assert misfit.message.endswith(
        "Its rope reaches 131072: hf-overrides with max_position_embeddings raises the limit"
    )
    # Beyond what its rope reaches, no override is advised.
    assert only(check(stretched, "1xL4", max_model_len=200_000)).fits == [{"max-model-len": 40960}]


@pytest.mark.parametrize(("value", "allowed"), [("1", True), (" TRUE ", True), ("0", False), ("yes", False)])
def test_vllm_allow_long_max_model_len_allows_a_longer_context(value: str, allowed: bool, model: Model) -> None:
    flags = read({"max-model-len": 200_000})[0]
    found = abilities.check(model("qwen3-8b").config, flags, hypothetical("1xL4"), (), None, {abilities.LONGER: value})
    assert (found == []) is allowed


def test_a_model_without_positions_takes_any_length() -> None:
    facts = from_config({"model_type": "mamba"})
    assert (facts.config.max_length, facts.config.max_positions) == (2048, None)
    assert check(facts, "1xL4", max_model_len=100_000) == []


def test_max_num_batched_tokens_below_max_num_seqs_is_a_misfit(model: Model) -> None:
    misfit = only(check(model("llama-3-8b"), "1xL4", max_num_seqs=512, max_num_batched_tokens=128))
    assert (misfit.check, misfit.key, misfit.value) == ("scheduler", "max-num-batched-tokens", 128)
    assert misfit.fits == [{"max-num-batched-tokens": 512}, {"max-num-seqs": 128}]
    assert check(model("llama-3-8b"), "1xL4", max_num_seqs=128, max_num_batched_tokens=128) == []


def test_without_chunked_prefill_max_num_batched_tokens_below_max_model_len_is_a_misfit(model: Model) -> None:
    flags: dict[str, Any] = {"max_num_batched_tokens": 2048, "max_model_len": 8192}
    misfit = only(check(model("llama-3-8b"), "1xL40S", enable_chunked_prefill=False, **flags))
    assert misfit.fits == [{"max-num-batched-tokens": 8192}, {"enable-chunked-prefill": True}]
    assert check(model("llama-3-8b"), "1xL40S", **flags) == []
