# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the discovery reports: variables with reasons, findings, and questions for a person. Private to the
collection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Variable:
    """A proposed variable of the inventory, with the reason as a comment."""

    name: str
    value: Any
    reason: str


@dataclass(frozen=True)
class Question:
    """A question that only a person can answer. The playbook site refuses to run while the question is open."""

    variable: str
    """The variable to set, or a short word for the topic."""
    where: str
    """The file in which to set the variable."""
    text: str

    def __str__(self) -> str:
        return f"{self.variable} ({self.where}): {self.text}"


@dataclass
class Proposal:
    """A part of the inventory: variables, what a person must know, and what only a person can answer."""

    variables: list[Variable] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)

    def add(self, name: str, value: Any, reason: str) -> None:
        """Propose a variable."""
        self.variables.append(Variable(name, value, reason))

    def ask(self, variable: str, where: str, text: str) -> None:
        """Leave a question to a person."""
        self.questions.append(Question(variable, where, text))

    def merge(self, other: Proposal) -> None:
        """Add everything of another proposal."""
        self.variables += other.variables
        self.findings += other.findings
        self.questions += other.questions
