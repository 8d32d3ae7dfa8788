# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cleans a system prompt, and writes it as a literal in a template. Private to the collection."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[A-Za-z0-9 .,:;!?()/*+=@_-]")
"""Characters that need no escape in a literal."""


def clean(prompt: str) -> str:
    """The prompt without white space around it, because many templates strip it, and all must give the same bytes.

    Raises ValueError if the prompt is empty or not Unicode text.
    """
    stripped = prompt.strip()
    if not stripped:
        raise ValueError("is empty: write the prompt, or remove the key")
    try:
        stripped.encode()
    except UnicodeEncodeError as error:
        code = ord(stripped[error.start])
        raise ValueError(f"contains half a character (U+{code:04X}) at position {error.start}: remove it") from None
    return stripped


def literal(text: str) -> str:
    """A Jinja expression for exactly this text.

    Jinja converts line endings to newlines, then reads a literal by Python's unicode-escape (jinja2/lexer.py,
    Lexer.wrap). So other characters than plain ones are escaped.

    Escapes also hide the prompt from engine and transformers, which search a template's source for the quoted name of
    the developer role, and for tags such as generation (vllm/renderers/hf.py, _detect_developer_role_support;
    chat_template_utils.py, render_jinja_template).
    """
    return '"' + "".join(char if _PLAIN.match(char) else _escape(ord(char)) for char in text) + '"'


def hidden(word: str) -> str:
    """A Jinja expression for a word, which a search of the template's source does not find."""
    return f'"{_escape(ord(word[0]))}{word[1:]}"'


def _escape(code: int) -> str:
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
