# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How an operator wants the GPUs to be set: for all of them, and for some of them otherwise. Private to the
collection."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from ...core.problems import Problem
from ..gpu.models import Gpu
from ..pci import normalise
from . import mig

COMPUTE_MODES = ("default", "exclusive_process", "prohibited")
"""Source: nvidia-smi(1), --compute-mode; the fourth, exclusive_thread, is deprecated."""

EVERY_GPU = "all GPUs"


@dataclass(frozen=True)
class Settings:
    """Settings of one GPU. None leaves one alone."""

    persistence_mode: bool | None = None
    power_limit_w: float | None = None
    """In W; 0 is the card's default."""
    gpu_clocks_mhz: tuple[int, ...] | None = None
    """Least and most in MHz, or one number for both; empty unlocks them."""
    memory_clocks_mhz: tuple[int, ...] | None = None
    ecc: bool | None = None
    mig_mode: bool | None = None
    mig_devices: tuple[str, ...] | None = None
    """Profiles such as 3g.40gb, in any order."""
    compute_mode: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Settings:
        """Of a dictionary, in which None stands for what was not said. Raises TypeError for an unknown key."""
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in given.items()
        }
        if values.get("mig_devices") is not None:
            values["mig_devices"] = tuple(map(mig.plain_name, values["mig_devices"]))
        return cls(**values)

    def given(self) -> dict[str, Any]:
        """What was said."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    def overridden_by(self, other: Settings) -> Settings:
        """These, with what the others say in its place."""
        values = {**self.given(), **other.given()}
        # Without MIG there is nothing that the devices of all GPUs could stand for.
        if other.mig_mode is False and other.mig_devices is None:
            values.pop("mig_devices", None)
        return Settings(**values)


NOTHING = Settings()


@dataclass(frozen=True)
class Override:
    """What one GPU has of its own. It is named by index, UUID or PCI address."""

    gpu: str
    settings: Settings


@dataclass(frozen=True)
class Wanted:
    """The settings of a node's GPUs."""

    settings: Settings
    overrides: tuple[Override, ...] = ()

    @classmethod
    def of(cls, settings: Mapping[str, Any], overrides: Iterable[Mapping[str, Any]]) -> Wanted:
        """Of dictionaries; an override has the key `gpu` beside the settings. Raises TypeError for an unknown key."""
        parts = [(one["gpu"], {key: value for key, value in one.items() if key != "gpu"}) for one in overrides]
        return cls(Settings.of(settings), tuple(Override(str(gpu), Settings.of(own)) for gpu, own in parts))

    def as_dict(self) -> dict[str, Any]:
        """What `of` takes."""
        overrides = [{"gpu": one.gpu, **one.settings.given()} for one in self.overrides]
        return {"settings": self.settings.given(), "overrides": overrides}

    def __bool__(self) -> bool:
        return bool(self.settings.given() or any(one.settings.given() for one in self.overrides))

    def problems(self) -> list[Problem]:
        """What no card could take."""
        found = _mistakes(EVERY_GPU, self.settings, self.settings)
        for one in self.overrides:
            where = f"GPU {one.gpu}"
            if not one.settings.given():
                found.append(Problem(where, "nothing is set for it: remove the entry"))
            found += _mistakes(where, one.settings, self.settings.overridden_by(one.settings))
        return found

    def select(self, gpus: Sequence[Gpu]) -> tuple[list[tuple[Gpu, Settings]], list[Problem]]:
        """The settings of each GPU that has any, and the overrides that name none, or one twice."""
        own: dict[int, Settings] = {}
        problems = []
        for override in self.overrides:
            number = next((number for number, gpu in enumerate(gpus) if names(override.gpu, gpu)), None)
            if number is None:
                there = ", ".join(f"{gpu.index} ({gpu.pci_bus_id}, {gpu.uuid})" for gpu in gpus)
                problems.append(Problem(f"GPU {override.gpu}", f"there is none of that name; the node has {there}"))
            elif number in own:
                problems.append(Problem(f"GPU {override.gpu}", "it is named twice: join the two entries"))
            else:
                own[number] = override.settings
        merged = [self.settings.overridden_by(own.get(number, NOTHING)) for number in range(len(gpus))]
        return [(gpu, one) for gpu, one in zip(gpus, merged, strict=True) if one.given()], problems


def names(text: str, gpu: Gpu) -> bool:
    """Whether a text is the index, the UUID or the PCI address of a GPU."""
    if text.isdecimal():
        return gpu.index == int(text)
    if text.casefold() == (gpu.uuid or "").casefold():
        return True
    return gpu.pci_bus_id is not None and normalise(text) == gpu.pci_bus_id


def _mistakes(where: str, said: Settings, whole: Settings) -> list[Problem]:
    """What is wrong with what was said, given the whole that it becomes a part of."""
    found = []
    if said.power_limit_w is not None and not said.power_limit_w >= 0:
        found.append(Problem(where, "it is in W, and 0 is the card's default", "power_limit_w", said.power_limit_w))
    for key in ("gpu_clocks_mhz", "memory_clocks_mhz"):
        clocks = getattr(said, key)
        if clocks and (len(clocks) > 2 or min(clocks) < 0 or clocks[0] > clocks[-1]):
            message = "the least and the most in MHz are asked for, or one number for both; an empty list unlocks"
            found.append(Problem(where, message, key, list(clocks)))
    if said.compute_mode not in (None, *COMPUTE_MODES):
        found.append(Problem(where, f"it is one of {', '.join(COMPUTE_MODES)}", "compute_mode", said.compute_mode))
    for name in said.mig_devices or ():
        if not re.fullmatch(mig.NAME, name):
            found.append(Problem(where, "a profile is written like 3g.40gb or 1g.10gb+me", "mig_devices", name))
    if said.mig_devices and not whole.mig_mode:
        found.append(Problem(where, "MIG devices are there in MIG mode only: set mig_mode, too", "mig_devices"))
    both = said.mig_mode is not None or said.compute_mode is not None
    if both and whole.mig_mode and whole.compute_mode not in (None, "default"):
        found.append(Problem(where, "in MIG mode it is always the default one", "compute_mode", whole.compute_mode))
    return found


SETTINGS = tuple(one.name for one in fields(Settings))
"""Their names, in the order in which they are told."""
