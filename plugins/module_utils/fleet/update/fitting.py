# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the plans of a node that do not fit, before a run begins. Private to the collection. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...engine.changes import START, Change
from ...models.fit.misfit import ADAPTERS, GOLDEN
from .plan import Choice


def misfits(plans: Sequence[Mapping[str, Any]], choice: Choice, *, swaps: bool) -> list[Mapping[str, Any]]:
    """The plans of releases that the run would start although they do not fit. `plans`: from the module engine_plan.

    With `swaps`, the run swaps instances to other releases. Otherwise, the run starts instances that do not run. A plan
    whose result is unknown does not stop a run. A wrong adapter stops also a run that would only stage the release, and
    a golden prompt of another task stops every run.
    """
    return [
        one
        for one in plans
        if one["ok"] is False
        and choice.takes(one["instance"], one["model"])
        and (_has(GOLDEN, one) or _starts_unproven(Change.from_dict(one["change"]), swaps or _has(ADAPTERS, one)))
    ]


def _has(check: str, one: Mapping[str, Any]) -> bool:
    return any(problem["check"] == check for problem in one["problems"])


def _starts_unproven(change: Change, swaps: bool) -> bool:
    """Whether the run starts a release that has never served on this node. A release that has served fits."""
    if change.served:
        return False
    if swaps:
        return change.active is None or change.active != change.desired
    return change.action == START
