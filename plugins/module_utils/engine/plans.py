# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an engine of this node would run, whether it fits, and what would change. Private to the collection.

The module engine_plan and `inferctl plan` both make their plans here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core import commands
from ..hardware import host_memory
from ..hardware.gpu import facts as gpu_facts
from ..models.config.facts import ModelFacts, gather
from ..models.fit import devices
from ..models.fit.devices import Device
from ..models.fit.misfit import Misfit
from ..models.fit.plan import plan as fit_plan
from ..models.fit.proposal import propose
from ..models.fit.share import Share
from . import image_cuda
from .adapters import ENGINES
from .changes import Change
from .gang import plan as gang_plan
from .gang.plan import ONE_NODE, Span

NVIDIA_SMI_TIMEOUT = 30.0
"""Seconds that nvidia-smi may take: the default of the module gpu_facts."""

UNCOMPARED = (
    "the CUDA version of the image is unknown until this node has the image, so the driver was not compared with it: "
    "set engine_cuda to this version to compare them before"
)


@dataclass(frozen=True)
class Engine:
    """An engine that would run."""

    model: str
    """The model's name in the model registry."""
    argv: Sequence[str]
    """The command line in the container."""
    flags: Mapping[str, Any]
    """The flags of the model registry entry."""
    instance: str | None = None
    revision: str | None = None
    path: Path | None = None
    """The model's directory on this node; None: the model is not on the node yet."""
    accelerator: str = "nvidia"
    gpus: Sequence[str] | None = None
    """Indexes or UUIDs; None: all GPUs of the node."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The variables that decide whether the model fits (see `deciding`)."""
    image_cuda: str | None = None
    """The version of CUDA that the image is built with; empty where unknown, None where the image was not
    examined."""
    version: str = ""
    """The version of the engine in the image; empty where unknown."""
    change: Change | None = None
    problems: Sequence[Misfit] = ()
    """Problems that are known before the plan."""
    draft: Path | None = None
    """The directory of the draft model that the flags name; None without a draft, or before it is on this node."""
    span: Span = ONE_NODE
    """The nodes of the engine."""


def deciding(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables of an engine's environment that decide whether its model fits. Other variables may be secrets."""
    names = (name for engine in ENGINES.values() for name in engine.variables.deciding)
    return {name: variables[name] for name in names if variables.get(name)}


class Hardware:
    """The devices that engines of this node compute on. `named`: GPUs to use instead, which need not exist."""

    def __init__(self, root: Path, named: Sequence[Device] | None = None) -> None:
        self.named = named
        self._root = root
        self._facts: dict[str, Any] | None = None

    @property
    def gpus(self) -> list[dict[str, Any]]:
        """The fact `gpus` of the module gpu_facts."""
        found: list[dict[str, Any]] = self._gathered["gpus"]
        return found

    @property
    def _gathered(self) -> dict[str, Any]:
        """The facts of the module gpu_facts, gathered once, at the first read."""
        if self._facts is None:
            self._facts = gpu_facts.gather(
                self._root,
                lambda command: commands.run(command, NVIDIA_SMI_TIMEOUT),
                gpu_facts.NVIDIA_SMI.replace("_", "-"),
                [gpu_facts.NVIDIA_SMI],
                NVIDIA_SMI_TIMEOUT,
            )
        return self._facts

    def driver_misfits(self, engine: Engine) -> list[Misfit]:
        """Why this node's driver cannot run the engine's image."""
        driver = self._driver(engine)
        return image_cuda.driver_misfits(engine.image_cuda or "", driver.get("version"), driver.get("cuda_version"))

    def uncompared(self, engine: Engine) -> bool:
        """Whether the node has a driver, and the CUDA version of the engine's image is unknown."""
        return engine.image_cuda == "" and bool(self._driver(engine).get("cuda_version"))

    def _driver(self, engine: Engine) -> Mapping[str, Any]:
        """The driver that the engine would use; empty without one, and for GPUs that are only named."""
        none = self.named is not None or engine.accelerator == "cpu"
        return {} if none else self._gathered.get("gpu_driver") or {}

    def count(self, engine: Engine) -> int | None:
        """How many GPUs the node has; None where other GPUs are named, or the engine uses none."""
        return None if self.named is not None or engine.accelerator == "cpu" else len(self.gpus)

    def devices(self, engine: Engine) -> Sequence[Device]:
        """The devices of an engine. Raises ValueError for a GPU that the node does not have."""
        if self.named is not None:
            return self.named
        if engine.accelerator == "cpu":
            return devices.processors(host_memory.smallest_numa_node(self._root))
        return devices.from_facts(self.gpus, engine.gpus)


def plan(
    engine: Engine, hardware: Hardware, facts: ModelFacts | None = None, draft: ModelFacts | None = None
) -> dict[str, Any]:
    """The plan of an engine, in plain values. `facts` replaces the facts of the model's files on this node, and `draft`
    those of the draft model's files."""
    problems = list(engine.problems)
    computes_on: Sequence[Device] = ()
    try:
        computes_on = hardware.devices(engine)
    except ValueError as error:
        problems.append(Misfit("gpus", "gpus", list(engine.gpus or ()), str(error)))
    problems += hardware.driver_misfits(engine)
    if facts is None and engine.path is not None:
        facts = gather(engine.path)
    if draft is None and engine.draft is not None:
        draft = gather(engine.draft)
    argv, flags = engine.argv, engine.flags
    notes = [UNCOMPARED] if hardware.uncompared(engine) else []
    least = image_cuda.lowest(engine.image_cuda or "", engine.version) if engine.accelerator != "cpu" else None
    proposed: Mapping[str, int]
    if engine.span.nodes > 1:
        planned = gang_plan.divide(engine.span, flags, facts, computes_on, engine.environment, least, draft)
        problems += planned.problems
        notes += planned.notes
        flags, proposed = planned.flags, planned.added
        argv = [*argv, *_words(proposed)]
    elif facts and hardware.named and (proposed := propose(facts, flags, computes_on, engine.environment, draft=draft)):
        flags = {**flags, **proposed}
        argv = [*argv, *_words(proposed)]
        division = ", ".join(f"{flag}: {size}" for flag, size in proposed.items())
        notes.append(f"{division}: proposed, because the flags do not divide the model over several GPUs")
    count, share = hardware.count(engine), Share(engine.span.nodes, engine.span.rank)
    found = fit_plan(engine.model, argv, facts, flags, computes_on, engine.environment, least, count, draft, share)
    return {
        **found,
        "ok": False if problems else found["ok"],
        "instance": engine.instance,
        "nodes": engine.span.nodes,
        "rank": engine.span.rank,
        "revision": engine.revision,
        "gpus": None if engine.gpus is None or hardware.named is not None else list(engine.gpus),
        "change": None if engine.change is None else engine.change.to_dict(),
        "problems": [*(one.to_dict() for one in problems), *found["problems"]],
        "notes": [*notes, *found.get("notes", ())],
    }


def _words(flags: Mapping[str, int]) -> list[str]:
    return [word for flag, size in flags.items() for word in (f"--{flag}", str(size))]


def verdict(plans: Sequence[Mapping[str, Any]]) -> bool | None:
    """True if all engines fit, False if one does not fit, else None: for one, it is unknown."""
    verdicts = {one["ok"] for one in plans}
    return False if False in verdicts else None if None in verdicts else True
