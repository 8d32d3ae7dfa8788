# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""journald's configuration, and what it says about its journal. Private to the collection."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from ..core.problems import Problem

DROP_IN = "60-inference.conf"

KEYS = {
    "max_use": "SystemMaxUse",
    "keep_free": "SystemKeepFree",
    "max_retention": "MaxRetentionSec",
    "rate_limit_interval": "RateLimitIntervalSec",
    "rate_limit_burst": "RateLimitBurst",
}
"""Our options and journald's keys. Source: journald.conf(5)."""

SIZE = re.compile(r"[1-9][0-9]*[KMGT]?")
SPAN = re.compile(r"[0-9]+ ?(s|sec|min|m|h|hours?|days?|d|weeks?|w|months?|M|years?|y)?")

SMALLEST = 16 * 1024**2
"""Bytes. journald raises a smaller SystemMaxUse on its own, since a single file takes 8 MiB."""


def size(text: str) -> int:
    """The bytes of a size as journald spells it: K, M, G and T count in powers of 1024."""
    return int(text.rstrip("KMGT")) * 1024 ** (" KMGT".index(text[-1]) if text[-1] in "KMGT" else 0)


def mistakes(options: Mapping[str, str]) -> list[Problem]:
    """Values that journald would ignore: it would log a line, and use its defaults."""
    problems = []
    for key in ("max_use", "keep_free"):
        text = options[key]
        if not SIZE.fullmatch(text):
            problems.append(Problem("journal", "must be a size such as 4G or 500M", key, text))
        elif key == "max_use" and size(text) < SMALLEST:
            problems.append(Problem("journal", "must be 16M or more", key, text))
    for key in ("max_retention", "rate_limit_interval"):
        if not SPAN.fullmatch(options[key]):
            problems.append(Problem("journal", "must be a time span such as 30s, 12h or 3month", key, options[key]))
    return problems


def settings(options: Mapping[str, object]) -> dict[str, str]:
    """journald's own keys and values."""
    return {"Storage": "persistent", **{KEYS[name]: str(options[name]) for name in KEYS}}


def render(values: Mapping[str, str], header: str) -> str:
    """The drop-in's text."""
    return "\n".join([f"# {header}", "[Journal]", *(f"{key}={value}" for key, value in values.items())]) + "\n"


def overrides(files: Iterable[tuple[str, str]], wanted: Mapping[str, str]) -> list[Problem]:
    """Keys that other files set to other values. `files`: path and text of each file that journald reads after ours."""
    problems = []
    for path, text in files:
        for line in text.splitlines():
            key, mark, value = (part.strip() for part in line.partition("="))
            if mark and key in wanted and value != wanted[key]:
                message = f"is read after {DROP_IN} and wins over {wanted[key]!r}: remove the line or the file"
                problems.append(Problem(path, message, key, value))
    return problems


def limit(output: str) -> tuple[str, int]:
    """The kind of journal in use, and its largest size in bytes.

    `output` has journald's own messages about its journal, by `--output=json`; the last one counts. Raises ValueError
    where there is no such message.
    """
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if not lines:
        raise ValueError("journald has not said anything about its journal")
    return str(lines[-1]["JOURNAL_NAME"]), int(lines[-1]["MAX_USE"])
