# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The option `gather_subset` of modules that gather facts. Private to the collection."""

from __future__ import annotations

from collections.abc import Collection, Sequence

ALL, MIN = "all", "min"


def choices(parts: Sequence[str]) -> list[str]:
    """The allowed values of the option, for modules with these parts."""
    return [ALL, MIN, *(mark + part for part in parts for mark in ("", "!"))]


def chosen(subset: Collection[str], parts: Collection[str]) -> set[str]:
    """The parts that the option's value selects: the named ones, none for `min`, or all without a name; never those
    marked `!`."""
    left_out = {name[1:] for name in subset if name.startswith("!")}
    named = {name for name in subset if not name.startswith("!")}
    return (set(parts) if not named or ALL in named else named - {MIN}) - left_out
