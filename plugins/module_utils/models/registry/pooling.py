# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flags for generated text in an entry that asks for vectors or classes. Private to the collection; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.problems import Findings

RUNNER, POOLING = "runner", "pooling"

GENERATING = (
    *("reasoning-parser", "tool-call-parser", "enable-auto-tool-choice", "speculative-config"),
    *("reasoning-parser-plugin", "tool-parser-plugin", "override-generation-config"),
)
"""Flags for generated text. An engine with the runner pooling ignores them, or fails to start."""

MISTAKE = (
    "is for generated text: this model is served for vectors or classes. Remove the flag. If the base of the entry "
    "has the flag, write model instead of base"
)


def check(where: str, entry: Mapping[Any, Any], resolved: Mapping[str, Any], found: Findings) -> None:
    """Add a mistake for each flag for generated text in an entry whose `runner`, or that of its base, is pooling.

    A flag is reported for the entry that has the flag or `runner`.
    """
    if str(resolved.get(RUNNER)).lower() != POOLING:
        return
    for key in GENERATING:
        if resolved.get(key) and {key, RUNNER} & set(entry):
            found.problem(where, MISTAKE, key, resolved[key])
