# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often a schedule comes round, by systemd's own reckoning. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from itertools import pairwise

from ..core.commands import Outcome, run

BASE = "2026-01-01"
"""From when on is looked, always: a summer time, or the day of a run, must not make another answer."""

TIMES = 50
"""How many runs are looked at: a working week, two dates of a month, the first Sunday of each are all in them."""

# "Next elapse: Sun 2026-01-04 02:30:00 UTC", then "Iter. #2: …"; systemd 257 writes "Iteration #2".
_ELAPSES = re.compile(r"^ *(?:Next elapse|Iter\S* #\d+): \w+ (\S+ \d\d:\d\d:\d\d)(?:\.\d+)? UTC$", re.MULTILINE)


def longest_gap(schedule: str, call: Callable[..., Outcome] = run) -> int | None:
    """The longest time between two runs, in seconds; None where there are no two.

    Raises ValueError where systemd does not take it for a time.
    """
    command = ["systemd-analyze", "calendar", f"--base-time={BASE}", f"--iterations={TIMES}", "--", schedule]
    outcome = call(command, 30, {"TZ": "UTC"})
    if outcome.code != 0:
        raise ValueError(outcome.message or outcome.stderr.strip())
    times = [datetime.fromisoformat(text).timestamp() for text in _ELAPSES.findall(outcome.stdout)]
    return max((round(later - earlier) for earlier, later in pairwise(times)), default=None)
