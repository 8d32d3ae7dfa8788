# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes in an operator's input, which are collected and reported together. Private to the collection."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeGuard

CLOSE = (0.5, 0.75)
"""Least similarity of two names (difflib). The first value is for a known name that has all numbers of the other name,
the second for any other known name."""

_SECRET = re.compile(
    r"(?:^|[-_])(?:token|(?:api|access|private|secret)?key|secret|pass(?:word|wd|phrase)|credentials?)$", re.IGNORECASE
)


@dataclass(frozen=True)
class Problem:
    """One mistake: the place in the input, the key and value there, and a message that says what to do."""

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
    """The results of a check: problems, which are refused, and warnings."""

    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def problem(self, where: str, message: str, key: str = "", value: object = None) -> None:
        """Add a problem."""
        self.problems.append(Problem(where, message, key, value))

    def warning(self, where: str, message: str, key: str = "", value: object = None) -> None:
        """Add a warning about input that works, but perhaps not as intended."""
        self.warnings.append(Problem(where, message, key, value))


class InputError(Exception):
    """The input has mistakes. The exception has all problems, not only the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def names_secret(key: str) -> bool:
    """Whether the value of an unknown key may be a secret, by the end of the key. No message shows such a value.

    Not for a refusal: a name such as SORT_KEY counts, too. engine/own_settings.looks_secret refuses secrets.
    """
    return bool(_SECRET.search(key))


def is_integer(value: object) -> TypeGuard[int]:
    """Whether a value is an integer. For isinstance(), True and False are integers, too."""
    return isinstance(value, int) and not isinstance(value, bool)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for an unknown name: the most similar known name; empty if none is similar.

    With the cutoff of 0.5, a four-letter name with one wrong letter still matches. A number has no similar name. A name
    with other numbers must be more similar: fp8 is not what fp16 means.
    """
    if not name.strip("-+.0123456789"):
        return ""
    close = difflib.get_close_matches(name, sorted(known), n=5, cutoff=CLOSE[0])
    alike = difflib.get_close_matches(name, close, n=1, cutoff=CLOSE[1])
    found = alike or [one for one in close if _numbers(one) >= _numbers(name)]
    return f"did you mean {found[0]!r}?" if found else ""


def _numbers(name: str) -> set[str]:
    return set(re.findall(r"\d+", name))


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for an unknown name: the most similar known name, and a list of all known names."""
    names = sorted(known)
    if not names:
        return "none is defined"
    return f"{did_you_mean(name, names)} known: {', '.join(names)}".lstrip()
