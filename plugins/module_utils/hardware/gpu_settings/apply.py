# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Applies settings to a node's GPUs by nvidia-smi. Private to the collection.

Reads the cards, refuses settings that a card does not accept, makes the missing changes, and reads the cards again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ...core.commands import Outcome
from ...core.problems import InputError, Problem
from ..gpu import report
from ..gpu.errors import Failure, classify
from ..gpu.models import Gpu
from . import mig
from .cards import Card
from .changes import STAGES, Change, Pending, pending
from .clocks import LOCKS, Clocks
from .settings import NOTHING, Settings, Wanted

Run = Callable[[list[str]], Outcome]
"""Runs nvidia-smi with these arguments within the time limit."""

REFUSED = re.compile(
    r"not supported|treating as warning|permission|unable to|failed to|not a valid|in use by", re.IGNORECASE
)
"""Messages of nvidia-smi about a refused change, often with exit status 0."""


class NoAnswer(Exception):
    """nvidia-smi does not list the GPUs."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(f"nvidia-smi does not list the GPUs ({failure.kind}): {failure.message}")


@dataclass
class Result:
    """The changes that were made, or would be made in check mode."""

    changes: list[Change] = field(default_factory=list)
    pending: list[Pending] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """Changes that failed, as sentences."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "changes": [one.as_dict() for one in self.changes],
            "pending": [one.as_dict() for one in self.pending],
            "failures": self.failures,
            "reboot_required": bool(self.pending),
            "reboot_reason": self.reboot_reason,
        }

    @property
    def reboot_reason(self) -> str:
        """Why the node needs a reboot; empty if it does not."""
        return "; ".join(map(str, self.pending))


class Setter:
    """Sets the GPUs of this node."""

    def __init__(self, run: Run, clocks: Clocks, wanted: Wanted) -> None:
        self._run = run
        self._clocks = clocks
        self._wanted = wanted

    def inspect(self) -> tuple[list[Card], list[Problem]]:
        """The cards with settings, and problems of the choice of cards. Raises NoAnswer."""
        outcome = self._run(["-q", "-x"])
        listed = report.parse(outcome.stdout)
        if not listed.gpus:
            failure = classify(f"{listed.remarks}\n{outcome.stderr}".strip(), outcome.code)
            raise NoAnswer(
                Failure(outcome.failure, outcome.message)
                if outcome.failure
                else failure or Failure("no_devices", listed.damage or "it lists none")
            )
        chosen, problems = self._wanted.select(listed.gpus)
        return [self._card(gpu, settings) for gpu, settings in chosen], problems

    def _card(self, gpu: Gpu, wanted: Settings) -> Card:
        card = Card(gpu, wanted, self._clocks.of(gpu))
        if gpu.mig_mode is None or (wanted.mig_mode is None and wanted.mig_devices is None):
            return card
        where = ["mig", "-i", gpu.pci_bus_id or gpu.uuid or ""]
        # Some drivers list the profiles only in MIG mode. Without a list, the driver checks them at the creation.
        profiles = mig.profiles(self._run([*where, "-lgip"]).stdout) if wanted.mig_devices else []
        card = replace(card, profiles=tuple(profiles))
        if not card.mig_now:
            return card
        tables = [self._run([*where, option]) for option in ("-lgi", "-lci")]
        for table in tables:
            if table.code != 0 and not mig.NONE.search(table.stdout + table.stderr):
                return replace(card, trouble=f"its MIG devices cannot be listed: {_words(table)}")
        return replace(card, instances=tuple(mig.instances(*(table.stdout for table in tables))))

    def foresee(self) -> Result:
        """The changes that `apply` would make. Raises NoAnswer, and InputError with all problems."""
        cards, problems = self.inspect()
        _refuse(problems, cards)
        result = Result(changes=[change for card in cards for change in STAGES[0](card)])
        # Assumes that modes change at once, although cards before Hopper may need a reset.
        later = [_with_modes(card) for card in cards]
        result.changes += [change for card in later for change in STAGES[1](card)]
        result.pending = [one for card in later for one in pending(card)]
        return result

    def apply(self, all_or_nothing: bool = True) -> Result:
        """Set every card. A failure of one card does not stop the other cards.

        Raises NoAnswer, and before any change InputError with all problems. Without `all_or_nothing`, cards with
        problems are left out, and their problems are failures of the result.
        """
        cards, problems = self.inspect()
        if all_or_nothing:
            _refuse(problems, cards)
        for card in cards:
            problems += card.problems()
        result = Result(failures=[str(problem) for problem in problems])
        try:
            self._set([card for card in cards if not card.problems()], result)
        except NoAnswer as error:
            result.failures.append(str(error))
        return result

    def _set(self, cards: list[Card], result: Result) -> None:
        """Set these cards, stage by stage. Raises NoAnswer; the result then has the changes until then."""
        names = [card.name for card in cards]
        failed: set[tuple[str, str]] = set()
        printed: dict[tuple[str, str], str] = {}
        for stage in STAGES:
            changes = [change for card in cards for change in stage(card)]
            for change in changes:
                failure, printed[change.key] = self._do(change)
                if failure:
                    failed.add(change.key)
                    result.failures.append(failure)
                else:
                    result.changes.append(change)
            if changes:
                listed = {card.name: card for card in self.inspect()[0]}
                self._without([name for name in names if name not in listed], result)
                names = [name for name in names if name in listed]
                cards = [listed[name] for name in names]
        # Changes count as made only if the cards now show them. Locked clocks cannot be read back.
        for card in cards:
            for change in (change for stage in STAGES for change in stage(card)):
                if change.key not in failed:
                    words = printed.get(change.key, "nothing, because the setting was correct before")
                    result.failures.append(f"{change}: it did not change, and nvidia-smi printed: {words}")
                    result.changes = [one for one in result.changes if one.key != change.key]
            result.pending += pending(card)

    @staticmethod
    def _without(names: list[str], result: Result) -> None:
        """Add a failure for each card that nvidia-smi has ceased to list. Its changes do not count as made."""
        result.failures += [f"{name}: nvidia-smi does not list this card any more: see dmesg" for name in names]
        result.changes = [one for one in result.changes if one.card.name not in names]

    def _do(self, change: Change) -> tuple[str, str]:
        """Make a change. Returns the failure, empty without one, and the output of nvidia-smi."""
        words = ""
        for call in change.calls:
            outcome = self._run(list(call))
            words = _words(outcome)
            if outcome.code != 0 or (change.setting in LOCKS and REFUSED.search(words)):
                return f"{change}: nvidia-smi {' '.join(call)}: {words}", words
        gpu = change.card.gpu
        if change.setting in LOCKS:
            self._clocks.remember(gpu, change.setting, tuple(change.after))
        elif change.setting == "mig_mode":
            self._clocks.forget(gpu)
        return "", words


def _refuse(problems: Iterable[Problem], cards: Iterable[Card]) -> None:
    """Raises InputError with all problems, if there are any."""
    found = [*problems, *(problem for card in cards for problem in card.problems())]
    if found:
        raise InputError(found)


def _with_modes(card: Card) -> Card:
    """The card after its modes are set. ECC waits for a reset; MIG mode usually does not."""
    wanted, gpu = card.wanted, card.gpu
    if wanted.ecc is not None and card.ecc_next is not None:
        gpu = replace(gpu, ecc=replace(gpu.ecc, pending=_mode(wanted.ecc)))
    if wanted.mig_mode is not None and card.changes_mode:
        mode = _mode(wanted.mig_mode)
        return replace(card, gpu=replace(gpu, mig_mode=mode, mig_mode_pending=mode), instances=(), locked=NOTHING)
    return replace(card, gpu=gpu)


def _mode(on: bool) -> str:
    return "enabled" if on else "disabled"


def _words(outcome: Outcome) -> str:
    output = " ".join(f"{outcome.stdout} {outcome.stderr}".split())
    return outcome.message or output or f"it ended with status {outcome.code} and printed nothing"
