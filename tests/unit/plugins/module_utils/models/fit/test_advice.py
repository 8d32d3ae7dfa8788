# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of fit/advice.py: misfits of memory, and the settings that would be enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts, from_config
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.advice import Case
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.devices import (
    NO_DEVICE,
    Device,
    hypothetical,
    processors,
)
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.flags import read
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.misfit import Misfit

Model = Callable[..., ModelFacts]


def case(facts: ModelFacts, entry: dict[str, Any], devices: str | list[Device], **environment: str) -> Case:
    there = hypothetical(devices) if isinstance(devices, str) else devices
    return Case(facts, read(entry)[0], there, environment)


def only(case: Case) -> Misfit:
    """The only misfit of memory."""
    (found,) = case.misfits()
    return found


def test_for_a_cache_that_is_too_small_more_gpus_or_a_shorter_length_is_advised(model: Model) -> None:
    misfit = only(case(model("llama-3.1-70b"), {"tensor-parallel-size": 2}, "4xH100-80GB"))
    assert (misfit.check, misfit.key, misfit.value) == ("kv_cache", "max-model-len", 131072)
    assert "20.00 GiB of KV cache" in misfit.message
    settings = {key: value for advice in misfit.fits for key, value in advice.items()}
    assert settings["tensor-parallel-size"] == 4
    assert 16_000 < settings["max-model-len"] < 25_000


def test_advice_names_the_sufficient_number_of_gpus(model: Model) -> None:
    misfit = only(case(model("llama-3-70b"), {}, "1xRTX-4090"))
    assert (misfit.check, misfit.key, misfit.value) == ("weights", "gpu-memory-utilization", 0.92)
    assert "of each RTX-4090. 131.42 GiB of weights" in misfit.message
    assert misfit.message.endswith("to compute with leave nothing for the KV cache")
    assert misfit.fits == [{"tensor-parallel-size": 8, "gpus": 8}]


def test_advice_names_the_sufficient_utilization(model: Model) -> None:
    misfit = only(case(model("llama-3-8b"), {"gpu-memory-utilization": 0.7}, "1xL4"))
    assert {"gpu-memory-utilization": 0.8} in misfit.fits


def test_advice_names_fp8_where_it_is_sufficient(model: Model) -> None:
    misfit = only(case(model("qwen3-8b", max_position_embeddings=60000), {}, "1xRTX-4090"))
    assert {"kv-cache-dtype": "fp8"} in misfit.fits
    assert "kv-cache-dtype" not in str(only(case(model("qwen3-8b", max_position_embeddings=99999), {}, "1xA10")).fits)


def test_fp8_is_no_advice_for_a_gpu_without_it(model: Model) -> None:
    short = case(model("qwen3-8b"), {}, "1xA10")
    assert short.passes(kv_cache_dtype="fp8")
    assert "kv-cache-dtype" not in str(only(short).fits)


def test_with_each_advised_setting_the_failed_check_passes(model: Model, published: dict[str, Any]) -> None:
    good = 0
    for name in published:
        for gpus in ("1xL4", "2xRTX-4090", "1xV100-32GB", "4xA100-40GB", "8xH100-80GB", "3xL40S"):
            for flags in ({}, {"tensor-parallel-size": 2}, {"kv-cache-memory-bytes": "100M"}):
                for misfit in case(model(name), flags, gpus).misfits():
                    for advice in misfit.fits:
                        changed = {key: value for key, value in advice.items() if key != "gpus"}
                        count = int(advice.get("gpus", gpus[0]))
                        again = case(model(name), {**flags, **changed}, f"{count}x{gpus[2:]}").misfits()
                        assert misfit.check not in [one.check for one in again], (name, gpus, flags, misfit, advice)
                        good += 1
    assert good > 75


def test_kv_cache_memory_bytes_must_fit_and_be_enough_for_a_request(model: Model) -> None:
    facts = model("llama-3-8b")
    assert case(facts, {"kv-cache-memory-bytes": "2G", "gpu-memory-utilization": 0.1}, "1xL4").misfits() == []
    misfit = only(case(facts, {"kv-cache-memory-bytes": "20G"}, "1xL4"))
    assert (misfit.check, misfit.key, misfit.value) == ("memory", "kv-cache-memory-bytes", 20 << 30)
    assert misfit.message.endswith("this cache takes more than the 22.49 GiB of L4")
    misfit = only(case(facts, {"kv-cache-memory-bytes": "512M"}, "1xL4"))
    assert misfit.check == "kv_cache"
    assert {"max-model-len": 4080} in misfit.fits
    assert {"kv-cache-memory-bytes": 1075838976} in misfit.fits


def test_the_cpu_engine_has_the_cache_of_vllm_cpu_kvcache_space(model: Model) -> None:
    short = {"max-model-len": 32768}
    too_small = only(case(model("llama-3.1-70b"), short, processors(512 * 1024), VLLM_CPU_KVCACHE_SPACE="4"))
    assert (too_small.check, too_small.fits) == ("kv_cache", [{"VLLM_CPU_KVCACHE_SPACE": 11}, {"max-model-len": 12928}])
    too_large = only(case(model("llama-3-8b"), {}, processors(16 * 1024), VLLM_CPU_KVCACHE_SPACE="8"))
    assert (too_large.check, too_large.key, too_large.value) == ("memory", "VLLM_CPU_KVCACHE_SPACE", 8)


def test_the_tensor_parallel_sizes_that_fit_into_memory_are_found(model: Model) -> None:
    assert case(model("llama-3-70b"), {}, "8xH100-80GB").sizes() == [2, 4, 8]
    assert case(model("llama-3-70b"), {}, [Device("X", None)] * 8).sizes() == [1, 2, 4, 8]
    # If the need is unknown, only the model's own sizes decide.
    facts = model("llama-3-70b")
    unknown = replace(facts, config=replace(facts.config, attention=None))
    assert case(unknown, {}, "8xH100-80GB").sizes() == [1, 2, 4, 8]
    # Where memory is never enough, no size is advised.
    assert case(model("llama-3-70b"), {}, "2xL4").sizes() == []
    # Stages and ranks share the GPUs.
    assert case(model("llama-3-70b"), {"pipeline-parallel-size": 2}, "8xH100-80GB").tensor_parallel_limit == 4


def test_the_smallest_gpu_that_is_used_limits_all(model: Model) -> None:
    flags = {"tensor-parallel-size": 2}
    assert case(model("llama-3-8b"), flags, "1xA100-80GB,1xA100-40GB").device.name == "A100-40GB"
    assert case(model("llama-3-8b"), flags, "2xA100-80GB,1xA100-40GB").device.name == "A100-80GB"
    assert case(model("llama-3-8b"), flags, []).device == NO_DEVICE


def test_an_unknown_memory_or_need_does_not_pass(model: Model) -> None:
    assert case(model("llama-3-8b"), {}, "1xL4").passes()
    assert not case(model("llama-3-8b"), {}, [Device("B400", None, (10, 3))]).passes()
    assert not case(model("llama-3-8b", model_type="unheard_of"), {}, "1xL4").passes()
    assert not case(model("llama-3-8b"), {}, "1xL4").passes(dtype="float32")


def test_weights_beyond_the_budget_are_a_misfit_even_if_other_needs_are_unknown(model: Model) -> None:
    facts = model("llama-3-70b")
    unknown = replace(facts, config=replace(facts.config, vocabulary_size=None, max_length=None, attention=None))
    misfit = only(case(unknown, {}, "1xL40S"))
    assert misfit.check == "weights"
    assert misfit.message.endswith("of each L40S. 131.42 GiB of weights leave nothing for the KV cache")


def test_a_published_model_that_leaves_out_keys_with_defaults_has_a_known_need() -> None:
    """The configuration of Gemma 3 27B lacks the keys for vocabulary and tied embeddings, and has a part for images."""
    text = {"model_type": "gemma3_text", "hidden_size": 5376, "intermediate_size": 21504, "num_hidden_layers": 62}
    heads = {"num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128, "sliding_window": 1024}
    vision = {"model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304}
    raw = {
        "model_type": "gemma3",
        "dtype": "bfloat16",
        "text_config": {**text, **heads},
        "vision_config": {**vision, "num_hidden_layers": 27},
    }
    facts = from_config(raw)
    assert facts.weights and abs(facts.weights.parameters - 27.43e9) < 0.1e9
    assert case(facts, {"max-model-len": 100_000}, "1xH100-80GB").passes()
    assert only(case(facts, {}, "1xL40S")).check == "weights"


def test_advice_stays_within_the_node(model: Model) -> None:
    facts = model("llama-3-70b")
    assert only(case(facts, {}, "1xRTX-4090")).fits == [{"tensor-parallel-size": 8, "gpus": 8}]
    small = replace(case(facts, {}, "1xRTX-4090"), node_gpus=4)
    assert only(small).fits == []
    # Eight such GPUs are too few, and no advice asks for sixteen.
    assert only(case(facts, {}, "1xT4")).fits == []


def test_if_the_heads_cannot_be_divided_stages_are_advised(model: Model) -> None:
    misfit = only(case(model("llama-3-70b"), {}, "3xH100-80GB"))
    assert {"tensor-parallel-size": 2} in misfit.fits
    three = replace(model("llama-3-70b"), config=replace(model("llama-3-70b").config, attention_heads=63, kv_heads=7))
    assert {"pipeline-parallel-size": 2} in only(case(three, {}, "3xH100-80GB")).fits
