# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The key by which members of a gang accept each other, in a restore. Private to the collection.

All members must have the same key. The other members keep their key while this node is restored, and the key may have
changed since the snapshot. So this node keeps the key that baremetal.inference.site has written.
"""

from __future__ import annotations

from pathlib import Path

from ..core import files
from ..core.paths import Paths


def keep(saved: Path, live: Path) -> list[str]:
    """Put this node's key in place of another key in the snapshot at `saved`. Returns the path on the node if the keys
    differ, and nothing otherwise.

    Raises OSError.
    """
    mine, other = Paths(live).gang_key, Paths(saved).gang_key
    if not mine.is_file() or not other.is_file():
        return []
    key = mine.read_text(encoding="utf-8")
    # A gang does not start with an empty key.
    if not key.strip() or key == other.read_text(encoding="utf-8"):
        return []
    files.write(other, key, other.stat().st_mode & 0o7777)
    return [str(mine)]
