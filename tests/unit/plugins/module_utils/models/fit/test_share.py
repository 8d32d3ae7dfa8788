# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The share that one of several nodes has of an engine: its GPUs and its stages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.flags import Flags
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.share import WHOLE, Share


@pytest.mark.parametrize(
    ("tensor", "stages", "nodes", "shares"),
    [
        (8, 2, 2, [{0}, {1}]),
        (4, 4, 2, [{0, 1}, {2, 3}]),
        (16, 1, 2, [{0}, {0}]),
        (8, 2, 4, [{0}, {0}, {1}, {1}]),
        (1, 3, 3, [{0}, {1}, {2}]),
    ],
)
def test_each_node_has_its_stages_and_gpus(tensor: int, stages: int, nodes: int, shares: list[set[int]]) -> None:
    flags = Flags(tensor_parallel_size=tensor, pipeline_parallel_size=stages)
    assert [Share(nodes, rank).stages(flags) for rank in range(nodes)] == shares
    assert Share(nodes).gpus(flags) == tensor * stages // nodes


@given(tensor=st.integers(1, 8), stages=st.integers(1, 8), nodes=st.integers(1, 8))
def test_the_nodes_together_have_every_stage(tensor: int, stages: int, nodes: int) -> None:
    flags = Flags(tensor_parallel_size=tensor * nodes, pipeline_parallel_size=stages)
    assert frozenset().union(*(Share(nodes, rank).stages(flags) for rank in range(nodes))) == set(range(stages))
    assert sum(Share(nodes, rank).gpus(flags) for rank in range(nodes)) == flags.world_size
    assert WHOLE.stages(flags) == set(range(stages)) and WHOLE.gpus(flags) == flags.world_size
