# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guides as the tests of this directory read them, and the code that guides are compared with."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]

GUIDES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "roles").glob("*/README.md")),
)
"""Pages that people write. The pages of docs/reference are made from the code."""

FENCED = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
"""A block between fences: its language, and its text."""


def spans(text: str) -> Iterator[str]:
    """Words between backquotes. A span may continue in the next line."""
    for words in re.findall(r"`([^`]+)`", FENCED.sub("", text)):
        yield re.sub(r"\s+", " ", words)


def lines(text: str) -> Iterator[str]:
    """Lines of console blocks that have a prompt, without prompt and comment. Continued lines are one line."""
    for language, block in FENCED.findall(text):
        for line in block.replace("\\\n", " ").splitlines() if language == "console" else ():
            if (found := re.match(r" *[$#] (.*)", line)) is not None:
                yield re.split(r"\s+# ", found[1])[0].strip()


def parts(line: str) -> Iterator[str]:
    """The commands of a line that `;`, `&&` or `|` connect."""
    lexer = shlex.shlex(line, posix=False, punctuation_chars=";|&")
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    for word in (*lexer, ";"):
        if set(word) <= set(";|&"):
            yield " ".join(words)
            words = []
        else:
            words.append(word)


def inner(command: str) -> str:
    """The command that ssh, sudo or ansible runs, or the command itself."""
    if (found := re.match(r"ansible .* -a '(inferctl [^']*)'", command)) is not None:
        return found[1]
    return command.removeprefix("ssh admin@NODE ").removeprefix("sudo ")


@functools.cache
def commands() -> tuple[tuple[str, str], ...]:
    """Place and text of each command that a guide shows, in a block or between backquotes."""
    found = []
    for file in GUIDES:
        text = file.read_text(encoding="utf-8")
        shown = (*lines(text), *(words for words in spans(text) if re.match(r"[\w./-]+ |baremetal\.", words)))
        for line in shown:
            try:
                found += [(str(file.relative_to(ROOT)), inner(part)) for part in parts(line)]
            except ValueError:  # No command: words with an apostrophe, or the beginning of a message.
                continue
    return tuple(found)


def shown(program: str) -> Iterator[tuple[str, str]]:
    """Place and text of each command of a program."""
    return (each for each in commands() if re.match(program, each[1]))


@functools.cache
def code() -> str:
    """The text of all files of plugins, roles and playbooks, without guides."""
    files = [file for folder in ("plugins", "roles", "playbooks") for file in sorted((ROOT / folder).rglob("*"))]
    read = [file.read_bytes() for file in files if file.is_file() and file.suffix not in (".md", ".pyc")]
    return "\n".join(each.decode(errors="replace") for each in read)


@functools.cache
def code_words() -> frozenset[str]:
    """All words of code(). A search of the whole text for each word of the guides would take a minute."""
    return frozenset(re.findall(r"\w+", code()))
