# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of a node, in parts. All parts are read and checked before the first change. Private to the collection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core import files
from ..core.problems import Problem


class SettingsError(Exception):
    """A setting could not be made. The message says why."""


@dataclass(frozen=True)
class Change:
    """A file's text before and after; None for no file."""

    path: Path
    before: str | None
    after: str | None

    def diff(self) -> dict[str, str]:
        """The diff in Ansible's form."""
        header = {"before_header": str(self.path), "after_header": str(self.path)}
        return {**header, "before": self.before or "", "after": self.after or ""}


@dataclass
class Part:
    """A part of the settings. inspect() fills the lists; apply() is called if there are changes or orders."""

    node: Node
    options: Any
    problems: list[Problem] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    # Actions that are needed although no file differs.
    orders: list[str] = field(default_factory=list)
    # Conditions that a run waits for, or for which a reboot is due, although no file differs.
    awaits: list[str] = field(default_factory=list)

    def want(self, path: str, text: str | None) -> None:
        """Declare a file's text; None for no file."""
        full = self.node.path(path)
        before = self.node.read(path)
        if before != text:
            self.changes.append(Change(full, before, text))

    def write(self) -> None:
        """Write the files that differ."""
        for change in self.changes:
            if change.after is None:
                change.path.unlink(missing_ok=True)
            else:
                files.write(change.path, _encoded(change.after))

    def undo(self) -> None:
        """Restore the files that write() replaced."""
        for change in self.changes:
            if change.before is None:
                change.path.unlink(missing_ok=True)
            else:
                files.write(change.path, _encoded(change.before))

    def inspect(self) -> None:
        """Read the present state, check the options and plan the changes. Changes nothing."""
        raise NotImplementedError

    def apply(self) -> None:
        """Make the changes. Raises SettingsError."""
        self.write()


def _encoded(text: str) -> bytes:
    """The bytes of a text from Node.read, also those that are not UTF-8."""
    return text.encode("utf-8", errors="surrogateescape")


class Node:
    """The files and commands of the node."""

    def __init__(
        self, run: Callable[..., tuple[int, str, str]], find: Callable[[str], str | None], root: Path = Path("/")
    ) -> None:
        self.runner, self.find, self.root = run, find, root

    def path(self, path: str) -> Path:
        """The path of a file below the root."""
        return self.root / path.lstrip("/")

    def read(self, path: str) -> str | None:
        """A file's text; None if there is no file. Bytes that are not UTF-8 become surrogates."""
        try:
            return self.path(path).read_text(encoding="utf-8", errors="surrogateescape")
        except FileNotFoundError:
            return None

    def run(self, *command: str) -> tuple[int, str]:
        """Run a command. Returns exit status and output with stderr; 127 if the program is missing."""
        try:
            code, output, words = self.runner(list(command), handle_exceptions=False)
        except OSError as error:
            return 127, str(error)
        return code, (output + words).strip()

    def do(self, *command: str) -> str:
        """Run a command, and return its output. Raises SettingsError if it fails."""
        code, output = self.run(*command)
        if code:
            raise SettingsError(f"{' '.join(command)} failed ({code}): {output}")
        return output

    def show(self, unit: str, *names: str) -> dict[str, str]:
        """Properties of a unit, which may not exist. Raises SettingsError."""
        shown = self.do("systemctl", "show", "--timestamp=unix", *(f"--property={name}" for name in names), unit)
        return dict(line.split("=", 1) for line in shown.splitlines())

    def started(self, unit: str) -> int:
        """When a unit became active, in seconds since 1970; 0 if it is not active. Raises SettingsError."""
        values = self.show(unit, "ActiveState", "ActiveEnterTimestamp")
        return int(values["ActiveEnterTimestamp"].removeprefix("@")) if values["ActiveState"] == "active" else 0

    def on(self, unit: str) -> bool:
        """Whether a unit is active and enabled. Raises SettingsError."""
        return self.show(unit, "ActiveState", "UnitFileState") == {"ActiveState": "active", "UnitFileState": "enabled"}
