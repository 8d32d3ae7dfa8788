# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The longest time between two runs of a schedule, as systemd calculates them. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from itertools import pairwise

from ..core.commands import Outcome, run

BASE = "2026-01-01"
"""The date from which runs are calculated. It is fixed, so that the result does not depend on today's date."""

TIMES = 50
"""How many runs are calculated: enough for schedules by weekday, and by date or weekday of a month."""

# "Next elapse: Sun 2026-01-04 02:30:00 UTC", then "Iter. #2: …"; systemd 257 writes "Iteration #2".
_ELAPSES = re.compile(r"^ *(?:Next elapse|Iter\S* #\d+): \w+ (\S+ \d\d:\d\d:\d\d)(?:\.\d+)? UTC$", re.MULTILINE)


def longest_gap(schedule: str, call: Callable[..., Outcome] = run) -> int | None:
    """The longest time between two runs, in seconds; None if the schedule has fewer than two runs.

    Raises ValueError if systemd does not accept the schedule.
    """
    command = ["systemd-analyze", "calendar", f"--base-time={BASE}", f"--iterations={TIMES}", "--", schedule]
    outcome = call(command, 30, {"TZ": "UTC"})
    if outcome.code != 0:
        raise ValueError(outcome.message or outcome.stderr.strip())
    times = [datetime.fromisoformat(text).timestamp() for text in _ELAPSES.findall(outcome.stdout)]
    return max((round(later - earlier) for earlier, later in pairwise(times)), default=None)
