# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The memory limit of an engine's container, so that one engine cannot take its node down. Private to the collection.

Where the operator sets none, a new release gets a limit by the estimate of the fit (models/fit/host.py). A release that
is staged keeps its own, also where a later version would compute another one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from ..models.config.facts import ModelFacts
from ..models.fit.devices import Device
from ..models.fit.host import HostMemory, estimate
from ..models.fit.misfit import Misfit
from ..models.fit.overhead import GIB, MIB
from .instance import Instance
from .release import Settings

NO_LIMIT = 0

RESERVED_SHARE, RESERVED_LEAST = 0.05, 4 * GIB
"""The share of the node's memory, and the least bytes, that a limit leaves for the node itself: for systemd, dockerd,
the agent and exporters. A limit never leaves more than half of the memory."""

CHECK = "host_memory"
"""The name of the checks of memory limits. Their results do not depend on an estimate."""

_UNITS: Mapping[str, int] = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SIZE = re.compile(r"(\d{1,18})([bkmg]?)", re.IGNORECASE)


def size(text: str) -> int:
    """Bytes of a size in Docker's notation; 0 for another text."""
    match = _SIZE.fullmatch(text)
    return int(match[1]) * _UNITS[match[2].lower()] if match else 0


def of(
    instance: Instance,
    entry: Mapping[str, Any],
    facts: ModelFacts | None,
    draft: ModelFacts | None,
    settings: Settings,
    numa_mib: int | None,
) -> HostMemory:
    """The host's memory that the engine of an instance takes. `entry` are the flags of its model registry entry, and
    `numa_mib` is the memory of the smallest NUMA node."""
    # Of this device, the estimate reads only the kind of accelerator and the memory.
    device = Device(instance.accelerator, numa_mib, accelerator=instance.accelerator)
    shared, nodes = size(settings.shm_size), len(instance.nodes) or 1
    return estimate(facts or ModelFacts(), draft, entry, device, settings.environment, shared, nodes)


def limit(memory: HostMemory, total_mib: int | None) -> str:
    """The limit of a new release in Docker's notation, from the memory of the node; empty for no limit.

    Where too little is known of the model, the limit is the memory of the node without what the node itself needs.
    """
    most = None
    if total_mib is not None:
        total = total_mib * MIB
        most = max(total - max(round(total * RESERVED_SHARE), RESERVED_LEAST), total // 2)
    wanted = [each for each in (memory.needed, most) if each is not None]
    return f"{math.ceil(min(wanted) / GIB)}g" if wanted else ""


def misfits(memory: HostMemory, settings: Settings, total_mib: int | None, where: str) -> list[Misfit]:
    """Why an engine could not hold what it must. `where` is the place of the settings in the inventory."""
    found = []
    given = size(settings.memory)
    if given != NO_LIMIT and given < memory.least:
        message = (
            f"is less than the {_gib(memory.least)} GiB that the engine must hold in the memory of the host "
            f"({_parts(memory)}): raise {where}, or remove it for a limit that fits"
        )
        found.append(Misfit(CHECK, where, settings.memory, message))
    if total_mib is not None and memory.offloaded > total_mib * MIB:
        message = (
            f"put {_gib(memory.offloaded)} GiB into the memory of the host, which has {_gib(total_mib * MIB)} GiB: "
            "lower them"
        )
        found.append(Misfit(CHECK, "kv-offloading-size and cpu-offload-gb", None, message))
    return found


def _parts(memory: HostMemory) -> str:
    parts = {"weights": memory.weights or 0, "KV cache": memory.cache if memory.certain else 0}
    parts["offloaded by flags"] = memory.offloaded
    return ", ".join(f"{name} {_gib(held)}" for name, held in parts.items() if held)


def _gib(held: int) -> str:
    return f"{held / GIB:.1f}"
