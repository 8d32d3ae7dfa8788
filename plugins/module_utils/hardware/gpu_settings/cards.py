# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A GPU as its settings see it, and what stands against them on it. Private to the collection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...core.problems import Problem
from ..gpu.models import Gpu
from . import mig
from .settings import NOTHING, Settings

WATT = 1.0
"""Limits that differ by less are the same: cards round them."""


@dataclass(frozen=True)
class Card:
    """A GPU, what is known of it beyond its report, and its wanted settings."""

    gpu: Gpu
    wanted: Settings
    locked: Settings = NOTHING
    """The clocks that it was locked to, of which no report tells."""
    profiles: tuple[mig.Profile, ...] = ()
    """What it offers in MIG mode; empty where it did not tell."""
    instances: tuple[mig.GpuInstance, ...] = ()
    """What is laid out on it."""
    trouble: str = ""
    """Why something of that could not be read."""

    @property
    def name(self) -> str:
        return f"GPU {self.gpu.index if self.gpu.index is not None else '?'} ({self.gpu.pci_bus_id or self.gpu.uuid})"

    @property
    def mig_now(self) -> bool:
        return self.gpu.mig_mode == "enabled"

    @property
    def mig_next(self) -> bool | None:
        """MIG mode after the next reset; None for a card without it."""
        return _on(self.gpu.mig_mode_pending or self.gpu.mig_mode)

    @property
    def ecc_next(self) -> bool | None:
        """ECC after the next reset; None for a card without it."""
        return _on(self.gpu.ecc.pending or self.gpu.ecc.current)

    @property
    def power_limit(self) -> float | None:
        """What was asked for, in W: what is in force may be lower for another reason."""
        gpu = self.gpu
        return gpu.power_limit_w if gpu.power_limit_requested_w is None else gpu.power_limit_requested_w

    @property
    def power_limit_wanted(self) -> float | None:
        """In W, with 0 as the number that it stands for."""
        return self.gpu.power_limit_default_w if self.wanted.power_limit_w == 0 else self.wanted.power_limit_w

    @property
    def changes_mode(self) -> bool:
        """Whether MIG mode is to be switched. A card without MIG is as one that has it off."""
        return self.wanted.mig_mode is not None and bool(self.mig_next) != self.wanted.mig_mode

    @property
    def changes_layout(self) -> bool:
        """Whether its MIG devices are others than those wanted, now or once the mode is on."""
        wanted = self.wanted.mig_devices
        return (
            wanted is not None and self.wanted.mig_mode is True and mig.layout(self.instances) != mig.in_order(wanted)
        )

    def problems(self) -> list[Problem]:
        """Everything that stands against its settings, before anything is tried."""
        gpu, wanted = self.gpu, self.wanted
        if gpu.lost:
            return [Problem(self.name, "it does not answer any more: see dmesg for its address, then power cycle")]
        problems = [Problem(self.name, self.trouble)] if self.trouble else []

        def against(key: str, message: str) -> None:
            value = getattr(wanted, key)
            problems.append(Problem(self.name, message, key, list(value) if isinstance(value, tuple) else value))

        if wanted.persistence_mode is not None and gpu.persistence_mode is None:
            against("persistence_mode", "the card does not tell whether it has one")
        if wanted.power_limit_w is not None and (message := self._against_power_limit()):
            against("power_limit_w", message)
        for key, most in (
            ("gpu_clocks_mhz", gpu.clocks.graphics_max_mhz),
            ("memory_clocks_mhz", gpu.clocks.memory_max_mhz),
        ):
            clocks = getattr(wanted, key)
            if clocks and most is not None and clocks[-1] > most:
                against(key, f"the card goes up to {most} MHz")
        if wanted.ecc and self.ecc_next is None:
            against("ecc", "the card has no error correction that could be switched on")
        if wanted.compute_mode is not None and gpu.compute_mode is None:
            against("compute_mode", "the card does not tell which it has")
        if self.mig_now and wanted.mig_mode is None and wanted.compute_mode not in (None, "default"):
            against("compute_mode", "the card is in MIG mode, in which it is always the default one")
        if wanted.mig_mode and self.mig_next is None:
            against("mig_mode", "the card has no MIG")
        elif self.changes_mode or self.changes_layout:
            for message in mig.misfits(wanted.mig_devices or (), self.profiles) if self.profiles else ():
                against("mig_devices", message)
            if message := _in_use(gpu):
                against("mig_mode" if self.changes_mode else "mig_devices", message)
        return problems

    def _against_power_limit(self) -> str:
        gpu, limit = self.gpu, self.power_limit_wanted
        if limit is None or gpu.power_limit_min_w is None or gpu.power_limit_max_w is None:
            return "the card does not let its limit be set"
        if gpu.power_limit_min_w <= limit <= gpu.power_limit_max_w:
            return ""
        return f"the card takes {gpu.power_limit_min_w:g} to {gpu.power_limit_max_w:g} W"


def same_power(one: float | None, other: float | None) -> bool:
    """Whether two limits are the same, in W."""
    return one is not None and other is not None and abs(one - other) < WATT


def _on(mode: str | None) -> bool | None:
    return None if mode is None else mode == "enabled"


def _in_use(gpu: Gpu) -> str:
    """What keeps a GPU from being laid out anew; empty where nothing does."""
    if gpu.processes is None:
        return "nvidia-smi does not tell who uses the card, so it is left alone"
    users = [f"{one.name or 'a process'} (pid {one.pid})" for one in gpu.processes]
    return f"the card is in use by {_some(users)}: drain the node first" if users else ""


def _some(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
