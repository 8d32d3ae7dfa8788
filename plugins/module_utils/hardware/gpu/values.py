# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values as nvidia-smi writes them. Private to the collection."""

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
"""What stands where there is no value."""

LOST = "gpu is lost"

FAILED = frozenset({LOST, "err!", "unknown error", "gpu requires reset"})
"""What stands where there is a value that could not be read. Source of both: nvmlErrorString of nvml.h, and reports."""

QUANTITY = re.compile(r"(-?[0-9]{1,15}(?:\.[0-9]{1,6})?) ?([^\s0-9]\S*)?")
VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)+")


def plain(text: str) -> str:
    """A text in lower case, without the brackets that some versions put around what is no value."""
    return text.strip().strip("[]").casefold()


def word(text: str | None) -> str | None:
    """The text, or None where it stands for no value."""
    stripped = (text or "").strip()
    return None if plain(stripped) in ABSENT | FAILED else stripped


def quantity(text: str | None, unit: str = "") -> float | None:
    """The number of "81559 MiB" in that unit. None in any other unit, which would be a wrong number."""
    match = QUANTITY.fullmatch((text or "").strip())
    return float(match[1]) if match and (match[2] or unit) == unit else None


def whole(text: str | None, unit: str = "") -> int | None:
    """The same as a whole number."""
    number = quantity(text, unit)
    return None if number is None else round(number)


def version(text: str | None) -> str | None:
    """The version that a text begins with: from 610 on, words about its deprecation follow."""
    match = VERSION.match((text or "").strip())
    return match[0] if match else None


def mode(text: str | None) -> str | None:
    """`enabled`, `disabled` or None."""
    found = plain(text or "")
    return found if found in ("enabled", "disabled") else None


def flag(text: str | None) -> bool | None:
    """Yes or no."""
    return {"yes": True, "no": False}.get(plain(text or ""))
