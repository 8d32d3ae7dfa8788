# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""New names of variables that moved from the role `vllm` to the role `update`. Private to the collection. Pure."""

from __future__ import annotations

from collections.abc import Iterable

BEFORE, NOW = "vllm_update_", "update_"

OTHERWISE = {"rollback": "back", "on_failure": "rollback", "untold": "outdated_gateways"}
"""Endings of names that also changed."""


def new_name(name: str) -> str:
    """The new name of a variable; empty if the name has not changed."""
    if not name.startswith(BEFORE):
        return ""
    ending = name.removeprefix(BEFORE)
    return NOW + OTHERWISE.get(ending, ending)


def words(names: Iterable[str]) -> str:
    """A text that lists renamed variables with their new names; empty if none is renamed."""
    found = [f"{name} is now called {new}" for name in sorted(names) if (new := new_name(name))]
    return "; ".join(found)
