# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the place for a system prompt in a chat template by rendering it. Private to the collection.

There is no list of models: each template is rendered with test messages, and the changed template is tried before any
engine serves it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .rendering import Message, Render, RenderError
from .wrapper import DEFAULT, DEVELOPER, SYSTEM, USER, Placement, wrap

PLACEMENTS = (
    Placement(SYSTEM),
    Placement(SYSTEM, parts=True),
    Placement(DEVELOPER),
    Placement(DEVELOPER, parts=True),
    Placement(USER),
)
"""Places in the order in which they are tried: an own role before the user's message, a plain text before parts."""

# With characters that change if a template prints a list of parts, or converts a text to JSON.
_SYSTEM_TEXT = 'probe: the system\'s\n"words" \\ {{ as }} they are'
_USER_TEXT = 'probe: the user\'s\n"words" \\ {{ as }} they are'
_ANSWER_TEXT = "probe: the answer"

_TOOL = {
    "type": "function",
    "function": {
        "name": "probe_tool",
        "description": "A probe",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
_CALL = {"id": "call00001", "type": "function", "function": {"name": "probe_tool", "arguments": {"city": "Ulm"}}}


class WrapError(ValueError):
    """A template cannot contain a system prompt; the message says why."""


def wrap_and_try(template: str, prompt: str, policy: str, render: Render) -> tuple[str, Placement]:
    """The changed template, and the place of the prompt: the first place without a fault.

    Raises WrapError if every place changes, loses or misplaces this prompt or a message, and for a template that
    renders no message of a user.
    """
    users = _user_messages(template, render)
    for placement in PLACEMENTS:
        if not _takes(template, placement, users[0], render):
            continue
        wrapped = wrap(template, prompt, policy, placement)
        fault = next(
            (fault for user in users if (fault := _fault(template, wrapped, prompt, policy, user, render))), ""
        )
        if not fault:
            return wrapped, placement
    raise WrapError(fault)  # `fault` is set, because the last place is always tried.


def _takes(template: str, placement: Placement, user: Message, render: Render) -> bool:
    """Whether a template writes a message of the placement's role unchanged and before the user's message.

    A placement in the user's message is always possible.
    """
    if placement.role == USER:
        return True
    # A template may write any role, but a model that was not trained with this role would not follow it.
    if placement.role == DEVELOPER and not _supports_developer(template):
        return False
    message = {"role": placement.role, "content": _content(_SYSTEM_TEXT, placement.parts)}
    text = _rendered(template, render, [message, user])
    return text is not None and 0 <= text.find(_SYSTEM_TEXT) < text.find(_USER_TEXT)


def _supports_developer(template: str) -> bool:
    """Whether a template supports the role developer, by the engine's rule (vllm/renderers/hf.py,
    _detect_developer_role_support)."""
    return any(f"{quote}{DEVELOPER}{quote}" in template for quote in "'\"")


def _user_messages(template: str, render: Render) -> list[Message]:
    """A user's message in each form that the template accepts. Raises WrapError if it accepts none."""
    reason = "it leaves out the user's text"
    messages: list[Message] = []
    for parts in (False, True):
        message = {"role": "user", "content": _content(_USER_TEXT, parts)}
        try:
            if _USER_TEXT in render(template, [message], None):
                messages.append(message)
        except RenderError as error:
            reason = str(error)
    if not messages:
        raise WrapError(f"does not render a single message of a user: {reason}")
    return messages


def _fault(template: str, wrapped: str, prompt: str, policy: str, user: Message, render: Render) -> str:
    """The fault of the changed template, compared with the original; empty without one."""
    for what, messages, tools in _conversations(user):
        if _rendered(template, render, messages, tools) is None:
            continue
        text = _rendered(wrapped, render, messages, tools)
        if text is None or prompt not in text or _USER_TEXT not in text:
            return f"does not take the prompt as it is with {what}"
    parts = not isinstance(user["content"], str)
    for role in (SYSTEM, DEVELOPER):
        own = [{"role": role, "content": _content(_SYSTEM_TEXT, parts)}, user]
        before, after = _rendered(template, render, own), _rendered(wrapped, render, own)
        if policy == DEFAULT and before != after:
            return f"changes a request that has its own {role} message"
        if policy != DEFAULT and (after is None or not 0 <= after.find(prompt) < after.find(_SYSTEM_TEXT)):
            return f"does not take a request's own {role} message after the prompt"
    return ""


def _conversations(user: Message) -> Iterator[tuple[str, Sequence[Message], Sequence[Mapping[str, Any]] | None]]:
    """Requests without their own system prompt: name, messages and tools."""
    answer = {"role": "assistant", "content": _ANSWER_TEXT}
    call = {"role": "assistant", "content": "", "tool_calls": [_CALL]}
    result = {"role": "tool", "tool_call_id": _CALL["id"], "name": "probe_tool", "content": "probe: rain"}
    yield "a question", [user], None
    yield "a second question", [user, answer, user], None
    yield "tools", [user], [_TOOL]
    yield "a tool's result", [user, call, result], [_TOOL]
    if not isinstance(user["content"], str):
        # Some templates refuse a system message together with a picture.
        yield "a picture", [{**user, "content": [{"type": "image"}, *user["content"]]}], None


def _rendered(
    template: str, render: Render, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None
) -> str | None:
    """The rendered text; None if the template refuses the messages."""
    try:
        return render(template, messages, tools)
    except RenderError:
        return None


def _content(text: str, parts: bool) -> Any:
    return [{"type": "text", "text": text}] if parts else text
