# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The implementation of the module engine_drain."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from ...core import systemd
from ...core.call import Call
from ...core.paths import Paths, unit_name
from ...engine.probe import idle
from ...engine.state import drains, releases

POLL_SECONDS = 0.3

LOOKS = 2
"""In a row without a request. One that the engine has not yet counted has a connection, and with that no stop is quick:
supervisor.py."""


def in_flight(paths: Paths, name: str) -> int | None:
    """Requests at the engine; None where it does not tell. Raises ReleaseError."""
    number = releases.active_number(paths, name)
    if number is None or systemd.active_state(unit_name(name)) not in systemd.RUNNING:
        return 0
    return idle.in_flight(paths, releases.load(paths, name, number))


def wait_idle(paths: Paths, name: str, seconds: float) -> int | None:
    """Requests at the engine when it has been idle for LOOKS, or when the time is over. Raises ReleaseError."""
    deadline = time.monotonic() + seconds
    looks = 0
    while True:
        found = in_flight(paths, name)
        looks = looks + 1 if found == 0 else 0
        if looks == LOOKS or time.monotonic() >= deadline:
            return found if looks in (0, LOOKS) else None
        time.sleep(POLL_SECONDS)


def run(module: Call) -> None:
    """Answer a call."""
    paths, given = Paths(), module.params
    name, owner, now = given["name"], given["owner"], datetime.now(UTC)
    try:
        present = drains.read(paths, name, now)
        if given["state"] == "idle":
            found = wait_idle(paths, name, given["seconds"])
            words = "it does not tell" if found is None else f"{found} requests are in flight"
            module.exit_json(
                changed=False,
                idle=found == 0,
                in_flight=found,
                drained_by=present.owner if present else "",
                msg="" if found == 0 else f"{name} is not idle: {words}",
            )
        own = present is not None and present.owner == owner
        another = own and present is not None and present.reason != given["reason"]
        changed = own if given["state"] == "undrained" else present is None or another
        if changed and not module.check_mode:
            if given["state"] == "undrained":
                present = drains.undrain(paths, name, owner, now).drain
            else:
                wanted = drains.Drain(owner, given["reason"], drains.format_time(now))
                present = drains.drain(paths, [name], wanted)[0].drain
    except (drains.Held, releases.ReleaseError, systemd.SystemdError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=changed, drained_by=present.owner if present else "")
