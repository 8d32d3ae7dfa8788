# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPUs that the models of a model registry need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import Problem
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.needs import TO_CORRECT, needs

Model = Callable[..., ModelFacts]

MODELS: dict[str, dict[str, Any]] = {
    "big": {"model": "example/Big", "revision": "0" * 40},
    "short": {"base": "big", "max-model-len": 1024},
    "there": {"model": "/srv/there"},
}


@pytest.fixture
def facts(model: Model) -> dict[str, Any]:
    return {"big": model("llama-3-70b").to_dict()}


def test_the_sufficient_gpus_are_listed(facts: dict[str, Any]) -> None:
    text = needs(MODELS, facts)
    blocks = dict(zip(MODELS, text.split("\n\n"), strict=True))
    assert blocks["big"].splitlines()[:2] == [
        "big: example/Big",
        "  size      131.4 GiB of weights, requests up to 8192 tokens",
    ]
    assert "or        2 x H100-80GB (tensor-parallel-size: 2)" in blocks["big"]
    assert "1 x B200" in blocks["big"]
    # A variant has the weights of its base.
    assert "131.4 GiB of weights, requests up to 1024 tokens" in blocks["short"]
    assert blocks["there"].endswith("can be read")


def test_named_gpus_are_checked(facts: dict[str, Any]) -> None:
    assert "fits      yes (tensor-parallel-size: 2)" in needs({"big": MODELS["big"]}, facts, "8xH100-80GB")
    small = needs({"big": MODELS["big"]}, facts, "2xL4")
    assert "fits      no" in small and "PROBLEM   gpu-memory-utilization" in small
    with pytest.raises(ValueError, match="name of several GPUs"):
        needs(MODELS, facts, "8xH100")


def test_a_model_is_divided_over_nodes_with_and_without_rdma(facts: dict[str, Any]) -> None:
    text = needs({"big": MODELS["big"]}, facts, "8xL4", 3)
    assert "fits      without RDMA: yes (tensor-parallel-size: 8, pipeline-parallel-size: 3)" in text
    assert "fits      with RDMA: yes (tensor-parallel-size: 8, pipeline-parallel-size: 3)" in text
    assert (
        "because   tensor-parallel-size: 24 is not possible: the size does not divide the model's 64 attention heads"
        in text
    )
    assert "fits      with RDMA: yes (tensor-parallel-size: 16)" in needs({"big": MODELS["big"]}, facts, "8xL4", 2)
    small = needs({"big": MODELS["big"]}, facts, "1xL4", 2)
    assert "fits      without RDMA: no" in small and "PROBLEM" in small
    for gpus, nodes in (("", 2), ("8xL4", 0), ("8xL4", 65)):
        with pytest.raises(ValueError, match=f"nodes is {nodes}: it must be 1 to 64"):
            needs(MODELS, facts, gpus, nodes)


def test_nodes_with_gpus_of_unknown_memory_are_unknown(facts: dict[str, Any]) -> None:
    text = needs({"big": MODELS["big"]}, facts, "8xP40", 2)
    assert "fits      without RDMA: unknown" in text and "fits      with RDMA: unknown" in text
    assert text.count("unknown   the memory of P40") == 2


def test_problems_of_the_registry_come_last(facts: dict[str, Any]) -> None:
    text = needs({"big": {**MODELS["big"], "gpus": 2}}, facts)
    assert "to correct:" in text and "set it in the instance" in text
    assert needs({}, {}) == "the model registry has no model"
    wrong = [Problem("models.big", "is no source", "model", "s3://x")]
    both = needs({"big": {**MODELS["big"], "gpus": 2}}, facts, wrong=wrong)
    assert both.index("set it in the instance") < both.index("models.big: model: 's3://x': is no source")
    assert needs({"big": MODELS["big"]}, facts, wrong=wrong).count(TO_CORRECT) == 1


def test_the_reason_why_a_model_is_unknown_is_reported() -> None:
    text = needs(MODELS, {}, unknown={"big": "the hub does not answer"})
    assert text.count("unknown   the model: the hub does not answer") == 2, "a variant has the model of its base"
    assert "there: /srv/there\n  unknown   the model: only the files of a model from a hub" in text


def test_without_weights_the_configuration_of_a_known_type_is_enough(facts: dict[str, Any]) -> None:
    bare = {"big": {**facts["big"], "weights": None, "problems": [{"file": "", "message": "holds no weights"}]}}
    assert "2 x H100-80GB" in needs({"big": MODELS["big"]}, bare)
    unheard = {"big": {**bare["big"], "model_type": "unheard_of"}}
    text = needs({"big": MODELS["big"]}, unheard)
    assert "PROBLEM   directory: holds no weights" in text and "unknown   GPUs: the configuration of a" in text
    assert "needs     " not in text


def test_a_model_above_8_b300_needs_more_than_8_b300(facts: dict[str, Any]) -> None:
    weights = {**facts["big"]["weights"], "bytes": 1 << 43, "parameters": 1 << 42}
    parts = {**weights["parts"], "layers": [(1 << 43) // 80] * 80}
    text = needs({"big": MODELS["big"]}, {"big": {**facts["big"], "weights": {**weights, "parts": parts}}})
    assert "needs     more than 8 x B300" in text


def test_without_a_known_kv_cache_the_needed_gpus_are_unknown(facts: dict[str, Any]) -> None:
    text = needs({"big": MODELS["big"]}, {"big": {**facts["big"], "attention": None}})
    assert "unknown   the KV cache: its layout in a llama model is unknown" in text and "needs" not in text


def test_with_a_wrong_draft_no_needed_gpus_are_listed(model: Model) -> None:
    draft = {"speculative-config": {"model": "small", "num_speculative_tokens": 3}}
    models = {"big": {**MODELS["big"], **draft}, "small": {"model": "example/Small", "revision": "1" * 40}}
    text = needs(models, {"big": model("llama-3-70b").to_dict(), "small": model("qwen3-8b").to_dict()})
    big = text.split("\n\n")[0]
    assert "PROBLEM   speculative-config: 'small'" in big and "needs" not in big


def test_the_draft_of_an_entry_counts_for_the_needed_gpus(model: Model) -> None:
    draft = {"speculative-config": {"model": "small", "num_speculative_tokens": 3}}
    models = {"big": {**MODELS["big"], **draft}, "small": {"model": "example/Small", "revision": "1" * 40}}
    facts = {"big": model("llama-3-70b").to_dict(), "small": model("llama-3-8b").to_dict()}
    assert "fits      yes (tensor-parallel-size: 4)" in needs(models, facts, "4xH100-80GB")
    other = {**facts, "small": model("qwen3-8b").to_dict()}
    text = needs(models, other, "8xH200")
    # More GPUs than the model needs would not help.
    assert "fits      no (tensor-parallel-size: 2)" in text or "fits      no\n" in text
    assert "PROBLEM   speculative-config: 'small': config.json of this draft has a vocabulary of 151936" in text
