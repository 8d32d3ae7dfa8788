# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a second engine fits on a node with the engine that serves, and on which GPUs. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.paths import Paths
from ..hardware import host_memory
from ..models.fit import devices, flags
from . import environment, plans
from .gpu_assignment import Wish, assign, read_node
from .release import Release
from .state import releases

MIB_PER_GIB = 1024


@dataclass(frozen=True)
class Place:
    """The GPUs that a second engine would get; or why the second engine does not fit."""

    gpus: tuple[str, ...] = ()
    problem: str = ""


def place(paths: Paths, name: str, origin: int, target: int) -> Place:
    """Where a bridge fits. The bridge runs release `target`: first together with the engine of release `origin`, then
    together with the instance's next engine. Raises ReleaseError, OSError."""
    hardware = plans.Hardware(paths.root)
    wanted = releases.load(paths, name, target)
    if wanted.accelerator == "cpu":
        problem = _in_memory(
            need(paths, releases.load(paths, name, origin), hardware),
            need(paths, wanted, hardware),
            host_memory.available(paths.root),
        )
        return Place(problem=problem)
    free = free_gpus(_taken(paths), len(wanted.gpus), hardware.gpus)
    # These GPUs may have less memory than those of the release.
    if free and _plan(paths, wanted, free, hardware)["ok"] is not False:
        return Place(free)
    problem = _on_the_same(wanted, need(paths, wanted, hardware), hardware.gpus)
    return Place(problem=problem) if problem else Place(tuple(wanted.gpus))


def need(paths: Paths, release: Release, hardware: plans.Hardware) -> int | None:
    """MiB that an engine takes of each of its GPUs, or of the host's memory; None where unknown."""
    found = _plan(paths, release, release.gpus, hardware)["estimate"]
    keys = ("weights_gib", "draft_gib", "adapters_gib", "overhead_gib", "kv_cache_gib")
    parts = [found[key] for key in keys]
    if None in parts:
        return None
    mib = round(sum(parts) * MIB_PER_GIB)
    if release.accelerator == "cpu":
        # The estimate is of one process.
        return release.adapter.server_mib + mib * flags.read(release.flags)[0].world_size
    return mib


def _plan(paths: Paths, release: Release, gpus: Sequence[str], hardware: plans.Hardware) -> dict[str, Any]:
    """The plan of a release on these GPUs, as if they were empty."""
    variables = environment.read_file(paths.release(release.instance, release.number) / releases.ENV_FILE)
    engine = plans.Engine(
        model=release.model,
        argv=release.engine_argv,
        flags=release.flags,
        path=Path(release.model_path),
        draft=Path(release.draft) if release.draft else None,
        accelerator=release.accelerator,
        gpus=gpus,
        environment=plans.deciding(variables),
    )
    return plans.plan(engine, hardware)


def _in_memory(origin: int | None, target: int | None, available: int | None) -> str:
    """Why a second CPU engine does not fit; sizes in MiB."""
    if origin is None or target is None or available is None:
        return "the memory that both engines would take is unknown"
    # The bridge first runs together with the engine that serves, and then together with the next engine of the target.
    short = max(target - available, 2 * target - origin - available)
    if short > 0:
        return f"the node has {_gib(available)} of memory left, {_gib(short)} too little for a second engine"
    return ""


def free_gpus(taken: Sequence[str], count: int, gpus: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """`count` GPUs that no instance has and no other process uses; empty where there are fewer. A GPU whose processes
    nvidia-smi cannot list is not free."""
    used = [str(gpu["index"]) for gpu in gpus if gpu.get("index") is not None and gpu.get("processes") != []]
    others = Wish("others", "others", tuple(sorted({*taken, *used})))
    given, _problems = assign([others, Wish("bridge", "bridge", count)], read_node(gpus))
    return given[1] if len(given[1]) == count else ()


def _taken(paths: Paths) -> list[str]:
    """The GPUs of the active and the desired release of each instance."""
    found: list[str] = []
    for name in releases.names(paths):
        numbers = {releases.active_number(paths, name), releases.desired_number(paths, name)}
        for number in filter(None, numbers):
            found += releases.load(paths, name, number).gpus
    return found


def _on_the_same(wanted: Release, needed: int | None, gpus: Sequence[Mapping[str, Any]]) -> str:
    """Why a second engine does not fit on the GPUs of the first, where no other GPUs are free."""
    count = len(wanted.gpus)
    where = f"no {count} GPUs of this node are free for it" if count > 1 else "no GPU of this node is free for it"
    found = flags.read(wanted.flags)[0]
    if found.kv_cache_memory_bytes is None:
        return f"{where}, and two engines share GPUs only if the model has the flag kv-cache-memory-bytes"
    if needed is None:
        return f"{where}, and the memory that two engines would take on one GPU is unknown"
    for name in wanted.gpus:
        gpu = next((gpu for gpu in gpus if name in (str(gpu.get("index")), gpu.get("uuid"))), None)
        total = devices.from_facts([gpu])[0].memory_mib if gpu else None
        free = gpu.get("memory_free_mib") if gpu else None
        if total is None or free is None:
            return f"{where}, and the memory of GPU {name} is not known"
        # The engine refuses to start unless this share is free, however little memory the engine then takes.
        share = max(needed, round(total * wanted.adapter.claimed_share(wanted.flags)))
        short = max(share - free, 2 * share - total)
        if short > 0:
            return f"{where}, and GPU {name} has {_gib(short)} of memory too little for two engines"
    return ""


def _gib(mib: int) -> str:
    return f"{mib / MIB_PER_GIB:.1f} GiB"
