# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chat templates in the styles of model families, made up for these tests, and where each takes a prompt."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.models.prompts.wrapper import Placement

# Each role has the same header. With neither a system message nor tools, there is a default text. Tools are JSON.
CHATML = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- 'Tools:' }}
    {%- for tool in tools %}
        {{- '\\n' + (tool | tojson) }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- else %}
    {%- if messages[0].role == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>system\\nYou are helpful.<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if message.role == 'user' and ns.last == messages|length - 1 %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' + message.content }}
        {%- for call in message.tool_calls or [] %}
            {{- '\\n<call>' + call.function.name + ' ' + (call.function.arguments | tojson) + '</call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {{- '<|im_start|>user\\n<result>' + message.content + '</result><|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

# Begins with a newline. Takes the first system message out of the list, strips it, and writes the date before it.
HEADERS = """

{{- bos_token }}
{%- if not date is defined %}
    {%- set date = strftime_now("%d %b %Y") %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|head|>system<|end|>\\n\\nToday: " + date + "\\n\\n" + system_message + "<|eot|>" }}
{%- for message in messages %}
    {%- if 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("One call at a time!") }}
        {%- endif %}
        {{- '<|head|>assistant<|end|>\\n\\n' + (message.tool_calls[0].function | tojson) + '<|eot|>' }}
    {%- else %}
        {{- '<|head|>' + message['role'] + '<|end|>\\n\\n' + message['content'] | trim + '<|eot|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|head|>assistant<|end|>\\n\\n' }}{%- endif %}
"""

# One line; white space between its tags counts.
PIPES = (
    "{% for message in messages %}{% if message['role'] == 'system' %}"
    "{{'<|system|>\\n' + message['content'] + '<|end|>\\n'}}"
    "{% elif message['role'] == 'user' %}{{'<|user|>\\n' + message['content'] + '<|end|>\\n'}}"
    "{% elif message['role'] == 'assistant' %}{% generation %}{{message['content'] + '<|end|>\\n'}}{% endgeneration %}"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}"
)

# As PIPES, but the template leaves the system's text out, and raises no error.
WITHOUT_SYSTEM = PIPES.replace("message['role'] == 'system'", "message['role'] == 'nobody'")

# No system message, and the roles must alternate.
TURNS = """\
{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}
{% for message in messages %}
{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('Roles must alternate: user, assistant, user') }}
{% endif %}
<start>{{ 'model' if message['role'] == 'assistant' else message['role'] }}
{{ message['content'] | trim }}<end>
{% endfor %}
{% if add_generation_prompt %}
<start>model
{% endif %}
"""

# As TURNS, but the content is a text, or parts with pictures. Each part is stripped.
TURNS_PARTS = TURNS.replace(
    "{{ message['content'] | trim }}",
    "{% if message['content'] is string %}{{ message['content'] | trim }}{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] | trim }}{% endif %}{% endfor %}{% endif %}",
)

# The text of the system message goes to the start of the next message.
FOLDED = """\
{%- if messages[0].role == 'system' -%}
    {%- set prefix = messages[0].content if messages[0].content is string else messages[0].content[0].text -%}
    {%- set prefix = prefix + '\\n\\n' -%}
    {%- set turns = messages[1:] -%}
{%- else -%}
    {%- set prefix = '' -%}
    {%- set turns = messages -%}
{%- endif -%}
{%- for message in turns -%}
    {{ '<start>' + message.role + '\\n' + (prefix if loop.first else '') }}
    {%- if message.content is string -%}
        {{ message.content | trim }}
    {%- else -%}
        {%- for part in message.content -%}
            {{ '<image>' if part.type == 'image' else part.text | trim }}
        {%- endfor -%}
    {%- endif -%}
    {{ '<end>\\n' }}
{%- endfor -%}
"""

# The content must be parts: the template reads a plain text letter by letter, and prints nothing of it.
PARTS = (
    "{% macro say(parts) %}{% for part in parts %}{% if part.type == 'image' %}<image>{% elif part.type == 'text' %}"
    "{{ part.text }}{% endif %}{% endfor %}{% endmacro %}"
    "{% for message in messages %}[{{ message.role }}]{{ say(message.content) }}{% endfor %}[assistant]"
)

# A message of the system or of the developer is refused anywhere but in front.
STRICT = """\
{%- for message in messages %}
    {%- if message.role in ['system', 'developer'] and not loop.first %}
        {{- raise_exception('System message must be at the beginning.') }}
    {%- endif %}
    {{- '<' + message.role + '>' + message.content }}
{%- endfor %}
"""

# Accepts a developer's message, and no system message.
DEVELOPER = """\
{%- for message in messages %}
    {%- if message.role not in ["developer", "user", "assistant"] %}{{ raise_exception('No such role') }}{% endif %}
    {{- '<' + message.role + '>' + message.content }}
{%- endfor %}
"""

# A system message in a chat with a picture is refused.
PICTURES_WITHOUT_SYSTEM = """\
{%- for message in messages %}
    {%- for part in message.content if message.content is not string and part.type == 'image' %}
        {%- if messages[0].role == 'system' %}{{ raise_exception('No pictures with a system message') }}{% endif %}
    {%- endfor %}
    {{- '<' + message.role + '>' }}
    {%- if message.content is string %}{{ message.content }}{% else %}
    {%- for part in message.content %}{{ '<image>' if part.type == 'image' else part.text }}{% endfor %}{% endif %}
{%- endfor %}
"""

STYLES = {
    "chatml": (CHATML, Placement("system")),
    "headers": (HEADERS, Placement("system")),
    "pipes": (PIPES, Placement("system")),
    "without system": (WITHOUT_SYSTEM, Placement("user")),
    "turns": (TURNS, Placement("user")),
    "turns of parts": (TURNS_PARTS, Placement("user")),
    "folded": (FOLDED, Placement("system")),
    "parts": (PARTS, Placement("system", parts=True)),
    "strict": (STRICT, Placement("system")),
    "pictures without system": (PICTURES_WITHOUT_SYSTEM, Placement("user")),
    "developer": (DEVELOPER, Placement("developer")),
}
"""Each template, and the place that its prompt goes to."""

PROMPT = """You're the "support desk" — c'est ça, 日本 🦙.

  {{ messages }} {% raw %} {# no comment #} }} %} C:\\new\\x41 \\u0041 \r\n 'developer' "developer" {% generation %}"""


def parts(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


def say(role: str, text: str, template: str) -> dict[str, Any]:
    """A message in the form in which the engine would hand it to the template."""
    return {"role": role, "content": parts(text) if template == PARTS else text}
