# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The memory of a draft, and whether the draft matches its model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit import drafts
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.devices import hypothetical
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.fit import fit
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.flags import read as read_flags
from ansible_collections.baremetal.inference.plugins.module_utils.models.shards import FileProblem

Model = Callable[..., ModelFacts]


def entry(**given: Any) -> dict[str, Any]:
    """An entry with a draft."""
    return {"speculative-config": {"num_speculative_tokens": 3, **given}}


@pytest.mark.parametrize(
    ("given", "name", "method"),
    [
        ({}, None, ""),
        ({"speculative-config": {"method": "ngram", "prompt_lookup_max": 4}}, None, ""),
        ({"speculative-config": {"method": "suffix", "model": "x"}}, None, ""),
        ({"speculative-config": '{"model": "small"}'}, "small", "draft_model"),
        ({"speculative-config": "{"}, None, ""),
        ({"speculative-config": {"method": ["ngram"], "model": "small"}}, "small", "draft_model"),
        (entry(model="head", method="eagle3"), "head", "eagle3"),
        (entry(method="mtp"), None, "mtp"),
    ],
)
def test_the_draft_of_an_entry_is_read(given: dict[str, Any], name: str | None, method: str) -> None:
    found = drafts.read(given)
    assert (found.name, found.method, found.predicts) == (name, method, method == "mtp")


def test_weights_and_cache_of_a_draft_count(model: Model) -> None:
    target, small = model("llama-3-70b"), model("llama-3-8b")
    flags = {"tensor-parallel-size": 8, **entry(model="small")}
    device = hypothetical("H100-80GB")[0]
    draft = drafts.read(flags, small)
    found = drafts.weight_bytes(target, draft, read_flags(flags)[0], device, "bfloat16")
    assert found and found == pytest.approx(16.06e9 / 8, rel=0.01)
    # 32 layers with one of 8 KV heads of 128 on each GPU.
    assert drafts.cache_bytes(target, draft, read_flags(flags)[0], "bfloat16") == 32 * 2 * 128 * 2
    whole = drafts.read({**flags, **entry(model="small", draft_tensor_parallel_size=1)}, small)
    assert drafts.weight_bytes(target, whole, read_flags(flags)[0], device, "bfloat16") == pytest.approx(
        16.06e9, rel=0.01
    )


def test_the_fit_includes_the_memory_of_a_draft(model: Model) -> None:
    flags = {"tensor-parallel-size": 2, "max-model-len": 8192}
    devices = hypothetical("2xH100-80GB")
    alone = fit(model("qwen3-30b-a3b"), flags, devices)
    with_draft = fit(model("qwen3-30b-a3b"), {**flags, **entry(model="small")}, devices, draft=model("qwen3-8b"))
    assert alone.ok and with_draft.ok
    assert (alone.estimate.draft_gib, with_draft.estimate.draft_gib) == (0, pytest.approx(7.63, abs=0.05))
    assert alone.estimate.kv_cache_gib and with_draft.estimate.kv_cache_gib
    assert with_draft.estimate.kv_cache_gib == pytest.approx(alone.estimate.kv_cache_gib - 7.63, abs=0.05)
    # The draft's layers keep values of each token, too.
    assert alone.estimate.kv_cache_tokens and with_draft.estimate.kv_cache_tokens
    assert with_draft.estimate.kv_cache_tokens < alone.estimate.kv_cache_tokens * 0.6


def test_a_draft_that_is_too_large_is_refused(model: Model) -> None:
    flags = {"tensor-parallel-size": 2, "max-model-len": 8192, "speculative-config": {"model": "small"}}
    found = fit(model("qwen3-30b-a3b"), flags, hypothetical("2xL40S"), draft=model("llama-3-70b", vocab_size=151936))
    assert [one.check for one in found.misfits] == ["weights"]
    assert "GiB of its draft" in found.misfits[0].message


@pytest.mark.parametrize("given", [{"method": "ngram"}, {"method": "suffix"}])
def test_a_method_without_a_draft_takes_no_memory(given: dict[str, Any], model: Model) -> None:
    found = fit(model("qwen3-8b"), entry(**given), hypothetical("H100-80GB"))
    assert found.ok and found.estimate.draft_gib == 0


def test_all_layers_for_multi_token_prediction_count_as_one_more_layer(model: Model) -> None:
    flags = {"tensor-parallel-size": 8, "max-model-len": 8192, **entry(method="mtp")}
    found = fit(model("deepseek-v3"), flags, hypothetical("8xH200"))
    # A layer takes 10.7 GiB: 10.5 GiB are 256 experts of 3 x 7168 x 2048 in FP8.
    assert found.ok and found.estimate.draft_gib == pytest.approx(10.7 / 8, abs=0.1)


def test_without_the_files_of_the_draft_the_fit_is_unknown(model: Model) -> None:
    found = fit(model("qwen3-8b"), entry(model="small"), hypothetical("H100-80GB"))
    assert found.ok is None
    assert found.unknown[0].startswith("the size of the draft: no file of small was read")


def test_a_draft_with_another_vocabulary_is_refused_by_name_and_file(model: Model) -> None:
    found = fit(model("qwen3-8b"), entry(model="small"), hypothetical("H100-80GB"), draft=model("llama-3-8b"))
    misfit = next(one for one in found.misfits if one.check == "draft")
    assert str(misfit) == (
        "speculative-config: 'small': config.json of this draft has a vocabulary of 128256 tokens, that of the model "
        "has 151936: take a draft of the same family, or set use_heterogeneous_vocab: true in it"
    )


@pytest.mark.parametrize(
    "given",
    [
        {"use_heterogeneous_vocab": True},
        {"method": "eagle3"},
        {"model": "llama3-eagle"},
    ],
)
def test_a_draft_made_for_a_model_or_with_use_heterogeneous_vocab_may_have_its_own_vocabulary(
    given: dict[str, Any], model: Model
) -> None:
    draft = drafts.read(entry(**{"model": "small", **given}), model("llama-3-8b"))
    assert list(drafts.check(model("qwen3-8b"), draft)) == []


def test_a_draft_with_damaged_files_is_refused(model: Model) -> None:
    broken = replace(model("qwen3-8b"), problems=(FileProblem("model.safetensors", "is cut"),))
    found = list(drafts.check(model("qwen3-8b"), drafts.read(entry(model="small"), broken)))
    assert [str(one) for one in found] == ["speculative-config: 'small': model.safetensors of this draft: is cut"]
