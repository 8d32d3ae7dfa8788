# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares a GPU with its wanted settings, and finds settings that it does not accept. Private to the collection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...core.problems import Problem
from ..gpu.models import Gpu
from . import mig
from .settings import NOTHING, Settings

WATT = 1.0
"""Power limits that differ by less count as equal, because cards round them."""


@dataclass(frozen=True)
class Card:
    """A GPU with its wanted settings, and data that its report does not have."""

    gpu: Gpu
    wanted: Settings
    locked: Settings = NOTHING
    """The clocks to which it is locked, which no report shows."""
    profiles: tuple[mig.Profile, ...] = ()
    """Its MIG profiles; empty if unknown."""
    instances: tuple[mig.GpuInstance, ...] = ()
    """Its GPU instances of MIG."""
    trouble: str = ""
    """Why the instances could not be read."""

    @property
    def name(self) -> str:
        return f"GPU {self.gpu.index if self.gpu.index is not None else '?'} ({self.gpu.pci_bus_id or self.gpu.uuid})"

    @property
    def mig_now(self) -> bool:
        return self.gpu.mig_mode == "enabled"

    @property
    def mig_next(self) -> bool | None:
        """MIG mode after the next reset; None for a card without MIG."""
        return _on(self.gpu.mig_mode_pending or self.gpu.mig_mode)

    @property
    def ecc_next(self) -> bool | None:
        """ECC after the next reset; None for a card without ECC."""
        return _on(self.gpu.ecc.pending or self.gpu.ecc.current)

    @property
    def power_limit(self) -> float | None:
        """The requested limit in W. The limit in force may be lower for another reason."""
        gpu = self.gpu
        return gpu.power_limit_w if gpu.power_limit_requested_w is None else gpu.power_limit_requested_w

    @property
    def power_limit_wanted(self) -> float | None:
        """The wanted limit in W; the card's default for 0."""
        return self.gpu.power_limit_default_w if self.wanted.power_limit_w == 0 else self.wanted.power_limit_w

    @property
    def changes_mode(self) -> bool:
        """Whether MIG mode must change. A card without MIG counts as off."""
        return self.wanted.mig_mode is not None and bool(self.mig_next) != self.wanted.mig_mode

    @property
    def changes_layout(self) -> bool:
        """Whether its MIG devices differ from the wanted ones, now or after MIG mode is on."""
        wanted = self.wanted.mig_devices
        return (
            wanted is not None and self.wanted.mig_mode is True and mig.layout(self.instances) != mig.in_order(wanted)
        )

    def problems(self) -> list[Problem]:
        """All settings that the card does not accept, before any change."""
        gpu, wanted = self.gpu, self.wanted
        if gpu.lost:
            return [
                Problem(self.name, "it has fallen off the bus: find its address in dmesg, then power-cycle the node")
            ]
        problems = [Problem(self.name, self.trouble)] if self.trouble else []

        def against(key: str, message: str) -> None:
            value = getattr(wanted, key)
            problems.append(Problem(self.name, message, key, list(value) if isinstance(value, tuple) else value))

        if wanted.persistence_mode is not None and gpu.persistence_mode is None:
            against("persistence_mode", "the card does not report this mode: remove the setting")
        if wanted.power_limit_w is not None and (message := self._against_power_limit()):
            against("power_limit_w", message)
        for key, most in (
            ("gpu_clocks_mhz", gpu.clocks.graphics_max_mhz),
            ("memory_clocks_mhz", gpu.clocks.memory_max_mhz),
        ):
            clocks = getattr(wanted, key)
            if clocks and most is not None and clocks[-1] > most:
                against(key, f"the card's highest clock is {most} MHz")
        if wanted.ecc and self.ecc_next is None:
            against("ecc", "the card has no error correction (ECC): remove the setting")
        if wanted.compute_mode is not None and gpu.compute_mode is None:
            against("compute_mode", "the card does not report this mode: remove the setting")
        if self.mig_now and wanted.mig_mode is None and wanted.compute_mode not in (None, "default"):
            against("compute_mode", "the card is in MIG mode, which allows only default")
        if wanted.mig_mode and self.mig_next is None:
            against("mig_mode", "the card has no MIG: remove the setting")
        elif self.changes_mode or self.changes_layout:
            for message in mig.misfits(wanted.mig_devices or (), self.profiles) if self.profiles else ():
                against("mig_devices", message)
            if message := _in_use(gpu):
                against("mig_mode" if self.changes_mode else "mig_devices", message)
        return problems

    def _against_power_limit(self) -> str:
        gpu, limit = self.gpu, self.power_limit_wanted
        if limit is None or gpu.power_limit_min_w is None or gpu.power_limit_max_w is None:
            return "the card's power limit cannot be set: remove the setting"
        if gpu.power_limit_min_w <= limit <= gpu.power_limit_max_w:
            return ""
        return f"the card allows {gpu.power_limit_min_w:g} to {gpu.power_limit_max_w:g} W"


def same_power(one: float | None, other: float | None) -> bool:
    """Whether two limits are the same, in W."""
    return one is not None and other is not None and abs(one - other) < WATT


def _on(mode: str | None) -> bool | None:
    return None if mode is None else mode == "enabled"


def _in_use(gpu: Gpu) -> str:
    """Why the MIG devices of a GPU cannot change; empty if they can."""
    if gpu.processes is None:
        return "nvidia-smi does not list the processes on the card, so its MIG devices cannot change safely"
    users = [f"{one.name or 'a process'} (pid {one.pid})" for one in gpu.processes]
    return f"the card is in use by {_some(users)}: drain the node first" if users else ""


def _some(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
