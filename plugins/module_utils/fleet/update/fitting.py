# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which plans of a node refuse a run, before the run begins. Private to the collection. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...engine.changes import START, Change
from .plan import Choice


def misfits(plans: Sequence[Mapping[str, Any]], choice: Choice, *, swaps: bool) -> list[Mapping[str, Any]]:
    """Of a node's plans, as the module engine_plan makes them, those of what a run would start in vain.

    A run either starts what does not run, or `swaps` what has another release. A plan of which too little is known
    does not stop a run.
    """
    return [
        one
        for one in plans
        if one["ok"] is False
        and choice.takes(one["instance"], one["model"])
        and _starts_unproven(Change.from_dict(one["change"]), swaps)
    ]


def _starts_unproven(change: Change, swaps: bool) -> bool:
    """Whether a run starts a release that has not served here: a release that has served is known to fit."""
    if change.served:
        return False
    if swaps:
        return change.active is None or change.active != change.desired
    return change.action == START
