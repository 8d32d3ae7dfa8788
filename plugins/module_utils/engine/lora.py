# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The LoRA adapters that an instance serves in addition to its model. Private to the collection. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.problems import Problem
from ..models.adapter_facts import AdapterFacts
from ..models.config.config import Config
from ..models.fit import adapters as fit_adapters
from ..models.fit.misfit import ADAPTERS, Misfit
from ..models.registry.entries import Entry
from ..store.stored_model import StoredModel
from . import adapters
from .release import Settings, engine_path


@dataclass(frozen=True)
class Lora:
    """One adapter."""

    entry: Entry
    stored: StoredModel
    facts: AdapterFacts | None = None
    """None before the adapter was read."""


def paths(loras: Sequence[Lora], settings: Settings) -> dict[str, str]:
    """The directory of each adapter in the container, by the adapter's name."""
    return {lora.entry.name: engine_path(lora.stored.path, settings) for lora in loras}


def flags(entry: Entry, loras: Sequence[Lora], settings: Settings) -> Mapping[str, Any]:
    """The flags of an entry, with those that serve its adapters. Without adapters, the entry's own flags."""
    if not loras:
        return entry.flags
    ranks = [lora.facts.rank for lora in loras if lora.facts and lora.facts.rank]
    return adapters.get().adapter_flags(entry.flags, paths(loras, settings), max(ranks, default=1))


def mistakes(entry: Entry, base: Config | None, loras: Sequence[Lora]) -> Iterator[tuple[str, str]]:
    """Name and mistake of each adapter that the engine of `entry` cannot serve. `base` is None if unknown."""
    engine = adapters.get()
    given = entry.flags.get(engine.adapter_rank)
    most = int(str(given)) if given is not None and str(given).isdigit() else engine.adapter_ranks[-1]
    for lora in loras:
        if lora.facts is None:
            continue
        for message in fit_adapters.mistakes(lora.facts, base or Config(), entry.model):
            yield lora.entry.name, message
        if lora.facts.rank and lora.facts.rank > most:
            way = (
                f"raise {engine.adapter_rank} in {entry.name}, or remove it"
                if given is not None
                else "train an adapter of a lower rank"
            )
            limit = f"{engine.adapter_rank} of {entry.name}" if given is not None else f"{engine.title}'s limit"
            yield lora.entry.name, f"has rank {lora.facts.rank}, more than {limit}, {most}: {way}"


def misfits(entry: Entry, base: Config | None, loras: Sequence[Lora]) -> list[Misfit]:
    """The mistakes in the form of a plan's problems."""
    return [Misfit(ADAPTERS, f"models.{name}", None, f"it {words}") for name, words in mistakes(entry, base, loras)]


def problems(entry: Entry, base: Config | None, loras: Sequence[Lora]) -> list[Problem]:
    """The mistakes in the form of problems of the input."""
    return [Problem(f"models.{name}", f"it {words}", "adapter") for name, words in mistakes(entry, base, loras)]
