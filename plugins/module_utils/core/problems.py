# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes in an operator's input, collected and reported all at once. Private to the collection."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Problem:
    """One mistake: where it stands, what was found, and what to do about it."""

    where: str
    message: str
    key: str = ""
    value: object = None

    def __str__(self) -> str:
        found = (
            f" {self.key}: {self.value!r}:"
            if self.key and self.value is not None
            else f" {self.key}:"
            if self.key
            else ""
        )
        return f"{self.where}:{found} {self.message}"


@dataclass
class Findings:
    """What a check finds: mistakes, which are refused, and what is only warned of."""

    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def problem(self, where: str, message: str, key: str = "", value: object = None) -> None:
        """Add a mistake."""
        self.problems.append(Problem(where, message, key, value))

    def warning(self, where: str, message: str, key: str = "", value: object = None) -> None:
        """Add what works, but not as its author may think."""
        self.warnings.append(Problem(where, message, key, value))


class InputError(Exception):
    """Raised with every problem found, never with the first one only."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for a name that does not exist: the nearest known one; empty where none is near.

    The cutoff of 0.5 lets one wrong letter in a four-letter name still match.
    """
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else ""


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a name that does not exist: the nearest known one, and all of them."""
    names = sorted(known)
    if not names:
        return "none is defined"
    return f"{did_you_mean(name, names)} known: {', '.join(names)}".lstrip()
