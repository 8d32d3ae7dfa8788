# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes files of variables with comments, as YAML. Private to the collection. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from .finding import Variable

WIDTH = 120

HEADER = "Written by baremetal.inference.discover. From now on, the file is yours: no later run changes it."


def comment(text: str, indent: str = "") -> str:
    """A text as lines of comments."""
    lines = textwrap.wrap(text, WIDTH - len(indent) - 2, break_long_words=False, break_on_hyphens=False)
    return "".join(f"{indent}# {line}\n" for line in lines)


def value(content: Mapping[str, Any]) -> str:
    """Variables as YAML, in their order. A list in a mapping is indented, as linters want."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Indents lists in mappings."""

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
            return super().increase_indent(flow, False)

    return str(yaml.dump(dict(content), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=WIDTH))


def scalar(given: str) -> str:
    """A text as YAML, in quotes if YAML would read a number, a date or a truth value."""
    return value({"text": given}).removeprefix("text: ").rstrip("\n")


def variables(found: Iterable[Variable]) -> str:
    """Variables, each with its reason as a comment."""
    return "\n".join(f"{comment(_sentence(one.reason))}{value({one.name: one.value})}" for one in found)


def _sentence(words: str) -> str:
    """A reason as a sentence."""
    return f"{words[:1].upper()}{words[1:]}" + ("" if words.endswith(".") else ".")


def disabled(content: Mapping[str, Any], reason: str) -> str:
    """Variables as comments, which a person enables by removing the first two characters of each line."""
    return comment(reason) + "".join(f"# {line}\n" for line in value(content).splitlines())


def file(title: str, *parts: str, header: str = HEADER) -> str:
    """A whole file: mark, title and parts, with a blank line between two parts."""
    body = "\n".join(part for part in parts if part)
    return "---\n" + comment(header) + comment(title) + ("\n" + body if body else "")
