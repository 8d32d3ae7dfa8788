# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Into how many parts a model can be divided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts, from_config
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit import division
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.flags import Flags
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.misfit import Misfit

Model = Callable[..., ModelFacts]


def check(facts: ModelFacts, sizes: Sequence[int] = (), **flags: Any) -> list[Misfit]:
    return division.check(facts.config, Flags(**flags), sizes)


def names(found: list[Misfit]) -> list[str]:
    return [one.check for one in found]


def test_a_tensor_parallel_size_must_divide_the_model(model: Model) -> None:
    found = check(model("llama-3-70b"), [2, 4, 8], tensor_parallel_size=3)
    assert names(found) == ["heads", "kv_heads", "intermediate_size"]
    assert {(one.key, one.value) for one in found} == {("tensor-parallel-size", 3)}
    assert [one.message for one in found] == [
        "does not divide the model's 64 attention heads",
        "neither divides the model's 8 KV heads nor is a multiple of them",
        "does not divide the intermediate size of 28672",
    ]
    assert all(one.fits == [{"tensor-parallel-size": size} for size in (2, 4, 8)] for one in found)


@pytest.mark.parametrize(
    ("name", "most", "sizes"),
    [
        ("llama-3-70b", 64, [1, 2, 4, 8, 16, 32, 64]),
        ("llama-3-70b", 7, [1, 2, 4]),
        ("qwen2.5-7b-gptq-int4", 8, [1, 2, 4]),
        ("deepseek-v3", 8, [1, 2, 4, 8]),
    ],
)
def test_all_sizes_that_divide_the_model_are_found(name: str, most: int, sizes: list[int], model: Model) -> None:
    assert division.tensor_parallel_sizes(model(name).config, Flags(), most) == sizes


def test_sizes_that_the_configuration_lacks_are_not_checked() -> None:
    flags = Flags(tensor_parallel_size=3, pipeline_parallel_size=99, enable_expert_parallel=True)
    assert division.check(from_config({}).config, flags, ()) == []


def test_kv_heads_may_be_repeated_evenly(model: Model) -> None:
    uneven = check(model("qwen2.5-7b-gptq-int4"), tensor_parallel_size=7)
    assert names(uneven) == ["kv_heads", "vocabulary", "intermediate_size"]
    assert uneven[1].message == "does not divide the vocabulary of 152064, filled up to 152064"
    assert check(model("qwen3-30b-a3b"), tensor_parallel_size=8) == []
    # MLA has no KV heads to divide.
    assert check(model("deepseek-v3", num_key_value_heads=7), tensor_parallel_size=8) == []


def test_blocks_of_fp8_weights_must_stay_whole(model: Model, published: dict[str, Any]) -> None:
    quantization = published["qwen3-8b-fp8"]["config"]["quantization_config"]
    facts = model("qwen3-30b-a3b", quantization_config=quantization)
    (misfit,) = check(facts, tensor_parallel_size=4)
    assert misfit.check == "quantization_shape"
    assert misfit.message.startswith("leaves 192 of the experts' intermediate size of 768 on each GPU")
    assert division.tensor_parallel_sizes(facts.config, Flags(), 4) == [1, 2]
    assert check(facts, tensor_parallel_size=4, enable_expert_parallel=True) == []


def test_groups_of_gptq_weights_must_stay_whole(model: Model) -> None:
    # 18944 / 8 = 2368 is no multiple of 128, and 28 heads are no multiple of 8.
    heads, shape = check(model("qwen2.5-7b-gptq-int4"), tensor_parallel_size=8)
    assert (heads.check, shape.check) == ("heads", "quantization_shape")
    assert shape.message == (
        "leaves 2368 of the intermediate size of 18944 on each GPU, which is no multiple of the groups of 128 of its "
        "gptq weights"
    )
    assert check(model("qwen2.5-7b-gptq-int4"), tensor_parallel_size=4) == []


def test_each_stage_must_have_a_layer(model: Model) -> None:
    (misfit,) = check(model("llama-3-8b"), pipeline_parallel_size=33)
    assert (misfit.check, misfit.fits) == ("layers", [{"pipeline-parallel-size": 32}])
    assert check(model("llama-3-8b"), pipeline_parallel_size=32) == []


def test_every_gpu_must_have_an_expert(model: Model) -> None:
    (misfit,) = check(model("mixtral-8x7b"), data_parallel_size=16, enable_expert_parallel=True)
    assert misfit.message == "spreads 8 experts over 16 GPUs, of which some would get none"
    assert check(model("mixtral-8x7b"), data_parallel_size=8, enable_expert_parallel=True) == []
    (none,) = check(model("qwen3-8b"), enable_expert_parallel=True)
    assert (none.check, none.fits) == ("experts", [{"enable-expert-parallel": False}])
