# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prunes a repository in place of a node that cannot delete. Private to the collection.

The only rule is a duration. An attacker on a node can add snapshots with any date. By a rule that counts (the last 7
days, one for each week), such snapshots would push out the good ones. Within a duration, all snapshots stay. Source:
restic's manual, "Security considerations in append-only mode".
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

from . import repository
from .restic import LONG, OTHER, TAG, Restic, ResticError

_DURATION = re.compile(r"^(?=.*[1-9])(?:\d+y)?(?:\d+m)?(?:\d+d)?(?:\d+h)?$")
"""The notation of `restic forget --keep-within`. Source: restic-forget(1)."""

AHEAD_SECONDS = 3600.0
"""How far the date of a snapshot may lie in the future: clocks differ."""


def duration_problem(text: str) -> str:
    """Why a value of backup_keep_within is wrong; empty if it is right."""
    if _DURATION.match(text):
        return ""
    return f"backup_keep_within is {text!r}: use years, months, days and hours in this order, such as 1y, 6m or 90d"


def prune(restic: Restic, host: str, within: str, minutes: float, now: float, *, check: bool) -> dict[str, Any]:
    """Remove the host's snapshots that are older than `within` at its last snapshot, and data that none uses any more.

    Before that, restic reads all data: a damaged repository is not pruned. In check mode, nothing is removed.

    Returns `removed` and `kept`, lists of short IDs, and `ahead`, the kept ones that are dated in the future. `now` is
    in seconds since 1970. Raises ResticError.
    """
    words = ["forget", "--host", host, "--tag", TAG, "--group-by", "host", "--keep-within", within]
    before = restic.snapshots(host)
    removed = _ids(restic.call(*words, "--dry-run", "--no-lock", "--json", timeout=LONG)) if before else set()
    if removed and not check:
        # An index of an intruder could name false places of data, and the prune would then remove the right ones.
        restic.patiently(["check", "--read-data"], minutes)
        restic.patiently([*words, "--prune"], minutes)
        # restic 0.18 ends with success although the server has refused each deletion.
        left = removed & {str(one["short_id"]) for one in restic.snapshots(host)}
        if left:
            where = repository.mask(restic.access.address)
            raise ResticError(
                OTHER,
                f"the repository at {where} does not let these credentials delete: snapshots {', '.join(sorted(left))}"
                f" of {host} are still there. Set backup_prune_environment and backup_prune_repository to credentials"
                " and an address by which the server allows deletion",
            )
    kept = [one for one in before if one["short_id"] not in removed]
    latest = now + AHEAD_SECONDS
    return {
        "removed": sorted(removed),
        "kept": [str(one["short_id"]) for one in kept],
        "ahead": [str(one["short_id"]) for one in kept if datetime.fromisoformat(one["time"]).timestamp() > latest],
    }


def _ids(text: str) -> set[str]:
    """The short IDs of the snapshots that `restic forget --json` would remove."""
    for line in text.splitlines():
        if line.startswith("["):
            return {str(one["short_id"]) for group in json.loads(line) for one in group["remove"] or []}
    return set()
