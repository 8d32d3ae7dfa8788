# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The doctor's results as metrics. Private to the collection; pure."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.exposition import Help, Samples
from ..doctor.check import STATUSES, Result, verdict

HELP: Help = {
    "inference_doctor_verdict": "1 for the worst status of all checks that are switched on.",
    "inference_doctor_check_status": "Status of a check: 0 ok, 1 unknown, 2 warn, 3 fail.",
}


def render(results: Sequence[Result], samples: Samples) -> None:
    """Add the status of each check, without its message."""
    worst = verdict(results)
    for status in STATUSES:
        samples.add("inference_doctor_verdict", status == worst, verdict=status)
    for result in results:
        samples.add("inference_doctor_check_status", STATUSES.index(result.status), check=result.name)
