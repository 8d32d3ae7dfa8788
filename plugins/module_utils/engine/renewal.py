# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units of releases that version 0.1.0 made. Private to the collection.

Their TimeoutStartSec= is two minutes, and the supervisor extends it while the engine loads. `systemctl daemon-reload`
makes systemd forget the extension, so a reload ends such a start. All kept releases get the timeout of today's units: a
rollback may start any of them. No engine restarts. The first reload after the change uses the new timeout, also for an
engine that is loading (seen with systemd 252 and 257).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..core import files
from ..core.paths import Paths, unit_name
from . import known_good, unit_text

RELEASE_FILE = "release.json"


def wanted(paths: Paths) -> dict[Path, str]:
    """The files that change, with their new texts: kept and installed units, and known-good checksums. Raises OSError.

    Two kinds of units stay as they are, for the modules that repair them: an installed unit that differs from the kept
    unit in more than the timeout, and a kept unit that differs in more than the timeout from its known-good checksum.
    """
    found: dict[Path, str] = {}
    for directory in sorted(path for path in paths.all_releases.glob("*") if path.is_dir()):
        name, digests = directory.name, dict[str, str]()
        recorded = known_good.recorded(paths.known_good(name))
        for first, renewed, kept in _units(directory, unit_name(name)):
            old, new = known_good.digest(first), known_good.digest(renewed)
            if recorded.get(str(kept), old) not in (old, new):
                continue
            digests[old] = new
            found |= {path: renewed for path in (kept, paths.unit(name)) if files.text(path) == first}
        # Also after a run that was cut off between the unit and the checksums.
        checksums = known_good.replaced(paths.known_good(name), digests)
        if checksums is not None:
            found[paths.known_good(name)] = checksums
    return found


def _units(directory: Path, unit: str) -> Iterator[tuple[str, str, Path]]:
    """For each kept release of an instance: the unit with the first timeout, the same with today's, and its path."""
    for path in sorted(directory.glob(f"[0-9]*/{unit}")):
        text, release = files.text(path), _release(path.with_name(RELEASE_FILE))
        seconds = release.get("start_timeout")
        if text and isinstance(seconds, int):
            timeout = unit_text.start_timeout(seconds, gang=bool(release.get("gang")))
            yield unit_text.with_timeout(text, unit_text.FIRST_TIMEOUT), unit_text.with_timeout(text, timeout), path


def _release(path: Path) -> dict[str, Any]:
    """A release; empty if it is damaged."""
    try:
        value = files.read_json(path)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
