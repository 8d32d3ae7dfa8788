# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All checks and the advice together, on published models and known GPUs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.models.config import facts as model_facts
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.devices import (
    UNREPORTED,
    Device,
    hypothetical,
    processors,
)
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.fit import Fit, fit
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.misfit import Misfit
from ansible_collections.baremetal.inference.plugins.module_utils.models.shards import FileProblem

Model = Callable[..., ModelFacts]

TP8 = {"tensor-parallel-size": 8}


def checks(found: Fit) -> list[str]:
    return [one.check for one in found.misfits]


def only(found: Fit) -> Misfit:
    """The only misfit."""
    assert len(found.misfits) == 1, found.misfits
    assert found.ok is False
    return found.misfits[0]


@pytest.mark.parametrize(
    ("name", "gpus", "flags", "failed"),
    [
        ("llama-3-8b", "1xH100-80GB", {}, []),
        ("llama-3-8b", "1xL4", {}, []),
        ("llama-3-8b", "1xL4", {"dtype": "float32"}, ["weights"]),
        ("llama-3-8b", "2xV100-16GB", {"dtype": "bfloat16", "tensor-parallel-size": 2}, ["dtype"]),
        ("llama-3-8b", "2xV100-16GB", {"dtype": "half", "tensor-parallel-size": 2}, []),
        ("llama-3-8b", "1xT4", {}, ["weights"]),
        ("llama-3-8b", "8xT4", TP8, []),
        ("llama-3-70b", "1xRTX-4090", {}, ["weights"]),
        ("llama-3-70b", "4xH100-80GB", {"tensor-parallel-size": 4}, []),
        ("llama-3-70b", "4xH100-80GB", {"tensor-parallel-size": 3}, ["heads", "kv_heads", "intermediate_size"]),
        ("llama-3-70b", "2xH100-80GB", {"tensor-parallel-size": 4}, ["gpus"]),
        ("llama-3-70b", "3xH100-80GB", {"pipeline-parallel-size": 3}, []),
        ("llama-3.1-70b", "2xH100-80GB", {"tensor-parallel-size": 2}, ["kv_cache"]),
        ("llama-3.1-70b", "2xH100-80GB", {"tensor-parallel-size": 2, "max-model-len": "16k"}, []),
        ("llama-3.1-70b", "2xH100-80GB", {"tensor-parallel-size": 2, "max-model-len": -1}, []),
        ("llama-3.1-70b", "8xH100-80GB", {**TP8, "max-model-len": 200_000}, ["max_model_len"]),
        ("mixtral-8x7b", "2xA100-80GB", {"tensor-parallel-size": 2}, []),
        ("mixtral-8x7b", "2xA100-80GB", {"tensor-parallel-size": 2, "enable-expert-parallel": True}, []),
        ("mixtral-8x7b", "2xA100-40GB", {"tensor-parallel-size": 2}, ["weights"]),
        ("qwen3-8b", "1xL40S", {"kv-cache-dtype": "fp8"}, []),
        ("qwen3-8b", "1xA100-80GB", {"kv-cache-dtype": "fp8"}, ["kv_cache_dtype"]),
        ("qwen3-8b", "1xL40S", {"enable-expert-parallel": True}, ["experts"]),
        ("qwen3-8b-fp8", "1xL4", {}, []),
        ("qwen3-8b-fp8", "1xV100-32GB", {}, ["quantization"]),
        ("qwen3-8b-fp8", "1xL4", {"quantization": "gptq"}, ["quantization"]),
        ("qwen3-30b-a3b", "1xH100-80GB", {}, []),
        ("qwen3-30b-a3b", "8xL4", TP8, []),
        ("deepseek-v3", "8xH200", TP8, []),
        ("deepseek-v3", "8xH100-80GB", TP8, ["weights"]),
        ("deepseek-v3", "16xH100-80GB", {"tensor-parallel-size": 16}, []),
        ("deepseek-v3", "8xB200", {"data-parallel-size": 8, "enable-expert-parallel": True}, []),
        ("gpt-oss-20b", "1xL4", {"max-model-len": 32768}, []),
        ("gpt-oss-120b", "1xH100-80GB", {}, []),
        ("gpt-oss-120b", "1xL40S", {}, ["weights"]),
        ("gpt-oss-120b", "1xH100-80GB", {"dtype": "float16"}, ["quantization"]),
        ("qwen2.5-7b-gptq-int4", "1xT4", {}, []),
        ("qwen2.5-7b-gptq-int4", "1xT4", {"quantization": "gptq_marlin"}, []),
        ("qwen2.5-7b-gptq-int4", "1xT4", {"dtype": "float32"}, ["quantization"]),
        # 18944 / 8 = 2368 is no multiple of 128, and 28 heads are no multiple of 8.
        ("qwen2.5-7b-gptq-int4", "8xT4", TP8, ["heads", "quantization_shape"]),
        ("qwen2.5-7b-gptq-int4", "4xT4", {"tensor-parallel-size": 4}, []),
    ],
)
def test_each_published_model_fits_or_has_the_expected_misfits(
    name: str, gpus: str, flags: dict[str, Any], failed: list[str], model: Model
) -> None:
    found = fit(model(name), flags, hypothetical(gpus))
    assert checks(found) == failed
    assert found.unknown == ()
    assert found.ok is not bool(failed)


def test_a_misfit_names_the_tensor_parallel_sizes_that_fit(model: Model) -> None:
    found = fit(model("llama-3-70b"), {"tensor-parallel-size": 3}, hypothetical("8xH100-80GB"))
    heads = found.misfits[0]
    assert (heads.check, heads.key, heads.value) == ("heads", "tensor-parallel-size", 3)
    assert heads.message == "does not divide the model's 64 attention heads"
    assert heads.fits == [{"tensor-parallel-size": size} for size in (2, 4, 8)]
    facts = model("llama-3-70b")
    unknown = replace(facts, config=replace(facts.config, attention=None))
    (first, *_rest) = fit(unknown, {"tensor-parallel-size": 3}, hypothetical("8xH100-80GB")).misfits
    assert {"tensor-parallel-size": 8} in first.fits
    # For a model that cannot be divided, the estimate of a GPU has no meaning.
    assert found.estimate.weights_gib is None


def test_all_misfits_are_reported_at_once(model: Model) -> None:
    flags = {
        "tensor-parallel-size": 3,
        "dtype": "bfloat16",
        "kv-cache-dtype": "fp8",
        "max-model-len": 1_000_000,
        "gpu-memory-utilization": 7,
        "max-num-seqs": 512,
        "max-num-batched-tokens": 128,
    }
    found = fit(model("llama-3-8b"), flags, hypothetical("2xV100-16GB"), lowest_capability=(7, 5))
    assert checks(found) == [
        *("value", "heads", "kv_heads", "intermediate_size", "gpus", "max_model_len", "scheduler"),
        *("dtype", "kv_cache_dtype", "image"),
    ]


def test_a_note_reports_repeated_kv_heads(model: Model) -> None:
    repeated = fit(model("qwen3-30b-a3b"), TP8, hypothetical("8xL4"))
    assert repeated.ok
    assert any("4 KV heads are repeated on 8 GPUs" in note for note in repeated.notes)


def test_the_smallest_gpu_limits_all(model: Model) -> None:
    flags = {"tensor-parallel-size": 2}
    found = fit(model("llama-3-8b"), flags, hypothetical("1xA100-80GB,1xA100-40GB"))
    assert only(found).check == "same_gpus"
    assert found.estimate.budget_gib == 36.8
    # A GPU that is not reported yet may be of the same kind.
    assert fit(model("llama-3-8b"), flags, [*hypothetical("1xL4"), UNREPORTED]).ok is None


def test_on_a_gpu_without_bfloat16_the_engine_computes_in_float16(model: Model) -> None:
    found = fit(model("llama-3-8b"), {}, hypothetical("1xV100-32GB"))
    assert found.ok
    assert any("computes in float16" in note for note in found.notes)


def test_damaged_files_are_misfits(model: Model) -> None:
    facts = replace(
        model("llama-3-8b"), problems=(FileProblem("model-1.safetensors", "is cut"), FileProblem("", "is empty"))
    )
    found = fit(facts, {}, hypothetical("1xL40S"))
    assert [(one.check, one.key, one.message) for one in found.misfits] == [
        ("files", "model-1.safetensors", "is cut"),
        ("files", "directory", "is empty"),
    ]


def test_without_gpus_nothing_fits(model: Model) -> None:
    found = fit(model("llama-3-8b"), {}, [])
    assert checks(found) == ["gpus"]
    assert found.estimate.weights_gib == 14.96
    assert found.estimate.kv_cache_gib is None


def test_with_an_unknown_fact_the_fit_is_unknown(model: Model) -> None:
    unknown = fit(model("llama-3-8b"), {}, [Device("B400", None, (10, 3))])
    assert (unknown.ok, unknown.unknown) == (None, ("the memory of B400",))
    assert fit(model("llama-3-8b"), {}, [Device("X", 80000)]).unknown == ("the compute capability of X",)
    strange = fit(model("llama-3-8b", model_type="unheard_of"), {}, hypothetical("1xL40S"))
    assert strange.ok is None
    assert strange.unknown == (
        "the size of the weights: no file was read, and a unheard_of configuration is not enough",
    )
    assert fit(model("llama-3-8b", full_attention_interval=4), {}, hypothetical("1xL40S")).ok is None
    assert fit(model_facts.from_config({}), {}, hypothetical("1xL40S")).ok is None
    # A misfit that is certain counts, even if other facts are unknown.
    assert (
        fit(model("llama-3-8b", model_type="unheard_of"), {"tensor-parallel-size": 3}, hypothetical("3xL40S")).ok
        is False
    )


def test_notes_name_flags_that_are_not_counted(model: Model) -> None:
    flags = {"decode-context-parallel-size": 2, "limit-mm-per-prompt": {"image": 2}, "nnodes": 1}
    notes = fit(model("deepseek-v3"), {**TP8, **flags}, hypothetical("8xH200")).notes
    assert [note.partition(":")[0] for note in notes] == [
        "decode-context-parallel-size",
        "limit-mm-per-prompt",
        "the size of the weights is computed from config.json",
        "config.json",
    ]


def test_vllm_cpu_kvcache_space_counts(model: Model) -> None:
    space = {"VLLM_CPU_KVCACHE_SPACE": 4}
    found = fit(model("llama-3-8b"), {}, processors(64 * 1024), space)
    assert found.ok
    assert (found.estimate.kv_cache_gib, found.estimate.max_concurrency) == (4.0, 4.0)
    too_small = only(fit(model("llama-3.1-70b"), {"max-model-len": 32768}, processors(512 * 1024), space))
    assert (too_small.check, too_small.fits) == ("kv_cache", [{"VLLM_CPU_KVCACHE_SPACE": 11}, {"max-model-len": 12928}])


def test_the_estimate_counts_all_data_parallel_ranks(model: Model) -> None:
    one = fit(model("llama-3-8b"), {}, hypothetical("1xL40S")).estimate
    four = fit(model("llama-3-8b"), {"data-parallel-size": 4}, hypothetical("4xL40S")).estimate
    assert one.max_concurrency and four.max_concurrency
    assert four.max_concurrency == pytest.approx(4 * one.max_concurrency, rel=0.01)
    assert four.weights_gib == one.weights_gib


def test_with_each_advised_setting_the_failed_check_passes(model: Model, published: dict[str, Any]) -> None:
    good = 0
    for name in published:
        for gpus in ("1xL4", "2xRTX-4090", "1xV100-32GB", "4xA100-40GB", "8xH100-80GB", "3xL40S"):
            for flags in (
                {},
                {"tensor-parallel-size": 2},
                {"tensor-parallel-size": 3},
                {"kv-cache-memory-bytes": "100M"},
            ):
                found = fit(model(name), flags, hypothetical(gpus))
                for misfit in found.misfits:
                    for advice in misfit.fits:
                        changed = {key: value for key, value in advice.items() if key != "gpus"}
                        count = int(advice.get("gpus", gpus[0]))
                        again = fit(model(name), {**flags, **changed}, hypothetical(f"{count}x{gpus[2:]}"))
                        assert misfit.check not in checks(again), (name, gpus, flags, misfit, advice)
                        good += 1
    assert good > 100


numbers = st.integers(1, 1 << 20) | st.none()

SIZES = (
    *("hidden_size", "num_attention_heads", "num_key_value_heads", "vocab_size", "intermediate_size", "num_experts"),
    *("max_position_embeddings", "sliding_window", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim"),
    *("v_head_dim", "moe_intermediate_size"),
)


@given(
    config=st.fixed_dictionaries(
        {},
        optional={
            "model_type": st.sampled_from(["llama", "gpt_oss", "deepseek_v3", "qwen3_moe", "gemma2", "unheard_of"]),
            **dict.fromkeys(SIZES, numbers),
            "num_hidden_layers": st.integers(1, 300),
            "quantization_config": st.sampled_from(
                [{"quant_method": "mxfp4"}, {"quant_method": "fp8"}, {"bits": 4}, None]
            ),
        },
    ),
    flags=st.fixed_dictionaries(
        {},
        optional={
            **{f"{kind}-parallel-size": st.integers(1, 9) for kind in ("tensor", "pipeline", "data")},
            "max-model-len": st.integers(-1, 1 << 20),
            "enable-expert-parallel": st.booleans(),
            "kv-cache-dtype": st.sampled_from(["auto", "fp8", "nvfp4", "int8_per_token_head"]),
            "kv-cache-memory-bytes": st.integers(1, 1 << 40),
        },
    ),
    gpus=st.sampled_from(["1xL4", "8xH100-80GB", "2xT4,1xGB300"]),
)
def test_any_configuration_is_no_exception(config: dict[str, Any], flags: dict[str, Any], gpus: str) -> None:
    found = fit(model_facts.from_config(config), flags, hypothetical(gpus))
    assert json.dumps(found.estimate.to_dict(), allow_nan=False)
    assert found.ok is not True or (found.estimate.spare_gib or 0) >= 0


def test_advice_that_would_be_refused_is_left_out(model: Model) -> None:
    """70B on three V100S: its weights do not fit on two of them, and sixteen are more than a node has."""
    found = fit(model("llama-3-70b"), {"tensor-parallel-size": 3}, hypothetical("3xV100S-32GB"), node_gpus=3)
    assert found.ok is False
    assert found.misfits and not any(one.fits for one in found.misfits)
    more = fit(model("llama-3-70b"), {"tensor-parallel-size": 3}, hypothetical("3xV100S-32GB"))
    assert {"gpus": 16} not in [advice for one in more.misfits for advice in one.fits]


def test_hf_overrides_count(model: Model) -> None:
    entry = {"max-model-len": 131072, "hf-overrides": {"max_position_embeddings": 131072}}
    assert "max_model_len" not in checks(fit(model("qwen3-8b"), entry, hypothetical("1xH100-80GB")))
    assert "max_model_len" in checks(fit(model("qwen3-8b"), {"max-model-len": 131072}, hypothetical("1xH100-80GB")))
    read = fit(model("qwen3-8b"), {"hf-overrides": '{"head_dim": 2}'}, hypothetical("1xH100-80GB"))
    assert "hf-overrides: the configuration is read without head_dim" in read.notes
    environment = {"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"}
    allowed = fit(model("qwen3-8b"), {"max-model-len": 131072}, hypothetical("1xH100-80GB"), environment)
    assert allowed.ok and any("VLLM_ALLOW_LONG_MAX_MODEL_LEN" in note for note in allowed.notes)
