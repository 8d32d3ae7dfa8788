# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds and changes the chat templates in a model's files. Private to the collection. Pure: files are given as texts.

Engine and transformers choose one of the templates, by version, and by whether a request has tools. So every template
is changed in its place, and the choice stays the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...core.problems import InputError, Problem

KEY = "chat_template"

JSON_FILES = ("chat_template.json", "processor_config.json", "tokenizer_config.json")
"""Files with the key `chat_template`: a text, or a list of named templates (transformers 5.19.0, processing_utils.py
and tokenization_utils_base.py)."""

JINJA_FILE = "chat_template.jinja"
JINJA_DIRECTORY = "additional_chat_templates/"
"""Named templates, as files NAME.jinja."""

Wrap = Callable[[str], str]
"""From a template to the changed one. Raises ValueError with the reason if this is impossible."""


def template_files(files: Iterable[str]) -> list[str]:
    """The files of a model that may contain a template."""
    return sorted(file for file in files if file in (JINJA_FILE, *JSON_FILES) or _is_named(file))


def rewrite(texts: Mapping[str, str], wrap: Wrap, where: str) -> dict[str, str]:
    """The files with templates, with each template changed by `wrap`. Other content stays.

    `texts` are the template_files. Raises InputError with every file that has a template that cannot be changed, or if
    there is no template.
    """
    rewritten: dict[str, str] = {}
    problems: list[Problem] = []
    for file, text in sorted(texts.items()):
        try:
            new = _rewrite_json(text, wrap) if file in JSON_FILES else wrap(text)
        except ValueError as error:
            problems.append(Problem(where, f"{file}: {error}"))
        else:
            if new is not None:
                rewritten[file] = new
    if not rewritten and not problems:
        problems.append(Problem(where, "the model has no chat template to put the prompt into: remove system-prompt"))
    if problems:
        raise InputError(problems)
    return rewritten


def _is_named(file: str) -> bool:
    name = file.removeprefix(JINJA_DIRECTORY)
    return name != file and "/" not in name and name.endswith(".jinja")


def _rewrite_json(text: str, wrap: Wrap) -> str | None:
    """The changed text; None if the file has no template. Raises ValueError."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON (line {error.lineno}, column {error.colno}): {error.msg}") from None
    except RecursionError:
        raise ValueError("is not JSON: it is nested too deeply") from None
    if not isinstance(data, dict) or not data.get(KEY):
        return None
    data[KEY] = _rewrite_value(data[KEY], wrap)
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def _rewrite_value(value: Any, wrap: Wrap) -> Any:
    if isinstance(value, str):
        return wrap(value)
    if isinstance(value, list) and all(isinstance(one, dict) and isinstance(one.get("template"), str) for one in value):
        return [{**one, "template": _wrap_named(str(one.get("name")), one["template"], wrap)} for one in value]
    raise ValueError(f"{KEY} is neither a text nor a list of named templates")


def _wrap_named(name: str, template: str, wrap: Wrap) -> str:
    try:
        return wrap(template)
    except ValueError as error:
        raise ValueError(f"template {name!r} {error}") from None
