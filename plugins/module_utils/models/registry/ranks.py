# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranks of data parallelism that would run on other nodes. Private to the collection; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.problems import Findings
from ..fit.flags import DATA_PARALLEL, count

HERE = "data-parallel-size-local"
"""The number of ranks on the node of the engine."""


def check(where: str, entry: Mapping[Any, Any], resolved: Mapping[str, Any], found: Findings) -> None:
    """Add the mistake that an entry leaves ranks to other nodes: the engine would wait for them without end.

    The mistake is reported in the entry that has one of the two flags.
    """
    here, ranks = resolved.get(HERE), count(resolved.get(DATA_PARALLEL)) or 1
    if here is None or count(here) == ranks or not {HERE, DATA_PARALLEL} & set(entry):
        return
    message = (
        f"must be {ranks}, as {DATA_PARALLEL}: the engine would wait for ranks on other nodes. Remove the flag. "
        "For each further node, declare an instance of the same name: the gateway balances between them"
    )
    found.problem(where, message, HERE, here)
