# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often in a row an instance has tried to start without getting ready. Private to the collection.

systemd's own counter of restarts does not tell a start that keeps failing from an engine that died after serving for
weeks and is on its way back; only the first is a failed start.
"""

from __future__ import annotations

from ...core import files
from ...core.paths import Paths

SCHEMA = 1


def count(paths: Paths, name: str) -> int:
    """Starts since the instance was last ready or was started on purpose, the one under way included."""
    try:
        value = files.read_json(paths.starts(name))
    except (OSError, ValueError):
        # Not worth failing a start for: it is written anew by the next one.
        return 0
    attempt = value.get("attempt") if isinstance(value, dict) else None
    return attempt if isinstance(attempt, int) else 0


def begin(paths: Paths, name: str, restarts: int) -> int:
    """Count one more start. systemd's count of automatic restarts is 0 for a start on purpose. Returns its number.

    Raises OSError.
    """
    attempt = count(paths, name) + 1 if restarts else 1
    files.write_json(paths.starts(name), {"schema": SCHEMA, "attempt": attempt})
    return attempt


def ready(paths: Paths, name: str) -> None:
    """The instance has answered: nothing has failed. Raises OSError."""
    paths.starts(name).unlink(missing_ok=True)
