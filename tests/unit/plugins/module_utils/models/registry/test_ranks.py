# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranks of data parallelism that would run on other nodes."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.catalogue import choose
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.entries import read
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.ranks import HERE

EXPERTS = {"model": "/srv/experts", "data-parallel-size": 8}


def problems(**models: Any) -> list[str]:
    return [str(one) for one in read(models, choose()).problems]


@pytest.mark.parametrize("here", [4, 0, "4", 16])
def test_an_entry_with_ranks_on_other_nodes_is_refused(here: Any) -> None:
    (found,) = problems(experts={**EXPERTS, HERE: here})
    assert found.startswith(f"models.experts: {HERE}: {here!r}: must be 8, as data-parallel-size")
    assert "For each further node, declare an instance of the same name" in found


@pytest.mark.parametrize("flags", [{}, {HERE: 8}, {HERE: "8"}, {"data-parallel-size": 1, HERE: 1}])
def test_all_ranks_on_the_node_are_allowed(flags: dict[str, Any]) -> None:
    assert problems(experts={**EXPERTS, **flags}) == []


def test_without_data_parallel_size_the_ranks_on_the_node_must_be_1() -> None:
    (found,) = problems(one={"model": "/srv/one", HERE: 2})
    assert "must be 1" in found


def test_a_variant_is_checked_with_its_base_and_a_mistake_is_reported_once() -> None:
    assert problems(experts=EXPERTS, same={"base": "experts", HERE: 8}) == []
    (found,) = problems(experts={**EXPERTS, HERE: 8}, half={"base": "experts", "data-parallel-size": 4})
    assert found.startswith("models.half:") and "must be 4" in found
    assert len(problems(experts={**EXPERTS, HERE: 4}, other={"base": "experts", "max-model-len": 512})) == 1


def test_all_flags_that_place_ranks_on_other_nodes_are_refused_at_once() -> None:
    """The wrong number of ranks on this node is refused, too."""
    elsewhere = {
        "data-parallel-address": "10.0.0.1",
        "data-parallel-external-lb": True,
        "data-parallel-hybrid-lb": True,
    }
    found = "\n".join(problems(experts={**EXPERTS, **elsewhere, HERE: 4}))
    for flag in (*elsewhere, HERE):
        assert f"models.experts: {flag}" in found


def test_data_parallel_size_local_is_a_flag_of_the_engine() -> None:
    assert HERE in choose().flags
