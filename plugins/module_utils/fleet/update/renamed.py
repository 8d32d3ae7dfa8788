# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of updates that have other names since role `update` has taken them from role `vllm`. Private to the
collection. Pure."""

from __future__ import annotations

from collections.abc import Iterable

BEFORE, NOW = "vllm_update_", "update_"

OTHERWISE = {"rollback": "back", "on_failure": "rollback"}
"""Endings that have changed as well."""


def new_name(name: str) -> str:
    """The name of a variable today; empty where the name is as it was."""
    if not name.startswith(BEFORE):
        return ""
    ending = name.removeprefix(BEFORE)
    return NOW + OTHERWISE.get(ending, ending)


def words(names: Iterable[str]) -> str:
    """The variables that have other names now; empty where there are none."""
    found = [f"{name} is {new} now" for name in sorted(names) if (new := new_name(name))]
    return "; ".join(found)
