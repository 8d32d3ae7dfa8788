# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of a chat template with a system prompt in front. Private to the collection. Pure: nothing is rendered."""

from __future__ import annotations

from dataclasses import dataclass

from ..registry.entries import POLICIES
from .text import hidden, literal

SYSTEM = "system"
DEVELOPER = "developer"
USER = "user"

SEPARATOR = "\n\n"
"""Between the prompt and what follows it in one message: what Gemma 3's own template puts there, and what the engine
puts between system messages that it merges (vllm/renderers/hf.py, _consolidate_system_messages)."""

DEFAULT = POLICIES[0]


@dataclass(frozen=True)
class Placement:
    """Where a template takes the prompt: in a message of this role, or at the start of the first user message.

    `parts`: the template wants its content as a list of parts, never as a plain text.
    """

    role: str
    parts: bool = False


def wrap(template: str, prompt: str, policy: str, placement: Placement) -> str:
    """The template with a prologue that puts the prompt into `messages`; what follows is the template, unchanged.

    The prologue emits nothing: the engine's Jinja drops the newline after a tag (trim_blocks), so that the template
    begins at the start of a line, as it did. It is written without loops over a message's content, and sets nothing but
    plain names: by these the engine tells in which form the template wants content (vllm/renderers/hf.py,
    _iter_nodes_assign_content_item), and the answer must stay the template's own. Its names are its own, too.
    """
    place = _IN_USER if placement.role == USER else _message(placement)
    lines = [
        f"set inference_text = {literal(prompt)}",
        "set inference_own = {}",
        *([*_UNLESS_OWN, *place, "endif"] if policy == DEFAULT else [*_TAKE_OWN, *place]),
    ]
    return "".join(f"{{%- {line} %}}\n" for line in lines) + template


_OWN_ROLES = f"[{literal(SYSTEM)}, {hidden(DEVELOPER)}]"
"""The engine turns a developer's messages into the system's unless the template's source holds that name in quotes."""

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
"""One message of both, for many templates refuse or drop a second one; what comes later in the request stays there."""

_IN_USER = (
    f"set inference_text = inference_text ~ {literal(SEPARATOR)}",
    "if not messages or messages[0].role != 'user'",
    "set messages = [{'role': 'user', 'content': ''}] + messages",
    "endif",
    "set inference_said = messages[0].content or ''",
    "if inference_said is string",
    "set inference_both = inference_text ~ inference_said",
    "elif inference_said[0].text is defined",
    # Within the first text: templates strip a part's white space, and the separator would be lost.
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
