# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible's markup of descriptions, such as O(name) and V(true), as wrapped Markdown.

Ansible's own parser reads the markup. Its Markdown renderer is not used: it escapes every dot and hyphen, which is hard
to read in a terminal.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable

from antsibull_docs_parser import dom, parser

WIDTH = 120

SPACE = "\x00"
"""Stands for a space inside code, where no line must break: a line that begins with a hyphen would begin a list."""

SPECIAL = re.compile(r"([\\*\[\]<])")
"""Characters that Markdown would read as emphasis, a link or HTML."""

LIST_LIKE = re.compile(r"^([-+>#]|\d+(?=[.)]))(?=\s|[.)]|$)", re.MULTILINE)
"""Characters at the start of a line that Markdown would read as a list, a quotation or a heading."""

Page = Callable[[str, str], str]
"""Returns the page of a plugin, by its type and full name: relative to the page with the link; empty for no page."""


def escaped(text: str) -> str:
    """Text with escapes, so that Markdown shows it unchanged."""
    return SPECIAL.sub(r"\\\1", text)


def code(text: str) -> str:
    """Text in backticks, also if the text has backticks."""
    fence = "``" if "`" in text else "`"
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text}{pad}{fence}".replace(" ", SPACE)


def plugin(name: str, kind: str, page: Page) -> str:
    """The name of a plugin, linked where the plugin has a page."""
    target = page(kind, name)
    return f"[{code(name)}]({target})" if target else code(name)


def part(item: dom.AnyPart, page: Page) -> str:
    """One piece of a paragraph as Markdown. Raises ValueError for markup that Ansible cannot read."""
    match item:
        case dom.TextPart():
            return escaped(item.text)
        case dom.CodePart():
            return code(item.text)
        case dom.OptionValuePart():
            return code(item.value)
        case dom.EnvVariablePart():
            return code(item.name)
        case dom.OptionNamePart() | dom.ReturnValuePart():
            return code(item.name if item.value is None else f"{item.name}={item.value}")
        case dom.ModulePart():
            return plugin(item.fqcn, "module", page)
        case dom.PluginPart():
            return plugin(item.plugin.fqcn, item.plugin.type, page)
        case dom.BoldPart():
            return f"**{escaped(item.text)}**"
        case dom.ItalicPart():
            return f"*{escaped(item.text)}*"
        case dom.LinkPart():
            return f"[{item.text}]({item.url})"
        case dom.URLPart():
            return f"<{item.url}>"
        case dom.ErrorPart():
            raise ValueError(item.message)
    return ""


def paragraph(text: str, page: Page) -> str:
    """A description as Markdown in one line. Raises ValueError for markup that Ansible cannot read."""
    (parts,) = parser.parse([text], parser.Context(), whitespace=parser.Whitespace.STRIP)
    return "".join(part(item, page) for item in parts).strip()


def wrap(text: str, first: str = "", rest: str = "") -> str:
    """Lines of at most WIDTH characters; the first line begins with `first`, all others with `rest`."""
    width = WIDTH - max(len(first), len(rest))
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    safe = [LIST_LIKE.sub(r"\\\1", line) if number else line for number, line in enumerate(lines)]
    # Escape the character after a number, not the number.
    safe = [re.sub(r"^\\(\d+)([.)])", r"\1\\\2", line) for line in safe]
    return "\n".join((rest if number else first) + line for number, line in enumerate(safe)).replace(SPACE, " ")
