# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes this collection's lines of /etc/fstab, which have a mark. Private to the collection. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

MARK = "x-inference="
"""The mark: an option of the line, followed by the name of the disk, or by nfs for a share.

mount(8) and systemd ignore unknown options that begin with ``x-``.
"""


class FstabError(Exception):
    """A line of /etc/fstab prevents the change. The message says what to do."""


@dataclass(frozen=True)
class Line:
    """A line that mounts something."""

    source: str
    path: str
    kind: str
    options: tuple[str, ...]
    check: int = 0
    """The order of the file system check at boot; 0 for no check."""

    @property
    def owner(self) -> str:
        """The disk's name in the mark, or nfs for a share; empty for a line of other origin."""
        return next((option.removeprefix(MARK) for option in self.options if option.startswith(MARK)), "")

    def __str__(self) -> str:
        return f"{self.source} {self.path} {self.kind} {','.join(self.options)} 0 {self.check}"


def parse_line(text: str) -> Line | None:
    """Parse a line; None for a comment, an empty or a damaged line."""
    words = text.split()
    if len(words) < 3 or words[0].startswith("#"):
        return None
    source, path, kind = (decode(word) for word in words[:3])
    options = tuple(words[3].split(",")) if len(words) > 3 else ("defaults",)
    check = int(words[5]) if len(words) > 5 and words[5].isdecimal() else 0
    return Line(source, path.rstrip("/") or "/", kind, options, check)


def with_line(text: str, line: Line) -> str:
    """The file's text with a line added, or with the line for the same path replaced. Raises FstabError."""
    lines = text.splitlines()
    place = None
    for number, found in enumerate(map(parse_line, lines)):
        if found is None:
            continue
        if found.path == line.path:
            if found.source != line.source and not found.owner:
                raise FstabError(
                    f"/etc/fstab, line {number + 1}, mounts {found.source} at {line.path}: remove that line"
                )
            if place is not None:
                raise FstabError(
                    f"/etc/fstab mounts something at {line.path} in the lines {place + 1} and {number + 1}: "
                    "remove the wrong one"
                )
            place = number
        elif found.source == line.source and "noauto" not in found.options:
            raise FstabError(
                f"/etc/fstab, line {number + 1}, mounts {line.source} at {found.path}: unmount it there and remove "
                f"that line, or declare {found.path}"
            )
    if place is None:
        lines.append(str(line))
    elif parse_line(lines[place]) != line:
        lines[place] = str(line)
    else:
        return text
    return "\n".join(lines) + "\n"


def undeclared(text: str, declared: Collection[str]) -> list[Line]:
    """This collection's lines whose path is no longer declared."""
    found = [parse_line(line) for line in text.splitlines()]
    return [line for line in found if line is not None and line.owner and line.path not in declared]


def decode(word: str) -> str:
    r"""A field with escapes such as \040 (a blank) replaced. Source: fstab(5), proc(5)."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), word)
