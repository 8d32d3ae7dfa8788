# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The batch, and the memory that the engine needs besides weights and KV cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit import overhead
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.devices import hypothetical, processors
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.flags import Flags

GIB = 1 << 30
Model = Callable[..., ModelFacts]


@pytest.mark.parametrize(
    ("device", "flags", "length", "expected"),
    [
        ("H100-80GB", {}, 8192, overhead.Batch(8192, 1024)),
        ("A100-80GB", {}, 8192, overhead.Batch(2048, 256)),
        ("B200", {}, 8192, overhead.Batch(16384, 1024)),
        ("L4", {}, 8192, overhead.Batch(2048, 256)),
        ("L4", {"enable_chunked_prefill": False}, 8192, overhead.Batch(8192, 256)),
        ("L4", {"max_num_seqs": 4}, 128, overhead.Batch(512, 4)),
        ("L4", {"max_num_batched_tokens": 100}, 8192, overhead.Batch(100, 100)),
    ],
)
def test_batches_are_those_of_the_engine(
    device: str, flags: dict[str, Any], length: int, expected: overhead.Batch
) -> None:
    assert overhead.batch(Flags(**flags), hypothetical(device)[0], length) == expected


def test_the_cpu_engine_has_a_batch_of_its_own() -> None:
    assert overhead.batch(Flags(tensor_parallel_size=2), processors(None)[0], 8192) == overhead.Batch(4096, 256)


def test_the_overhead_has_a_likely_size(model: Model) -> None:
    """Operators report 2 to 6 GiB for all but weights and cache."""
    for name in ("llama-3-8b", "llama-3.1-70b", "gpt-oss-120b", "deepseek-v3"):
        for device in ("L4", "A100-80GB", "H200", "B200"):
            config, flags = model(name).config, Flags(tensor_parallel_size=8)
            batch = overhead.batch(flags, hypothetical(device)[0], config.max_length or 1)
            found = overhead.overhead(config, flags, hypothetical(device)[0], "bfloat16", batch) / GIB
            assert 2 <= found <= 6.5, (name, device)
            eager = overhead.overhead(
                config, Flags(tensor_parallel_size=8, enforce_eager=True), hypothetical(device)[0], "bfloat16", batch
            )
            assert eager / GIB == pytest.approx(found - 1)


def test_assumed_constants_are_added_to_the_largest_layer(model: Model) -> None:
    config, batch = model("llama-3-8b").config, overhead.Batch(2048, 256)
    work = 2048 * (4 * 4096 + 3 * 14336) * 2 + 256 * 128256 * 10
    l4 = hypothetical("1xL4")[0]
    assert overhead.overhead(config, Flags(), l4, "bfloat16", batch) == work + (overhead.CONTEXT + overhead.GRAPHS)
    eager = Flags(enforce_eager=True, pipeline_parallel_size=2)
    assert overhead.overhead(config, eager, l4, "bfloat16", batch) == work + overhead.CONTEXT + overhead.COLLECTIVES
    cpu = processors(None)[0]
    assert overhead.overhead(config, Flags(), cpu, "bfloat16", batch) == work + overhead.CPU_PROCESS


def test_experts_count_for_each_token_that_they_get(model: Model) -> None:
    config, batch = model("mixtral-8x7b").config, overhead.Batch(2048, 256)
    found = overhead.activations(config, Flags(tensor_parallel_size=2), "bfloat16", batch)
    assert found == 2048 * (4 * 4096 + 2 * (3 * 14336 // 2 + 4096)) * 2
