# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Masks secrets in texts for bundles and evidence, and leaves prompts out. Private to the collection; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from ..engine import environment

LEFT_OUT = "(left out)"

PROMPT_KEY = r"(?:system[-_])?prompts?(?:_token_ids)?|messages|content"
"""Names of texts from clients or operators, in the log of an engine and in the model registry. Source:
vllm/entrypoints/logger.py, RequestLogger; OpenAI's API."""

PROMPT = re.compile(rf"(?i)((?:{PROMPT_KEY})['\"]?\s*[:=]).*")

_PROMPT_KEY = re.compile(rf"(?i)(?:(?:golden|warm[-_]up)[-_])?(?:{PROMPT_KEY})|order")
"""Keys of a document that have prompts. `order` has further texts of a golden prompt."""

SECRET_KEY = (
    r"(?:pass(?:word|wd|phrase)|secret|(?:api|access|private|auth)[-_]?key|credentials?"
    r"|(?<![A-Za-z])token|(?<=[a-z])(?-i:Token))"
)
"""Names of secret values. `token` counts only as the last word of a name, as in `hub_token` and `accessToken`:
`max_tokens` and `tokenizer` are needed for support."""

_SECRET_KEY = re.compile(rf"(?i).*{SECRET_KEY}")

_VALUE = r"(?:\"(?:[^\"\\\n]|\\.)*\"?|'[^'\n]*'?|[^\s'\",;&\]}]+)"
"""The value after such a name, with or without quotes. A quote without its end reaches to the end of the line."""

PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    # The messages of a swap quote golden prompts.
    (re.compile(r"(golden prompt )(?:'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")"), rf"\1{LEFT_OUT}"),
    (re.compile(r"(?i)((?:authorization|cookie)['\"]?\s*[:=]\s*['\"]?)[^'\"\r\n]+"), r"\1***"),
    # Passwords in addresses, also with a raw / or @, and addresses that are secret as a whole.
    (re.compile(r"(://)[^/\s:@'\"]*:[^\s'\"]{0,500}@"), r"\1***@"),
    (re.compile(r"(?i)(https?://hooks\.[^/\s'\"]+/)[^\s'\"]+"), r"\1***"),
    (re.compile(r"(?i)([?&](?:[a-z0-9-]+[-_])?(?:token|key|sig|signature|secret|password)=)[^&\s'\"]+"), r"\1***"),
    (re.compile(rf"(?i)({SECRET_KEY}['\"]?\s*[:=]\s*\[?\s*){_VALUE}"), r"\1***"),
    (re.compile(rf"(?i)(--(?:[a-z0-9-]+-)?(?:password|secret|token|api-key)\s+){_VALUE}"), r"\1***"),
    # Secrets with a known form: tokens of GitHub, Slack, AWS, OpenAI and compatible services, JSON Web Tokens.
    (re.compile(r"\b(?:gh[pousr]_|github_pat_|xox[abprs]-|AKIA|sk-)[A-Za-z0-9_-]{16,}"), "***"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"), "***"),
    (re.compile(r"(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"), r"\1 ***"),
)


def text(given: str, secrets: Sequence[str]) -> str:
    """A text without secrets and prompts. Masks the given secrets, and those that a pattern finds."""
    given = "\n".join(PROMPT.sub(rf"\1 {LEFT_OUT}", line) for line in given.splitlines())
    given = environment.mask(given, secrets)
    for pattern, masked in PATTERNS:
        given = pattern.sub(masked, given)
    return given + "\n" if given else ""


def document(given: str, secrets: Sequence[str]) -> str:
    """A JSON document without secrets and prompts. It stays valid JSON. A damaged document is handled as a text."""
    try:
        value = json.loads(given)
    except ValueError:
        return text(given, secrets)
    return json.dumps(_value(value, secrets), indent=2) + "\n"


def variables(given: str) -> str:
    """An environment file with the names of its variables, without values."""
    lines = (line.partition("=") for line in given.splitlines())
    return "".join(f"{name}{equals}{'***' if equals else ''}\n" for name, equals, _rest in lines)


def _value(value: Any, secrets: Sequence[str]) -> Any:
    if isinstance(value, dict):
        return {key: _entry(key, one, secrets) for key, one in value.items()}
    if isinstance(value, list):
        return [_value(one, secrets) for one in value]
    return text(value, secrets).removesuffix("\n") if isinstance(value, str) else value


def _entry(key: str, value: Any, secrets: Sequence[str]) -> Any:
    if value and isinstance(value, str | list) and _PROMPT_KEY.fullmatch(key):
        return LEFT_OUT
    if _SECRET_KEY.fullmatch(key):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if number or (value and isinstance(value, str | list | dict)):
            return "***"
    # Docker shows the environment of a container in this form.
    if key == "Env" and isinstance(value, list):
        return [f"{str(one).partition('=')[0]}=***" for one in value]
    return _value(value, secrets)
