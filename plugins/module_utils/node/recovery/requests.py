# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the agent asks for a recovery. Private to the collection.

The agent may start no unit: its sandbox has no right to. It leaves a file, for which a path unit of systemd waits.
"""

from __future__ import annotations

import contextlib
import time

from ...core import files, systemd
from ...core.paths import Paths, recovery_unit
from ...engine.state import releases

INTERVAL = 30.0
"""Seconds between two requests for the same instance; what was decided before may have been to wait."""


class Requests:
    """Asks, not too often. Raises nothing: an agent that cannot ask goes on probing."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._asked: dict[str, float] = {}

    def ask(self, name: str) -> None:
        """Ask for an instance, unless it was asked for a moment ago or this node has no recovery."""
        now = time.monotonic()
        if now - self._asked.get(name, -INTERVAL) < INTERVAL or not self._paths.recovery_settings.exists():
            return
        self._asked[name] = now
        with contextlib.suppress(OSError):
            files.write(self._paths.recovery_requests / name, "")

    def forget(self, name: str) -> None:
        """The instance is well: the next request goes out at once."""
        self._asked.pop(name, None)


def dispatch(paths: Paths) -> list[str]:
    """Start the recovery of every instance that was asked for; returns them. Raises OSError, SystemdError."""
    known = set(releases.names(paths))
    wanted = sorted(path.name for path in paths.recovery_requests.iterdir() if not path.name.startswith("."))
    for name in wanted:
        # First: what is asked for from now on is asked for again.
        (paths.recovery_requests / name).unlink(missing_ok=True)
        if name in known:
            systemd.systemctl("start", "--no-block", recovery_unit(name))
    return [name for name in wanted if name in known]
