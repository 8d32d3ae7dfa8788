# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes in an operator's input, collected and reported all at once. Private to the collection."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


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


class InputError(Exception):
    """Raised with every problem found, never with the first one only."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a name that does not exist: the nearest known one, and all of them.

    The cutoff of 0.5 lets one wrong letter in a four-letter name still match.
    """
    names = sorted(known)
    if not names:
        return "none is defined"
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}known: {', '.join(names)}"
