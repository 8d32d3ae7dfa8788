# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proposes how to divide a model over GPUs if its flags do not set it. Private to the collection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..config.facts import ModelFacts
from .capabilities import Capability
from .devices import Device
from .division import PP, TP
from .fit import fit
from .flags import PARALLEL_SIZES

MEMORY = frozenset({"weights", "kv_cache", "memory"})
"""Checks of memory, which a model that fails on few GPUs may pass on more."""


def propose(
    facts: ModelFacts,
    entry: Mapping[str, object],
    devices: Sequence[Device],
    environment: Mapping[str, object] | None = None,
    lowest_capability: Capability | None = None,
    draft: ModelFacts | None = None,
) -> dict[str, int]:
    """Flags that divide a model by heads over the smallest sufficient number of these GPUs, or else also by layers.

    If no division is sufficient, the best one. Empty if the entry sets a division, if one GPU is enough, and for a CPU
    engine.
    """
    if any(entry.get(flag) is not None for flag in PARALLEL_SIZES) or any(device.is_cpu for device in devices):
        return {}
    best: dict[str, int] = {}
    fewest = len(fit(facts, entry, devices, environment, lowest_capability, draft=draft).misfits)
    for flags in _divisions(len(devices)):
        found = fit(facts, {**entry, **flags}, devices, environment, lowest_capability, draft=draft)
        if found.ok is not False:
            return flags
        # If no division is sufficient, one over more GPUs is better, unless it has more misfits, or no misfit is about
        # memory.
        nearer = len(found.misfits) < fewest or any(one.check in MEMORY for one in found.misfits)
        if nearer and len(found.misfits) <= fewest and (PP not in flags or not best):
            best, fewest = flags, len(found.misfits)
    return best


def _divisions(gpus: int) -> Iterator[dict[str, int]]:
    """All divisions over 1 to `gpus` GPUs: first those only by heads, which answer faster, then those with stages. In
    both groups, fewer GPUs come first."""
    worlds = range(1, gpus + 1)
    pairs = [(world, 1) for world in worlds]
    pairs += [(world // stages, stages) for world in worlds for stages in range(2, world + 1) if world % stages == 0]
    for ranks, stages in pairs:
        yield {flag: size for flag, size in ((TP, ranks), (PP, stages)) if size > 1}
