# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A system prompt as text, and as a literal in a template. Private to the collection."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[A-Za-z0-9 .,:;!?()/*+=@_-]")
"""Characters that mean the same in a literal, in Jinja, and to a search of a template's source."""


def clean(prompt: str) -> str:
    """The prompt without white space around it: many templates strip it, and all must give the same bytes.

    Raises ValueError where nothing is left, or where it is no Unicode text.
    """
    stripped = prompt.strip()
    if not stripped:
        raise ValueError("is empty: write the prompt, or remove the key")
    try:
        stripped.encode()
    except UnicodeEncodeError as error:
        code = ord(stripped[error.start])
        raise ValueError(f"holds half a character (U+{code:04X}) at position {error.start}: remove it") from None
    return stripped


def literal(text: str) -> str:
    """A Jinja expression for exactly this text.

    Jinja reads a literal by Python's unicode-escape (jinja2/lexer.py, Lexer.wrap) after it has made every line ending a
    newline. All that is not plain is escaped, for another reason as well: engine and transformers search the source of
    a template for the quoted name of the developer role and for tags such as generation, and what a prompt says must
    not be found (vllm/renderers/hf.py, _detect_developer_role_support; chat_template_utils.py, render_jinja_template).
    """
    return '"' + "".join(char if _PLAIN.match(char) else _escape(ord(char)) for char in text) + '"'


def hidden(word: str) -> str:
    """A Jinja expression for a word that a search of the template's source does not find."""
    return f'"{_escape(ord(word[0]))}{word[1:]}"'


def _escape(code: int) -> str:
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
