# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The division that is proposed over several nodes, by the network, with its reasons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.devices import hypothetical, processors
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.flags import world_size
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.over_nodes import Proposal, propose

Model = Callable[..., ModelFacts]

TP, PP = "tensor-parallel-size", "pipeline-parallel-size"
SLOW, FAST = "no RDMA, eth0 of 25 Gb/s", "RDMA (mlx5_0, 400 Gb/s)"


def over(facts: ModelFacts, gpus: str, nodes: int, *, rdma: bool) -> Proposal:
    return propose(facts, {}, hypothetical(gpus), nodes, FAST if rdma else SLOW, has_rdma=rdma)


def test_a_model_with_64_heads_on_three_nodes_is_divided_into_stages(model: Model) -> None:
    """With and without RDMA, because three does not divide the 64 heads."""
    for rdma in (False, True):
        found = over(model("llama-3-70b"), "1xB200", 3, rdma=rdma)
        assert found.flags == {PP: 3} and not found.misfits
        assert (
            "tensor-parallel-size: 3 is not possible: the size does not divide the model's 64 attention heads"
            in found.reasons
        )


@pytest.mark.parametrize(
    ("rdma", "flags", "reason"),
    [
        (False, {TP: 8, PP: 2}, f"{SLOW}: stages exchange little"),
        (True, {TP: 16}, f"{FAST}: fast enough"),
    ],
)
def test_without_rdma_nodes_are_stages_and_with_rdma_heads_are_divided_over_nodes(
    rdma: bool, flags: dict[str, int], reason: str, model: Model
) -> None:
    found = over(model("deepseek-v3"), "8xH100-80GB", 2, rdma=rdma)
    assert found.flags == flags
    assert any(text.startswith(reason) for text in found.reasons)


def test_gpus_that_the_heads_cannot_use_within_a_node_become_stages(model: Model) -> None:
    facts = model("llama-3-70b")
    odd = replace(facts, config=replace(facts.config, attention_heads=12, kv_heads=12))
    assert over(odd, "8xH100-80GB", 2, rdma=False).flags == {TP: 4, PP: 4}


def test_a_model_of_one_layer_is_divided_by_heads_with_a_warning_about_speed(model: Model) -> None:
    facts = model("llama-3-70b")
    without = replace(facts, config=replace(facts.config, layers=1))
    found = over(without, "8xH100-80GB", 2, rdma=False)
    assert found.flags == {TP: 16}
    assert any("slow" in text for text in found.reasons)


def test_processors_are_never_divided_by_layers(model: Model) -> None:
    found = propose(model("llama-3-8b"), {}, processors(131072), 2, SLOW, has_rdma=False)
    assert found.flags == {TP: 2}
    assert any("die at the first request" in text for text in found.reasons)
    # Three nodes cannot divide the heads, and stages would be no way out.
    uneven = propose(model("llama-3-8b"), {}, processors(131072), 3, SLOW, has_rdma=False)
    assert uneven.flags == {TP: 3} and uneven.misfits[0].check == "heads"


def test_a_model_that_never_fits_has_misfits(model: Model) -> None:
    assert over(model("deepseek-v3"), "1xL4", 2, rdma=False).misfits


@settings(max_examples=settings().max_examples * 3 // 10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(gpus=st.integers(1, 8), nodes=st.integers(2, 4), rdma=st.booleans())
def test_every_proposal_gives_each_node_the_same_number_of_gpus(
    gpus: int, nodes: int, rdma: bool, model: Model
) -> None:
    found = over(model("llama-3-8b"), f"{gpus}xH100-80GB", nodes, rdma=rdma)
    world = world_size(found.flags)
    assert world % nodes == 0 and world // nodes <= gpus and found.reasons and not found.misfits
