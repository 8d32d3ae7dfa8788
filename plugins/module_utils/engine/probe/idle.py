# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether an engine is idle: drained, and without requests in flight. Private to the collection."""

from __future__ import annotations

from datetime import datetime

from ...core.paths import Paths
from ..release import Release
from ..state import drains, swaps
from . import metrics
from .scrape import scrape


def in_flight(paths: Paths, release: Release) -> int | None:
    """Requests in flight at the engine that runs the release; None where the engine does not report them.

    Raises OSError.
    """
    try:
        return metrics.in_flight(scrape(paths, release.instance, release), release.adapter.metrics)
    except ConnectionRefusedError:
        # The engine loads, or has died: it has no request.
        return 0


def is_idle(paths: Paths, release: Release, now: datetime) -> bool:
    """Whether the engine is drained and has no request; False where that is unknown.

    True in the step `stop` of a swap, also for an engine that hangs and reports nothing: the swap has seen that no
    client is left, or cuts the requests that are left.
    """
    swap = swaps.read(paths, release.instance)
    if swap is not None and swap.step == swaps.STOP:
        return True
    if not drains.is_drained(paths, release.instance, now):
        return False
    try:
        return in_flight(paths, release) == 0
    except (OSError, ValueError):
        return False
