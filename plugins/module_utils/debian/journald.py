# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes journald's configuration, and parses its messages about the journal. Private to the collection."""

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
"""journald's keys, by option of this collection. Source: journald.conf(5)."""

SIZE = re.compile(r"[1-9][0-9]*[KMGT]?")
SPAN = re.compile(r"[0-9]+ ?(s|sec|min|m|h|hours?|days?|d|weeks?|w|months?|M|years?|y)?")

SMALLEST = 16 * 1024**2
"""The least SystemMaxUse, in bytes: two files. A file grows by 8 MiB at a time. Source: systemd's journal-file.c."""


def size(text: str) -> int:
    """Convert a size in journald's notation to bytes. K, M, G and T are powers of 1024."""
    return int(text.rstrip("KMGT")) * 1024 ** (" KMGT".index(text[-1]) if text[-1] in "KMGT" else 0)


def mistakes(options: Mapping[str, str]) -> list[Problem]:
    """Problems with values that journald would ignore, and with too small a journal."""
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
    """The settings with journald's keys."""
    return {"Storage": "persistent", **{KEYS[name]: str(options[name]) for name in KEYS}}


def render(values: Mapping[str, str], header: str) -> str:
    """The text of the drop-in."""
    return "\n".join([f"# {header}", "[Journal]", *(f"{key}={value}" for key, value in values.items())]) + "\n"


def overrides(files: Iterable[tuple[str, str]], wanted: Mapping[str, str]) -> list[Problem]:
    """Problems with other files that override our keys. `files`: path and text of each file that is read after ours."""
    problems = []
    for path, text in files:
        for line in text.splitlines():
            key, mark, value = (part.strip() for part in line.partition("="))
            if mark and key in wanted and value != wanted[key]:
                message = f"is read after {DROP_IN}, and overrides {wanted[key]!r}: remove the line or the file"
                problems.append(Problem(path, message, key, value))
    return problems


def limit(output: str) -> tuple[str, int]:
    """The kind of journal in use, and its largest size in bytes.

    `output` has journald's messages about its journal, in the form of `--output=json`. The last message counts. Raises
    ValueError if there is no such message.
    """
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if not lines:
        raise ValueError("journald has not logged the size of its journal: restart systemd-journald")
    return str(lines[-1]["JOURNAL_NAME"]), int(lines[-1]["MAX_USE"])
