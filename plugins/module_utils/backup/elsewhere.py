# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prunes a repository in place of a node that cannot delete. Private to the collection.

The only rule is a duration. An attacker on a node can add snapshots with any date. By a rule that counts (the last 7
days, one for each week), such snapshots would push out the good ones. Within a duration, all snapshots stay. Source:
restic's manual, "Security considerations in append-only mode".
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from .restic import Restic

_DURATION = re.compile(r"(?=.*[1-9])(?:\d+y)?(?:\d+m)?(?:\d+d)?(?:\d+h)?")
"""The notation of `restic forget --keep-within`. Source: restic-forget(1)."""

AHEAD_SECONDS = 3600.0
"""How far the date of a snapshot may lie in the future: clocks differ."""

_ADVICE = (
    "Set backup_prune_environment and backup_prune_repository to credentials and an address by which the server allows"
    " deletion"
)
"""What to do if the server refuses the deletions."""


def duration_problem(text: str) -> str:
    """Why a value of backup_keep_within is wrong; empty if it is right."""
    if _DURATION.fullmatch(text):
        return ""
    return f"backup_keep_within is {text!r}: use years, months, days and hours in this order, such as 1y, 6m or 90d"


def prune(restic: Restic, host: str, within: str, minutes: float, now: float, *, check: bool) -> dict[str, Any]:
    """Remove the host's snapshots that are more than `within` older than its last one, and data without a snapshot.

    Before a removal, restic reads all data: a damaged repository is not pruned. In check mode, nothing is removed.
    If no snapshot is that old, data without a snapshot stays, too.

    Returns lists of short IDs: `removed`, `kept`, and `ahead`, the kept snapshots that are dated in the future. `now`
    is in seconds since 1970. Raises ResticError.
    """
    rules = ["--keep-within", within]
    before = restic.snapshots(host)
    removed = restic.outdated(host, rules) if before else set()
    if removed and not check:
        # An intruder can write an index with wrong places of data. By such an index, prune would remove good data.
        restic.patiently(["check", "--read-data"], minutes)
        restic.forget(host, rules, minutes, removed, _ADVICE)
    kept = [one for one in before if one["short_id"] not in removed]
    latest = now + AHEAD_SECONDS
    return {
        "removed": sorted(removed),
        "kept": [str(one["short_id"]) for one in kept],
        "ahead": [str(one["short_id"]) for one in kept if datetime.fromisoformat(one["time"]).timestamp() > latest],
    }
