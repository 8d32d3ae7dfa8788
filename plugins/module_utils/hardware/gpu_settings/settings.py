# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The declared GPU settings: for all GPUs, and overrides for single GPUs. Private to the collection."""

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
    """Settings of one GPU. None leaves a setting as it is."""

    persistence_mode: bool | None = None
    power_limit_w: float | None = None
    """Limit in W; 0 is the card's default."""
    gpu_clocks_mhz: tuple[int, ...] | None = None
    """Lowest and highest clock in MHz, or one number for both; empty unlocks the clocks."""
    memory_clocks_mhz: tuple[int, ...] | None = None
    ecc: bool | None = None
    mig_mode: bool | None = None
    mig_devices: tuple[str, ...] | None = None
    """Profiles such as 3g.40gb, in any order."""
    compute_mode: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Settings:
        """Settings from a dictionary; None means not set. Raises TypeError for an unknown key."""
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in given.items()
        }
        if values.get("mig_devices") is not None:
            values["mig_devices"] = tuple(map(mig.plain_name, values["mig_devices"]))
        return cls(**values)

    def given(self) -> dict[str, Any]:
        """The settings that are set."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    def overridden_by(self, other: Settings) -> Settings:
        """These settings, replaced by those of `other` if set."""
        values = {**self.given(), **other.given()}
        # A GPU without MIG mode does not take over the MIG devices of all GPUs.
        if other.mig_mode is False and other.mig_devices is None:
            values.pop("mig_devices", None)
        return Settings(**values)


NOTHING = Settings()


@dataclass(frozen=True)
class Override:
    """Settings of a single GPU, named by index, UUID or PCI address."""

    gpu: str
    settings: Settings


@dataclass(frozen=True)
class Wanted:
    """The settings of a node's GPUs."""

    settings: Settings
    overrides: tuple[Override, ...] = ()

    @classmethod
    def of(cls, settings: Mapping[str, Any], overrides: Iterable[Mapping[str, Any]]) -> Wanted:
        """Settings from dictionaries. An override also has the key `gpu`. Raises TypeError for an unknown key."""
        parts = [(one["gpu"], {key: value for key, value in one.items() if key != "gpu"}) for one in overrides]
        return cls(Settings.of(settings), tuple(Override(str(gpu), Settings.of(own)) for gpu, own in parts))

    def as_dict(self) -> dict[str, Any]:
        """The dictionaries from which `of` makes the same settings."""
        overrides = [{"gpu": one.gpu, **one.settings.given()} for one in self.overrides]
        return {"settings": self.settings.given(), "overrides": overrides}

    def __bool__(self) -> bool:
        return bool(self.settings.given() or any(one.settings.given() for one in self.overrides))

    def problems(self) -> list[Problem]:
        """Mistakes for which no card is needed."""
        found = _mistakes(EVERY_GPU, self.settings, self.settings)
        for one in self.overrides:
            where = f"GPU {one.gpu}"
            if not one.settings.given():
                found.append(Problem(where, "its entry has no settings: remove the entry"))
            found += _mistakes(where, one.settings, self.settings.overridden_by(one.settings))
        return found

    def select(self, gpus: Sequence[Gpu]) -> tuple[list[tuple[Gpu, Settings]], list[Problem]]:
        """The settings of each GPU with settings, and problems of overrides for no GPU, or for the same GPU."""
        own: dict[int, Settings] = {}
        problems = []
        for override in self.overrides:
            number = next((number for number, gpu in enumerate(gpus) if names(override.gpu, gpu)), None)
            if number is None:
                there = ", ".join(f"{gpu.index} ({gpu.pci_bus_id}, {gpu.uuid})" for gpu in gpus)
                problems.append(Problem(f"GPU {override.gpu}", f"there is no such GPU; the node has {there}"))
            elif number in own:
                problems.append(Problem(f"GPU {override.gpu}", "two entries name this GPU: join the entries"))
            else:
                own[number] = override.settings
        merged = [self.settings.overridden_by(own.get(number, NOTHING)) for number in range(len(gpus))]
        return [(gpu, one) for gpu, one in zip(gpus, merged, strict=True) if one.given()], problems


def names(text: str, gpu: Gpu) -> bool:
    """Whether a text is the index, the UUID or the PCI address of a GPU."""
    if text.isdecimal():
        return gpu.index == int(text)
    if gpu.uuid and text.casefold() == gpu.uuid.casefold():
        return True
    return gpu.pci_bus_id is not None and normalise(text) == gpu.pci_bus_id


def _mistakes(where: str, declared: Settings, whole: Settings) -> list[Problem]:
    """The mistakes in `declared`; `whole` are the settings of the GPU with its override."""
    found = []
    if declared.power_limit_w is not None and not declared.power_limit_w >= 0:
        message = "must be 0, the card's default, or a limit in W"
        found.append(Problem(where, message, "power_limit_w", declared.power_limit_w))
    for key in ("gpu_clocks_mhz", "memory_clocks_mhz"):
        clocks = getattr(declared, key)
        if clocks and (len(clocks) > 2 or min(clocks) < 0 or clocks[0] > clocks[-1]):
            message = "must be lowest and highest clock in MHz, one number for both, or an empty list to unlock"
            found.append(Problem(where, message, key, list(clocks)))
    if declared.compute_mode not in (None, *COMPUTE_MODES):
        found.append(
            Problem(where, f"must be one of {', '.join(COMPUTE_MODES)}", "compute_mode", declared.compute_mode)
        )
    for name in declared.mig_devices or ():
        if not re.fullmatch(mig.NAME, name):
            found.append(Problem(where, "must be a profile such as 3g.40gb or 1g.10gb+me", "mig_devices", name))
    if declared.mig_devices and not whole.mig_mode:
        found.append(Problem(where, "MIG devices exist only in MIG mode: set mig_mode, too", "mig_devices"))
    mode_declared = declared.mig_mode is not None or declared.compute_mode is not None
    if mode_declared and whole.mig_mode and whole.compute_mode not in (None, "default"):
        found.append(Problem(where, "MIG mode allows only default", "compute_mode", whole.compute_mode))
    return found


SETTINGS = tuple(one.name for one in fields(Settings))
"""The names of the settings, in the order of messages."""
