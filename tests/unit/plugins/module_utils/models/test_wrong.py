# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes of operators: each has an error that says what to do, and all mistakes are reported at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts, from_config
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.devices import hypothetical
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.fit import fit
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.catalogue import choose
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.entries import read

Model = Callable[..., ModelFacts]

HUB = {"model": "org/name", "revision": "0" * 40}

REGISTRIES: dict[str, tuple[Any, str]] = {
    "no-model": ({"dtype": "auto"}, "model: is required"),
    "no-mapping": ("org/name", "must be a dictionary of keys, found str"),
    "flag-typo": ({**HUB, "dtypee": "half"}, "did you mean 'dtype'?"),
    "value-typo": ({**HUB, "dtype": "fp16"}, "must be one of auto, bfloat16"),
    "underscores": ({**HUB, "max_model_len": 8192}, "write 'max-model-len'"),
    "short-name": ({**HUB, "tp": 4}, "write 'tensor-parallel-size'"),
    "opposite": ({**HUB, "no-enforce-eager": True}, "write enforce-eager: false"),
    "adapters-by-flag": ({**HUB, "no-enable-lora": True}, "write an entry with base and adapter"),
    "modules-by-flag": ({**HUB, "lora-modules": ["a=/x"]}, "write an entry with base and adapter"),
    "part-of-a-flag": ({**HUB, "compilation-config.level": 3}, "write compilation-config as a dictionary"),
    "owned": ({**HUB, "port": 8000}, "set port of the instance"),
    "served-name": ({**HUB, "served-model-name": "x"}, "set name of the instance"),
    "no-number": ({**HUB, "max-num-seqs": "many"}, "must be a whole number"),
    "quoted-switch": ({**HUB, "enforce-eager": "yes"}, "must be true or false, without quotes"),
    "no-value": ({**HUB, "max-model-len": None}, "has no value"),
    "quantization": ({**HUB, "quantization": "fp-8"}, "did you mean 'fp8'?"),
    "utilization": ({**HUB, "gpu-memory-utilization": 35}, "must be more than 0 and at most 1"),
    "ranks": ({**HUB, "tensor-parallel-size": 0}, "must be a whole number from 1"),
    "rank": ({**HUB, "max-lora-rank": 48}, "must be one of 1, 8, 16, 32, 64"),
    "rope": ({**HUB, "rope-scaling": {"factor": 4}}, "write it as hf-overrides"),
    "gpus": ({**HUB, "gpus": [0, 1]}, "set it in the instance"),
    "args": ({**HUB, "args": ["--x"]}, "write each flag as a key of the entry itself"),
    "remote-code": ({**HUB, "trust-remote-code": True}, "set allow-remote-code: true"),
    "own-key-typo": ({**HUB, "descripton": "x"}, "did you mean 'description'?"),
    "no-base": ({"base": "flag-tipo"}, "did you mean 'flag-typo'?"),
    "base-and-model": ({"base": "good", "model": "org/name"}, "belongs to the base"),
    "draft": ({**HUB, "speculative-config": {"model": "org/small"}}, "add an entry with model: org/small"),
    "draft-typo": ({**HUB, "speculative-config": {"model": "goood"}}, "did you mean 'good'?"),
    "policy": ({**HUB, "system-prompt-policy": "always"}, "does nothing without system-prompt"),
    # Keys of other engines, of instances, and with other spellings.
    "other-engine": ({**HUB, "tp-size": 2}, "write tensor-parallel-size"),
    "other-memory": ({**HUB, "mem-fraction-static": 0.8}, "write gpu-memory-utilization"),
    "other-length": ({**HUB, "max_total_tokens": 8192}, "write max-model-len"),
    "dashes": ({**HUB, "--max-model-len": 8192}, "write 'max-model-len'"),
    "camel": ({**HUB, "maxModelLen": 8192}, "did you mean 'max-model-len'?"),
    "environment": ({**HUB, "env": {"HF_TOKEN": "hf_secret"}}, "set environment or secret_environment in the instance"),
    "image": ({**HUB, "image": "vllm/vllm-openai:v0.32.0"}, "set image in the instance"),
    "memory": ({**HUB, "memory": "64g"}, "set memory in the instance"),
    "user": ({**HUB, "user": "2000"}, "set it in the instance"),
    "source-list": ({**HUB, "model": ["org/name"]}, "must be one text, found a list"),
    "source-empty": ({**HUB, "model": ""}, "is empty"),
    # Adapters and drafts in the wrong place.
    "adapters-key": ({**HUB, "adapters": ["org/legal"]}, "write an entry with base and adapter"),
    "adapter-flags": ({"base": "good", "adapter": "org/legal", "dtype": "half"}, "Set it in the entry of the base"),
    "adapter-alone": ({"adapter": "org/legal"}, "base: is required beside adapter"),
    "adapter-prompt": (
        {"base": "good", "adapter": "org/legal", "system-prompt": "x"},
        "is not possible for an adapter",
    ),
    "draft-flag": ({**HUB, "speculative-model": "good"}, "write it in speculative-config"),
    "draft-list": ({**HUB, "speculative-config": ["good"]}, "must be a dictionary, or a JSON object in quotes"),
    "draft-count": ({**HUB, "speculative-config": {"method": "ngram"}}, "has no num_speculative_tokens"),
    "draft-zero": ({**HUB, "speculative-config": {"model": "good", "num_speculative_tokens": 0}}, "number from 1"),
    # Tasks.
    "task": ({**HUB, "task": "embed"}, "runner: pooling is for vectors"),
    "runner": ({**HUB, "runner": "embed"}, "must be one of auto, draft, generate, pooling"),
    "tools": ({**HUB, "runner": "pooling", "enable-auto-tool-choice": True}, "is for generated text"),
    "warm-up": ({**HUB, "warm-up-prompts": [{"text": "x"}]}, "prompt 1 must be a text, or a dictionary with prompt"),
    "warm-up-name": ({**HUB, "warmup-prompts": ["x"]}, "did you mean 'warm-up-prompts'?"),
    # Routing.
    "routing": ({**HUB, "routing": "sticky"}, "must be one of least-connections, affinity"),
    "affinity": ({**HUB, "affinity-key": "user"}, "does nothing without routing: affinity"),
    "affinity-header": ({**HUB, "routing": "affinity", "affinity-key": "header"}, "no header is named"),
    # Values.
    "percent": ({**HUB, "gpu-memory-utilization": "90%"}, "must be a number"),
    "length": ({**HUB, "max-model-len": "8 k"}, "32k (thousands) or 32K (times 1024)"),
    "overrides": ({**HUB, "hf-overrides": "x=1"}, "must be a dictionary, or a JSON object in quotes"),
    "golden": ({**HUB, "golden-prompts": [{"prompt": "x"}]}, "golden-prompts"),
}
"""Entries with one mistake each, and words of its error."""


def test_each_mistake_in_a_registry_has_its_error_and_all_are_reported_at_once() -> None:
    models = {"good": dict(HUB), **{name: entry for name, (entry, _words) in REGISTRIES.items()}}
    found: dict[str, list[str]] = {}
    for problem in read(models, choose("0.33.0")).problems:
        found.setdefault(problem.where.removeprefix("models."), []).append(str(problem))
    assert set(found) == set(REGISTRIES)
    for name, (_entry, words) in REGISTRIES.items():
        assert len(found[name]) == 1 and words in found[name][0], (name, found[name])
    assert "hf_secret" not in str(found)


FITS: tuple[tuple[str, str, dict[str, Any], dict[str, str], str], ...] = (
    ("llama-3.1-70b", "1xH100-80GB", {}, {}, "leave nothing for the KV cache"),
    ("llama-3.1-70b", "8xH100-80GB", {"tensor-parallel-size": 6}, {}, "does not divide the model's 64 attention heads"),
    ("llama-3.1-70b", "4xH100-80GB", {"tensor-parallel-size": 8}, {}, "is too few"),
    ("qwen3-8b", "1xH100-80GB", {"max-model-len": 131072}, {}, "is more than the model's 40960 tokens"),
    ("qwen3-8b-fp8", "8xH100-80GB", {"tensor-parallel-size": 8, "dtype": "float32"}, {}, "is not what fp8 weights"),
    ("llama-3-8b", "1xT4", {"dtype": "bfloat16"}, {}, "needs compute capability 8.0"),
    ("llama-3-8b", "1xA100-80GB", {"kv-cache-dtype": "fp8"}, {}, "needs compute capability 8.9"),
    ("gpt-oss-20b", "1xV100-32GB", {}, {}, "needs compute capability 8.0"),
    ("llama-3-8b", "1xH100-80GB", {"enable-expert-parallel": True}, {}, "needs a model with experts"),
    ("llama-3-8b", "1xH100-80GB", {"max-num-batched-tokens": 64, "max-num-seqs": 128}, {}, "each running request"),
    ("llama-3-8b", "2xH100-80GB,2xA100-80GB", {"tensor-parallel-size": 4}, {}, "are of different generations"),
    ("llama-3-8b", "1xGH200", {}, {}, "arm64"),
    ("llama-3-8b", "1xH100-80GB", {"max-model-len": "long"}, {}, "must be a number of tokens"),
    (
        "llama-3-8b",
        "1xH100-80GB",
        {"runner": "pooling", "tool-call-parser": "x"},
        {},
        "for generated text",
    ),
    ("llama-3-8b", "1xH100-80GB", {"kv-cache-memory-bytes": "90G"}, {}, "this cache takes more than the"),
)
"""A model, GPUs, flags and environment; and words of the plan's misfit."""


@pytest.mark.parametrize(("name", "gpus", "flags", "environment", "words"), FITS)
def test_each_mistake_of_a_plan_has_its_error(
    name: str, gpus: str, flags: dict[str, Any], environment: dict[str, str], words: str, model: Model
) -> None:
    found = fit(model(name), flags, hypothetical(gpus), environment)
    assert any(words in str(one) for one in found.misfits), found.misfits


def test_all_mistakes_of_a_plan_are_reported_at_once(model: Model) -> None:
    flags = {"tensor-parallel-size": 6, "kv-cache-dtype": "fp8", "max-model-len": 10**6, "dtype": "bfloat16"}
    found = fit(model("llama-3-8b"), flags, hypothetical("2xT4"))
    assert {one.check for one in found.misfits} >= {"heads", "gpus", "kv_cache_dtype", "max_model_len", "dtype"}


JUDGED: tuple[tuple[str, dict[str, Any], bool | None], ...] = (
    ("llama-3.1-70b", {"tensor-parallel-size": 4}, True),
    ("mixtral-8x7b", {"tensor-parallel-size": 2}, True),
    ("deepseek-v3", {"tensor-parallel-size": 8}, False),
    ("gpt-oss-120b", {}, True),
    ("qwen3-30b-a3b", {}, True),
)


@pytest.mark.parametrize(("name", "flags", "fits"), JUDGED)
def test_of_five_public_models_only_deepseek_v3_does_not_fit_on_eight_h100(
    name: str, flags: dict[str, Any], fits: bool, model: Model
) -> None:
    assert fit(model(name), flags, hypothetical("8xH100-80GB")).ok is fits


def test_the_fit_of_a_model_without_facts_is_unknown() -> None:
    assert fit(from_config({}), {}, hypothetical("8xH100-80GB")).ok is None
