# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The implementation of the module engine_swap."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ...core import systemd
from ...core.call import Call
from ...core.paths import Paths
from ...engine import activation, load_time
from ...engine.state import history, pins, releases, swaps
from ...engine.state.drains import format_time


def begin(paths: Paths, given: dict[str, Any], *, check: bool) -> dict[str, Any]:
    """Have the release run. Raises ReleaseError, SystemdError, OSError."""
    name, number = given["name"], given["release"]
    active = releases.active_number(paths, name)
    runs = activation.runs(paths, name, number)
    begun = swaps.read(paths, name)
    # A run that was cut off had begun at what really ran: that is what is gone back to.
    origin = begun.origin if begun else active
    if not check:
        # Also of a release that runs already: until it is proven, this swap is not over.
        swaps.begin(
            paths, name, swaps.Swap(origin, number, given["run_id"], format_time(datetime.now(UTC)), given["back"])
        )
    if not runs and not check:
        activation.run(paths, name, number)
    return {"changed": not runs, "origin": origin}


def prove(paths: Paths, given: dict[str, Any], *, check: bool) -> dict[str, Any]:
    """End the swap. Raises ReleaseError where another release runs, SystemdError, OSError, ValueError."""
    name, number = given["name"], given["release"]
    active = releases.active_number(paths, name)
    seconds = load_time.seconds(name)
    if active != number and not check:
        raise releases.ReleaseError(paths.active(name), f"names release {active}, and not {number}")
    changed = False
    if not check:
        now = format_time(datetime.now(UTC))
        changed = releases.commit(paths, name, number)
        changed |= history.add(paths, name, history.Served(number, now, seconds, given["tokens_per_second"]))
        if given["pin"]:
            changed |= pins.settle(paths, name, number, given["reason"], now, back=given["back"])
        else:
            changed |= pins.loosen(paths, name, number)
        changed |= swaps.end(paths, name)
    return {
        "changed": changed,
        "load_seconds": seconds,
        "pinned": pins.in_force(paths, name, releases.desired_number(paths, name)) is not None,
    }


def run(module: Call) -> None:
    """Answer a call."""
    given, paths, check = module.params, Paths(), module.check_mode
    try:
        result = (begin if given["state"] == "begun" else prove)(paths, given, check=check)
    except (releases.ReleaseError, systemd.SystemdError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)
