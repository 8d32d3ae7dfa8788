# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets values in the text of a TOML file, and leaves all other lines as they are. Private to the collection.

Python reads TOML and does not write it. What the edit made is read again, and must be what was asked for.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

HEADER = re.compile(r"^\s*\[")


class TomlError(Exception):
    """The file cannot be read, or not be edited line by line; the text is for the operator."""


def set_values(text: str, values: Mapping[str, Mapping[str, Any]]) -> str:
    """The text with these values, by table and key: texts, numbers, truth values, and lists of them.

    Raises TomlError.
    """
    before = _parse(text)
    wanted = {**before, **{table: {**_table(before, table), **keys} for table, keys in values.items()}}
    lines = text.splitlines()
    for table, keys in values.items():
        for key, value in keys.items():
            if _table(before, table).get(key) != value:
                _set(lines, table, key, f"{key} = {json.dumps(value, ensure_ascii=False)}")
    after = "\n".join(lines) + "\n" if lines else ""
    if after.splitlines() == text.splitlines():
        return text
    try:
        done = _parse(after) == wanted
    except TomlError:
        done = False
    if not done:
        asked = ", ".join(f"{table}.{key}" for table, keys in values.items() for key in keys)
        raise TomlError(f"{asked} cannot be set line by line: the value spans lines, or its table is written unusually")
    return after


def _set(lines: list[str], table: str, key: str, line: str) -> None:
    """Replace the line of a key, or put it below the header of its table, which is added where there is none."""
    header = re.compile(rf"^\s*\[\s*{re.escape(table)}\s*\]\s*(?:#.*)?$")
    start = next((number for number, one in enumerate(lines) if header.match(one)), None)
    if start is None:
        lines += [*([""] if lines else []), f"[{table}]", line]
        return
    end = next((number for number in range(start + 1, len(lines)) if HEADER.match(lines[number])), len(lines))
    for number in range(start + 1, end):
        if re.match(rf"^\s*{re.escape(key)}\s*=", lines[number]):
            lines[number] = line
            return
    lines.insert(start + 1, line)


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise TomlError(f"is no valid TOML: {error}") from error


def _table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = data.get(name, {})
    if not isinstance(found, Mapping):
        raise TomlError(f"{name} is a value in it, and no table")
    return found
