# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The division of a model over nodes in a plan: that of the flags, or a proposed one."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang.network import Network
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang.plan import Planned, Span, divide
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts, from_config
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.devices import hypothetical, processors

TP, PP = "tensor-parallel-size", "pipeline-parallel-size"
RDMA = Network(rdma_devices=("mlx5_0",), rdma_gbps=400)


@pytest.fixture
def facts(published: dict[str, Any]) -> ModelFacts:
    return from_config(published["llama-3-70b"]["config"])


def of(span: Span, flags: dict[str, Any], facts: ModelFacts | None, gpus: str = "8xH100-80GB") -> Planned:
    return divide(span, flags, facts, hypothetical(gpus), {}, None, None)


def test_flags_that_nodes_can_share_stay(facts: ModelFacts) -> None:
    flags = {TP: 8, PP: 2}
    assert of(Span(2), flags, facts) == Planned(flags, {})


def test_a_division_that_nodes_cannot_share_is_a_problem_with_flags_that_fit(facts: ModelFacts) -> None:
    planned = of(Span(3), {TP: 8}, facts)
    (problem,) = planned.problems
    assert (problem.key, problem.value) == ("nodes", 3) and "8 ranks" in problem.message
    assert problem.fits == [{TP: 8, PP: 3}] and planned.flags == {TP: 8}


def test_a_declared_gang_needs_its_division_in_the_model_registry(facts: ModelFacts) -> None:
    planned = of(Span(3), {}, facts)
    assert planned.added == planned.flags == {TP: 8, PP: 3}
    assert [problem.fits for problem in planned.problems] == [[{TP: 8, PP: 3}]]
    assert of(Span(3, declared=False), {}, facts).problems == ()
    assert any(note.startswith("proposed: ") for note in planned.notes)


def test_a_model_that_is_not_known_gets_no_proposal() -> None:
    planned = of(Span(2), {}, None)
    assert planned.added == {} and planned.problems[0].fits == [] and planned.notes == ()


@pytest.mark.parametrize(("network", "warned"), [(Network(), True), (RDMA, False)])
def test_layers_split_over_nodes_without_rdma_get_a_note(network: Network, warned: bool, facts: ModelFacts) -> None:
    planned = of(Span(2, network=network), {TP: 16}, facts)
    assert any("answers are slow" in note for note in planned.notes) is warned
    assert of(Span(2, network=network), {TP: 8, PP: 2}, facts).notes == ()


def test_layers_split_over_the_processors_of_two_nodes_get_a_note(facts: ModelFacts) -> None:
    planned = divide(Span(2), {TP: 2}, facts, processors(65536), {}, None, None)
    assert any("answers are slow" in note for note in planned.notes)
