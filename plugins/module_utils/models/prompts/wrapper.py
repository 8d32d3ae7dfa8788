# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes a system prompt in front of a chat template. Private to the collection. Pure: renders nothing."""

from __future__ import annotations

from dataclasses import dataclass

from ..registry.entries import POLICIES
from .text import hidden, literal

SYSTEM = "system"
DEVELOPER = "developer"
USER = "user"

SEPARATOR = "\n\n"
"""Text between the prompt and the rest of a message. Gemma 3's own template uses the same text, and so does the engine
when it merges system messages (vllm/renderers/hf.py, _consolidate_system_messages)."""

DEFAULT = POLICIES[0]


@dataclass(frozen=True)
class Placement:
    """The place of the prompt: in a message of this role, or for role user at the start of the first user message.

    `parts`: the template accepts content only as a list of parts, not as a plain text.
    """

    role: str
    parts: bool = False


def wrap(template: str, prompt: str, policy: str, placement: Placement) -> str:
    """The unchanged template after a prologue that puts the prompt into `messages`.

    The prologue prints nothing: the engine's Jinja drops the newline after a tag (trim_blocks), so the template starts
    at the start of a line, as before.

    The prologue has no loops over a message's content, and assigns only plain names. The engine finds by loops and
    assignments in which form a template wants content (vllm/renderers/hf.py, _iter_nodes_assign_content_item), and the
    prologue must not change the result. The prologue's own variables start with inference_.
    """
    place = _IN_USER if placement.role == USER else _message(placement)
    lines = [
        f"set inference_text = {literal(prompt)}",
        "set inference_own = {}",
        *([*_UNLESS_OWN, *place, "endif"] if policy == DEFAULT else [*_TAKE_OWN, *place]),
    ]
    return "".join(f"{{%- {line} %}}\n" for line in lines) + template


_OWN_ROLES = f"[{literal(SYSTEM)}, {hidden(DEVELOPER)}]"
"""`developer` is hidden: if a template's source contains the quoted name, the engine no longer converts a developer's
messages to system messages."""

_UNLESS_OWN = (f"if not messages | selectattr('role', 'in', {_OWN_ROLES}) | list",)

_TAKE_OWN = (
    f"if messages[0].role in {_OWN_ROLES}",
    "set inference_own = messages[0]",
    "set inference_theirs = inference_own.content or ''",
    # A system message has only parts of text (OpenAI's API reference, chat completions).
    "if inference_theirs is not string",
    "set inference_theirs = inference_theirs | selectattr('text', 'defined') | map(attribute='text') | join('\\n')",
    "endif",
    f"set inference_text = [inference_text, inference_theirs] | select | join({literal(SEPARATOR)})",
    "set messages = messages[1:]",
    "endif",
)
"""Joins prompt and the request's own message, because many templates refuse or drop a second system message. Later
system messages in the request stay."""

_IN_USER = (
    f"set inference_text = inference_text ~ {literal(SEPARATOR)}",
    "if not messages or messages[0].role != 'user'",
    "set messages = [{'role': 'user', 'content': ''}] + messages",
    "endif",
    "set inference_said = messages[0].content or ''",
    "if inference_said is string",
    "set inference_both = inference_text ~ inference_said",
    "elif inference_said[0].text is defined",
    # Into the first text, because templates strip the white space of a part, and the separator would be lost.
    "set inference_both = [dict(inference_said[0], text=inference_text ~ inference_said[0].text)] + inference_said[1:]",
    "else",
    "set inference_both = [{'type': 'text', 'text': inference_text}] + inference_said",
    "endif",
    "set messages = [dict(messages[0], content=inference_both)] + messages[1:]",
)


def _message(placement: Placement) -> tuple[str, ...]:
    role = hidden(DEVELOPER) if placement.role == DEVELOPER else literal(placement.role)
    content = "[{'type': 'text', 'text': inference_text}]" if placement.parts else "inference_text"
    return (f"set messages = [dict(inference_own, role={role}, content={content})] + messages",)
