# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a chat template takes a system prompt, found by rendering it. Private to the collection.

No model is known by name: a template is asked with messages, and the wrapped one is tried before anybody serves it.
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
"""In the order in which they are tried: a role for it before the user's message, a plain text before parts."""

# With what a template that prints a list of parts, or makes it JSON, would write in another way.
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
    """A template cannot carry a system prompt; the message says why."""


def wrap_and_try(template: str, prompt: str, policy: str, render: Render) -> tuple[str, Placement]:
    """The wrapped template, and where it puts the prompt: the first place with which nothing is lost or refused.

    Raises WrapError where the template takes this very prompt nowhere without changing, losing or misplacing anything.
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
    raise WrapError(fault)  # The last place is tried whatever the template is.


def _takes(template: str, placement: Placement, user: Message, render: Render) -> bool:
    """Whether a template writes what a message of this role says, as it is and before what the user says."""
    if placement.role == USER:
        return True
    # A template that writes whatever role there is would take this one, too, but its model has never seen it.
    if placement.role == DEVELOPER and not _knows_developer(template):
        return False
    message = {"role": placement.role, "content": _content(_SYSTEM_TEXT, placement.parts)}
    text = _rendered(template, render, [message, user])
    return text is not None and 0 <= text.find(_SYSTEM_TEXT) < text.find(_USER_TEXT)


def _knows_developer(template: str) -> bool:
    """As the engine tells it (vllm/renderers/hf.py, _detect_developer_role_support)."""
    return any(f"{quote}{DEVELOPER}{quote}" in template for quote in "'\"")


def _user_messages(template: str, render: Render) -> list[Message]:
    """A user's message in each form that the template takes. Raises WrapError where it takes none."""
    reason = "it leaves out what the user says"
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
    """What the wrapped template does wrong, compared with the original; empty where it does nothing wrong."""
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
            return f"does not leave a request with a {role} message of its own alone"
        if policy != DEFAULT and (after is None or not 0 <= after.find(prompt) < after.find(_SYSTEM_TEXT)):
            return f"does not take a request's own {role} message after the prompt"
    return ""


def _conversations(user: Message) -> Iterator[tuple[str, Sequence[Message], Sequence[Mapping[str, Any]] | None]]:
    """Requests without a prompt of their own: what they are, messages and tools."""
    answer = {"role": "assistant", "content": _ANSWER_TEXT}
    call = {"role": "assistant", "content": "", "tool_calls": [_CALL]}
    result = {"role": "tool", "tool_call_id": _CALL["id"], "name": "probe_tool", "content": "probe: rain"}
    yield "a question", [user], None
    yield "a second question", [user, answer, user], None
    yield "tools", [user], [_TOOL]
    yield "a tool's result", [user, call, result], [_TOOL]
    if not isinstance(user["content"], str):
        # Some templates take no system message beside a picture.
        yield "a picture", [{**user, "content": [{"type": "image"}, *user["content"]]}], None


def _rendered(
    template: str, render: Render, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None
) -> str | None:
    """None where the template refuses."""
    try:
        return render(template, messages, tools)
    except RenderError:
        return None


def _content(text: str, parts: bool) -> Any:
    return [{"type": "text", "text": text}] if parts else text
