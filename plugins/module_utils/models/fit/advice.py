# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks whether weights and one request of full length fit into memory, and finds settings with which they fit.
Private to the collection."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..config.facts import ModelFacts
from ..flags.variables import CPU_CACHE
from .capabilities import KV_CACHE
from .devices import NO_DEVICE, Device
from .division import PP, TP, tensor_parallel_sizes
from .drafts import NO_DRAFT, Draft
from .flags import Flags
from .memory import Division, divide
from .misfit import Misfit
from .overhead import GIB, MIB
from .share import WHOLE, Share

UTILIZATION, LENGTH, CACHE_BYTES = "gpu-memory-utilization", "max-model-len", "kv-cache-memory-bytes"
KV_DTYPE = "kv-cache-dtype"

HIGHEST_UTILIZATION = 0.97
"""Highest utilization in advice. The rest is for memory that driver, graphs and collectives take after the engine has
measured."""

MOST_PROCESSES = 64
"""Largest number of processes of a CPU engine in advice."""

USUAL_NODE = 8
"""Assumed number of GPUs of an unknown node."""

LEAST_LENGTH = 1024
"""Shortest length in advice, in tokens."""


@dataclass(frozen=True)
class Case:
    """A model with flags on devices."""

    facts: ModelFacts
    flags: Flags
    devices: Sequence[Device]
    environment: Mapping[str, str]
    node_gpus: int | None = None
    """Number of the node's GPUs; None if unknown."""
    original: ModelFacts | None = None
    """The model without the entry's overrides."""
    draft: Draft = NO_DRAFT
    share: Share = WHOLE
    """The share of the node that has the devices."""

    @property
    def on_cpu(self) -> bool:
        return any(device.is_cpu for device in self.devices)

    @property
    def device(self) -> Device:
        """The smallest of the used devices, which limits all."""
        used = self.devices[: self.share.gpus(self.flags)]
        return min(used, key=lambda one: one.memory_mib or 0, default=NO_DEVICE)

    @property
    def tensor_parallel_limit(self) -> int:
        """Largest tensor-parallel size for these devices."""
        others = self.flags.world_size // self.flags.tensor_parallel_size
        return MOST_PROCESSES if self.on_cpu else len(self.devices) * self.share.nodes // others

    def divided(self) -> Division:
        return divide(self.facts, self.flags, self.device, self.environment, self.draft, self.share)

    def having(self, **changes: Any) -> Case:
        """The case with other flags."""
        return replace(self, flags=replace(self.flags, **changes))

    def passes(self, **changes: Any) -> bool:
        """Whether memory is enough for sure with other flags."""
        case = self.having(**changes)
        divided = case.divided()
        return divided.available is not None and divided.needed is not None and not any(case.lacking(divided))

    def sizes(self) -> list[int]:
        """The tensor-parallel sizes that fit, also into memory if the need is known."""
        sizes = tensor_parallel_sizes(self.facts.config, self.flags, self.tensor_parallel_limit)
        divided = self.divided()
        if None in (divided.weights, divided.available, divided.needed):
            return sizes
        return [size for size in sizes if self.passes(tensor_parallel_size=size)]

    @property
    def most_gpus(self) -> int:
        """Largest number of GPUs in advice, over all nodes."""
        there = len(self.devices)
        return self.share.nodes * max(there, USUAL_NODE if self.node_gpus is None else self.node_gpus)

    def misfits(self, *, advise: bool = True) -> list[Misfit]:
        """The misfits of memory, each with settings that fit."""
        divided = self.divided()
        return [
            Misfit(check, key, value, message, self._advice(divided) if advise else ())
            for check, key, value, message in self.lacking(divided)
        ]

    def lacking(self, divided: Division) -> Iterator[tuple[str, str, Any, str]]:
        """Check, key, value and message of each misfit of memory."""
        device, held = self.device, divided.held
        memory = None if device.memory_mib is None else device.memory_mib * MIB
        if divided.explicit:
            key = CPU_CACHE if self.on_cpu and self.environment.get(CPU_CACHE) else CACHE_BYTES
            given = divided.available or 0
            if memory is not None and held + given > memory:
                message = (
                    f"together with {_held(divided)}, this cache takes more than the {_gib(memory)} of {device.name}"
                )
                yield "memory", key, _value(key, given), message
        elif divided.weights is not None and divided.budget is not None and divided.budget <= held:
            message = (
                f"the engine may take {_gib(divided.budget or 0)} of each {device.name}. {_held(divided)} leave "
                "nothing for the KV cache"
            )
            yield "weights", UTILIZATION, self.flags.gpu_memory_utilization, message
            return
        if divided.available is not None and divided.needed is not None and divided.needed > divided.available:
            message = (
                f"one request of this length takes {_gib(divided.needed)} of KV cache, and there are "
                f"{_gib(divided.available)} beside {_held(divided)}"
            )
            yield "kv_cache", LENGTH, divided.length, message

    def _advice(self, divided: Division) -> list[Mapping[str, Any]]:
        """Settings with which the model fits, each enough alone."""
        advice: list[Mapping[str, Any]] = [*self._more_gpus()]
        if divided.explicit and divided.needed is not None:
            advice += self._more_cache(divided.needed)
        elif divided.budget and (utilization := self._utilization(divided)):
            advice.append({UTILIZATION: utilization})
        if divided.cache and divided.available and divided.length:
            longest = divided.cache.longest(divided.available, divided.length)
            if LEAST_LENGTH <= longest < divided.length and self.passes(max_model_len=longest):
                advice.append({LENGTH: longest})
        needed = KV_CACHE["fp8"]
        capability = self.device.compute_capability
        able = self.flags.kv_cache_dtype == "auto" and capability is not None and capability >= needed
        if able and self.passes(kv_cache_dtype="fp8"):
            advice.append({KV_DTYPE: "fp8"})
        return advice

    def _more_gpus(self) -> Iterator[Mapping[str, Any]]:
        """The smallest sufficient division, on the present devices or on more GPUs of the node: by heads, or else by
        layers.

        Empty for a CPU engine: its ranks share one memory, or each rank needs a NUMA node.
        """
        if self.on_cpu:
            return
        now = self.flags
        ranks = now.world_size // now.tensor_parallel_size
        for size in tensor_parallel_sizes(self.facts.config, now, self.most_gpus // ranks):
            shared = size * ranks % self.share.nodes == 0
            if size > now.tensor_parallel_size and shared and self.passes(tensor_parallel_size=size):
                yield {TP: size, **self._gpus(tensor_parallel_size=size)}
                return
        others = now.world_size // now.pipeline_parallel_size
        layers = self.facts.config.layers or 1
        for stages in range(now.pipeline_parallel_size + 1, min(self.most_gpus // others, layers) + 1):
            if stages * others % self.share.nodes == 0 and self.passes(pipeline_parallel_size=stages):
                yield {PP: stages, **self._gpus(pipeline_parallel_size=stages)}
                return

    def _gpus(self, **changes: Any) -> dict[str, int]:
        """Number of GPUs of a node for other flags, if the present ones are too few."""
        needed = self.share.gpus(self.having(**changes).flags)
        return {"gpus": needed} if needed > len(self.devices) else {}

    def _utilization(self, divided: Division) -> float | None:
        """The lowest sufficient utilization, rounded up to hundredths; None if none is sufficient."""
        memory = (self.device.memory_mib or 0) * MIB
        total = divided.held + (divided.needed or 0)
        if not memory:
            return None
        least = math.ceil(total / memory * 100) / 100
        sensible = self.flags.gpu_memory_utilization < least <= HIGHEST_UTILIZATION
        return least if sensible and self.passes(gpu_memory_utilization=least) else None

    def _more_cache(self, needed: int) -> Iterator[Mapping[str, Any]]:
        """The sufficient size of the cache, if there is memory for it."""
        if self.on_cpu and self.environment.get(CPU_CACHE):
            space = math.ceil(needed / GIB)
            if replace(self, environment={**self.environment, CPU_CACHE: str(space)}).passes():
                yield {CPU_CACHE: space}
        elif self.passes(kv_cache_memory_bytes=needed):
            yield {CACHE_BYTES: needed}


def _held(divided: Division) -> str:
    """A text about the memory that is used before any KV cache."""
    weights = "weights of unknown size" if divided.weights is None else f"{_gib(divided.weights)} of weights"
    weights += f", {_gib(divided.draft)} of its draft" if divided.draft else ""
    weights += f", {_gib(divided.adapters)} for adapters" if divided.adapters else ""
    return weights if divided.overhead is None else f"{weights} and about {_gib(divided.overhead)} to compute with"


def _gib(size: int) -> str:
    return f"{size / GIB:.2f} GiB"


def _value(key: str, size: int) -> int:
    return size // GIB if key == CPU_CACHE else size
