# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads values of nvidia-smi. Private to the collection."""

from __future__ import annotations

import re

ABSENT = frozenset(
    {
        "",
        "n/a",
        "none",
        "not available",
        "not found",
        "not supported",
        "function not found",
        "requested functionality has been deprecated",
        "insufficient permissions",
    }
)
"""Texts for a value that does not exist, or that the caller may not read."""

LOST = "gpu is lost"

FAILED = frozenset({LOST, "err!", "unknown error", "gpu requires reset"})
"""Texts for a value that could not be read. Source of ABSENT and FAILED: nvmlErrorString of nvml.h, and reports."""

QUANTITY = re.compile(r"(-?[0-9]{1,15}(?:\.[0-9]{1,6})?) ?([^\s0-9]\S*)?")
VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)+")


def plain(text: str) -> str:
    """A text in lower case, without the brackets that some versions put around missing values."""
    return text.strip().strip("[]").casefold()


def word(text: str | None) -> str | None:
    """The text, or None if it means no value."""
    stripped = (text or "").strip()
    return None if plain(stripped) in ABSENT | FAILED else stripped


def quantity(text: str | None, unit: str = "") -> float | None:
    """The number of a text such as "81559 MiB"; None if the text has another unit, or no number."""
    match = QUANTITY.fullmatch((text or "").strip())
    return float(match[1]) if match and (match[2] or unit) == unit else None


def whole(text: str | None, unit: str = "") -> int | None:
    """The number of a text, rounded; None if the text has another unit."""
    number = quantity(text, unit)
    return None if number is None else round(number)


def version(text: str | None) -> str | None:
    """The version at the start of a text. From driver 610 on, a note such as "(deprecated)" may follow."""
    match = VERSION.match((text or "").strip())
    return match[0] if match else None


def mode(text: str | None) -> str | None:
    """`enabled`, `disabled` or None."""
    found = plain(text or "")
    return found if found in ("enabled", "disabled") else None


def flag(text: str | None) -> bool | None:
    """True for yes, False for no, else None."""
    return {"yes": True, "no": False}.get(plain(text or ""))
