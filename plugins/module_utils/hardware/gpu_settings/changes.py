# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes the calls of nvidia-smi that give a GPU its wanted settings. Private to the collection.

Source of the options: nvidia-smi(1). Compute modes are given as words, because their numbers have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from . import mig
from .cards import Card, same_power
from .clocks import LOCKS

LOCK = {"gpu_clocks_mhz": ("-lgc", "-rgc"), "memory_clocks_mhz": ("-lmc", "-rmc")}
"""Options to lock and to unlock clocks."""


@dataclass(frozen=True)
class Change:
    """A setting of a card that differs from the wanted one, and the calls that change it."""

    card: Card
    setting: str
    before: Any
    """None where unknown."""
    after: Any
    calls: tuple[tuple[str, ...], ...]
    """Arguments for each call of nvidia-smi, in order."""

    @property
    def key(self) -> tuple[str, str]:
        """The card's name and the setting."""
        return self.card.name, self.setting

    def as_dict(self) -> dict[str, Any]:
        return {
            "index": self.card.gpu.index,
            "pci_bus_id": self.card.gpu.pci_bus_id,
            "setting": self.setting,
            "before": self.before,
            "after": self.after,
        }

    def __str__(self) -> str:
        return f"{self.card.name}: {self.setting}: {shown(self.before)} -> {shown(self.after)}"


@dataclass(frozen=True)
class Pending:
    """A changed setting that waits for a reset of the card."""

    card: Card
    setting: str
    now: bool

    def as_dict(self) -> dict[str, Any]:
        return {
            "index": self.card.gpu.index,
            "pci_bus_id": self.card.gpu.pci_bus_id,
            "setting": self.setting,
            "now": self.now,
            "wanted": not self.now,
        }

    def __str__(self) -> str:
        now, then = shown(self.now), shown(not self.now)
        return f"{self.card.name}: {self.setting} is {now}, and becomes {then} at the next reset"


def modes(card: Card) -> Iterator[Change]:
    """The first changes: a change of MIG mode may reset the card, which loses its other settings."""
    wanted, gpu = card.wanted, card.gpu
    if wanted.persistence_mode is not None and (gpu.persistence_mode == "enabled") != wanted.persistence_mode:
        yield _change(card, "persistence_mode", not wanted.persistence_mode, "-pm")
    if wanted.ecc is not None and bool(card.ecc_next) != wanted.ecc:
        yield _change(card, "ecc", card.ecc_next, "-e")
    if wanted.mig_mode is not None and card.changes_mode:
        calls = (*_clear(card), ("-i", _id(card), "-mig", _number(wanted.mig_mode)))
        yield Change(card, "mig_mode", card.mig_next, wanted.mig_mode, calls)


def others(card: Card) -> Iterator[Change]:
    """All other changes, for a card whose modes are set."""
    wanted, gpu = card.wanted, card.gpu
    if wanted.mig_devices is not None and card.mig_now and card.changes_layout:
        found, names = mig.layout(card.instances), mig.in_order(wanted.mig_devices)
        create = [("mig", "-i", _id(card), "-cgi", ",".join(names), "-C")] if names else []
        yield Change(card, "mig_devices", found, names, (*_clear(card), *create))
    if wanted.compute_mode is not None and (gpu.compute_mode or "").casefold() != wanted.compute_mode:
        before = (gpu.compute_mode or "").casefold() or None
        call = ("-i", _id(card), "-c", wanted.compute_mode.upper())
        yield Change(card, "compute_mode", before, wanted.compute_mode, (call,))
    limit = card.power_limit_wanted
    if limit is not None and not same_power(card.power_limit, limit):
        yield Change(card, "power_limit_w", card.power_limit, limit, (("-i", _id(card), "-pl", f"{limit:g}"),))
    for key in LOCKS:
        clocks, known = getattr(wanted, key), getattr(card.locked, key)
        if clocks is not None and clocks != known:
            lock, unlock = LOCK[key]
            option = (lock, f"{clocks[0]},{clocks[-1]}") if clocks else (unlock,)
            known = None if known is None else list(known)
            yield Change(card, key, known, list(clocks), (("-i", _id(card), *option),))


STAGES: tuple[Callable[[Card], Iterator[Change]], ...] = (modes, others)
"""The stages of changes. Between two stages, the cards are read again."""


def pending(card: Card) -> Iterator[Pending]:
    """Settings that are made, but not in force yet."""
    for key, now, then in (
        ("ecc", card.gpu.ecc.current, card.ecc_next),
        ("mig_mode", card.gpu.mig_mode, card.mig_next),
    ):
        wanted = getattr(card.wanted, key)
        if wanted is not None and now is not None and then == wanted and (now == "enabled") != wanted:
            yield Pending(card, key, not wanted)


def shown(value: Any) -> str:
    """A value as a text for messages."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "not known" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _id(card: Card) -> str:
    """The PCI address, or else the UUID. Not the index, which counts only cards that the driver could start."""
    return card.gpu.pci_bus_id or card.gpu.uuid or ""


def _number(on: bool) -> str:
    return "1" if on else "0"


def _change(card: Card, key: str, before: Any, option: str) -> Change:
    wanted = getattr(card.wanted, key)
    return Change(card, key, before, wanted, (("-i", _id(card), option, _number(wanted)),))


def _clear(card: Card) -> list[tuple[str, ...]]:
    """The calls that remove all MIG devices. Only needed calls, because a call without devices fails."""
    calls: list[tuple[str, ...]] = []
    if any(one.computes for one in card.instances):
        calls.append(("mig", "-i", _id(card), "-dci"))
    if card.instances:
        calls.append(("mig", "-i", _id(card), "-dgi"))
    return calls
