# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renders a chat template as the engine does. Private to the collection. Imports Jinja only when called."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

Message = Mapping[str, Any]
Render = Callable[[str, Sequence[Message], "Sequence[Mapping[str, Any]] | None"], str]
"""From template, messages and tools (None: no tools in the request) to the text for the model. Raises RenderError."""

SPECIAL_TOKENS = ("bos_token", "eos_token", "pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
"""Keys of tokenizer_config.json that templates get as variables (transformers, special_tokens_map)."""

_NOW = datetime(2026, 1, 1)
"""The date that templates write. It is fixed, so that two renderings can be compared."""


class RenderError(Exception):
    """A template refuses the messages, or fails; the message says why."""


def renderer(variables: Mapping[str, str]) -> Render:
    """A function that renders templates with these special tokens.

    Its environment is that of transformers, which the engine calls (5.19.0, utils/chat_template_utils.py,
    _cached_compile_jinja_template). Raises ImportError without Jinja.
    """
    from jinja2 import nodes
    from jinja2.exceptions import TemplateError
    from jinja2.ext import Extension, loopcontrols
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """The tag around text that the model has written. Only its content is rendered."""

        tags = {"generation"}  # noqa: RUF012 - Jinja's own declaration

        def parse(self, parser: Parser) -> list[nodes.Node]:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    def refuse(message: str) -> None:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = _NOW.strftime
    # A template is rendered several times for each prompt; to compile the template takes most of a rendering.
    compiled = lru_cache(maxsize=32)(environment.from_string)

    def render(template: str, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None) -> str:
        try:
            return compiled(template).render(
                {**variables, "messages": list(messages), "tools": tools, "documents": None},
                add_generation_prompt=True,
            )
        except Exception as error:  # A template is a program and may raise any exception.
            raise RenderError(str(error) or type(error).__name__) from error

    return render


def special_tokens(tokenizer_config: Mapping[str, Any]) -> dict[str, str]:
    """The variables that a template gets from tokenizer_config.json."""
    found = {name: tokenizer_config.get(name) for name in SPECIAL_TOKENS}
    texts = {name: token.get("content") if isinstance(token, Mapping) else token for name, token in found.items()}
    return {name: token for name, token in texts.items() if isinstance(token, str)}


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
