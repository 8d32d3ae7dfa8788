# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often in a row an instance has tried to start without getting ready. Private to the collection.

systemd's own counter of restarts also counts the restart of an engine that died after serving for weeks. Only a start
after which the engine never got ready is a failed start.
"""

from __future__ import annotations

from ...core import files
from ...core.paths import Paths

SCHEMA = 1


def count(paths: Paths, name: str) -> int:
    """Starts since the instance was last ready or last started on purpose, the present start included."""
    try:
        value = files.read_json(paths.starts(name))
    except (OSError, ValueError):
        # A damaged file must not make a start fail: the next start writes the file again.
        return 0
    attempt = value.get("attempt") if isinstance(value, dict) else None
    return attempt if isinstance(attempt, int) else 0


def begin(paths: Paths, name: str, restarts: int) -> int:
    """Count one more start, and return the count. `restarts`: systemd's automatic restarts, 0 for a start on purpose.

    Raises OSError.
    """
    attempt = count(paths, name) + 1 if restarts else 1
    files.write_json(paths.starts(name), {"schema": SCHEMA, "attempt": attempt})
    return attempt


def ready(paths: Paths, name: str) -> None:
    """Reset the count: the instance has answered. Raises OSError."""
    paths.starts(name).unlink(missing_ok=True)
