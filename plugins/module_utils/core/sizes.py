# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sizes in bytes, and counts, as text. Private to the collection; pure."""

from __future__ import annotations

GIB = 1 << 30


def human(size: int) -> str:
    """A size in bytes as text with a unit, such as `1.5 GiB`."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << power:
            return f"{size / (1 << power):.1f} {unit}"
    return counted(size, "byte")


def counted(number: int, noun: str) -> str:
    """A count as text: `1 node`, `8 nodes`. The noun must have a regular plural."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
