# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent's requests for recovery. Private to the collection.

The agent's sandbox does not allow it to start a unit. Instead, it writes a file, and a path unit of systemd waits for
the file.
"""

from __future__ import annotations

import contextlib
import time

from ...core import files, systemd
from ...core.paths import Paths, recovery_unit
from ...engine.state import releases

INTERVAL = 30.0
"""Seconds between two requests for the same instance. Each request may lead to the next step."""


class Requests:
    """Requests recovery at intervals. Raises nothing: an agent that cannot write requests still probes."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._asked: dict[str, float] = {}

    def ask(self, name: str) -> None:
        """Request recovery of an instance, unless the last request is recent or this node has no recovery."""
        now = time.monotonic()
        if now - self._asked.get(name, -INTERVAL) < INTERVAL:
            return
        with contextlib.suppress(OSError):
            if self._paths.recovery_settings.exists():
                self._asked[name] = now
                files.write(self._paths.recovery_requests / name, "")

    def forget(self, name: str) -> None:
        """Reset the interval, since the instance serves: the next request is sent at once."""
        self._asked.pop(name, None)


def dispatch(paths: Paths) -> list[str]:
    """Start the recovery of every requested instance, and return their names. Raises OSError, SystemdError."""
    known = set(releases.names(paths))
    wanted = sorted(path.name for path in paths.recovery_requests.iterdir() if not path.name.startswith("."))
    for name in wanted:
        # The file goes first, so that a request from now on is not lost.
        (paths.recovery_requests / name).unlink(missing_ok=True)
        if name in known:
            systemd.systemctl("start", "--no-block", recovery_unit(name))
    return [name for name in wanted if name in known]
