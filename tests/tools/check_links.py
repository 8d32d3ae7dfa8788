#!/usr/bin/env python3
# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks that links of guides lead to existing files and headings, and that code and roles name existing guides.

Existing checkers need Node.js, or use the network. Links to other sites are not checked.
"""

from __future__ import annotations

import functools
import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]

GUIDES = ("*.md", "docs/**/*.md", "roles/*/README.md", "inventories/*/README.md")
"""Files whose links are checked."""

NAMED = re.compile(r"(?<![\w/.-])docs/[\w./-]+\.md(?:#[\w-]+)?")
"""A guide that code, a role, a playbook or an alert names."""

OUTSIDE = re.compile(r"^[a-z][a-z+.-]*:")
"""The scheme of an address, such as https: or mailto:."""


def slug(heading: str) -> str:
    """The anchor that GitHub and Galaxy give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def shown(token: Token) -> str:
    """The text of a heading without its markup."""
    return "".join(child.content for child in token.children or [] if child.type in ("text", "code_inline"))


def parse(text: str) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(text)


def anchors(text: str) -> set[str]:
    """The anchors of a page: of its headings, with numbers for equal headings, and of its HTML."""
    found: set[str] = set()
    tokens = parse(text)
    for token, inline in itertools.pairwise(tokens):
        if token.type != "heading_open":
            continue
        name = base = slug(shown(inline))
        number = 0
        while name in found:
            number += 1
            name = f"{base}-{number}"
        found.add(name)
    return found | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


@functools.cache
def anchors_of(file: Path) -> set[str]:
    """The anchors of a file, read once."""
    return anchors(file.read_text(encoding="utf-8"))


def links(text: str) -> Iterator[tuple[int, str]]:
    """The line of the block, and the target, of each link and image."""
    for token in parse(text):
        for child in token.children or []:
            target = child.attrGet("href") or child.attrGet("src")
            if target is not None:
                yield (token.map or [0])[0] + 1, str(target)


def fault(source: Path, target: str, root: Path) -> str:
    """The reason why a link is wrong; empty for a right link."""
    path, _, anchor = target.partition("#")
    file = (source.parent / path).resolve() if path else source
    if not file.is_relative_to(root):
        return f"{target}: lies outside of the collection"
    if not file.exists():
        return f"{target}: there is no file {file.relative_to(root)}"
    if anchor and anchor not in anchors_of(file):
        return f"{target}: {file.relative_to(root)} has no heading #{anchor}"
    return ""


def broken(file: Path, root: Path) -> list[str]:
    """The wrong links of one guide."""
    found = []
    for line, target in links(file.read_text(encoding="utf-8")):
        reason = "" if OUTSIDE.match(target) else fault(file, target, root)
        found += [f"{file.relative_to(root)}:{line}: {reason}"] if reason else []
    return found


def misnamed(file: Path, root: Path) -> list[str]:
    """The missing guides that a file names."""
    found = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        reasons = [fault(root / "README.md", target, root) for target in NAMED.findall(line)]
        found += [f"{file.relative_to(root)}:{number}: {reason}" for reason in reasons if reason]
    return found


def main() -> int:
    guides = sorted({file for pattern in GUIDES for file in ROOT.glob(pattern)})
    listed = subprocess.run(
        ["git", "ls-files", "plugins", "roles", "playbooks", "inventories", "changelogs", "molecule"],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout.splitlines()
    texts = [ROOT / name for name in listed if name.endswith((".py", ".yml", ".md", ".j2", ".lua"))]
    problems = [text for file in guides for text in broken(file, ROOT)]
    problems += [text for file in texts if file.is_file() and not file.is_symlink() for text in misnamed(file, ROOT)]
    print("\n".join(problems), file=sys.stderr) if problems else None
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
