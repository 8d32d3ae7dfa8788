# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of an engine that one node of several has. Private to the collection. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from .flags import Flags


@dataclass(frozen=True)
class Share:
    """A node's share of an engine over `nodes` nodes. `rank` counts nodes from 0."""

    nodes: int = 1
    rank: int = 0

    def gpus(self, flags: Flags) -> int:
        """The number of GPUs that the engine uses on this node."""
        return max(flags.world_size // self.nodes, 1)

    def stages(self, flags: Flags) -> frozenset[int]:
        """The pipeline stages that this node has, from 0.

        Ranks of one stage follow each other (initialize_model_parallel in vllm/distributed/parallel_state.py), and a
        node has ranks that follow each other (vllm/v1/executor/multiproc_executor.py of vLLM 0.32.0).
        """
        gpus = self.gpus(flags)
        each = flags.tensor_parallel_size * flags.prefill_context_parallel_size
        ranks = range(self.rank * gpus, (self.rank + 1) * gpus)
        return frozenset(rank // each % flags.pipeline_parallel_size for rank in ranks)


WHOLE = Share()
"""The share of an engine on one node."""
