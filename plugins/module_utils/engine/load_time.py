# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long an engine took to load, according to systemd. Private to the collection."""

from __future__ import annotations

from pathlib import Path

from ..core import systemd
from ..core.paths import Paths, unit_name
from .state import history, releases

SWAP_SECONDS = 30
"""How long a swap takes without drain and load: for the stop, and for the probe before the engine gets requests."""

MARGIN = 1.1
"""A factor: a load may take up to 1.1 times as long as the last one."""

_BEGAN, _READY = "InactiveExitTimestampMonotonic", "ActiveEnterTimestampMonotonic"


def seconds(name: str) -> float | None:
    """Seconds from the unit's start to the first answer; None where the unit is not active. Raises SystemdError.

    systemd's monotonic times are microseconds, 0 for never.
    """
    unit = unit_name(name)
    shown = systemd.show([unit], ["ActiveState", _BEGAN, _READY])[unit]
    began, ready = (int(shown.get(key) or 0) for key in (_BEGAN, _READY))
    if shown.get("ActiveState") != "active" or not 0 < began < ready:
        return None
    return round((ready - began) / 1e6, 1)


def of_another(taken: float, before: Path, after: Path) -> float | None:
    """Seconds that the model at `after` may load, if the model at `before` took `taken` seconds; None where unknown.

    More bytes take longer. For fewer bytes the time stays the same: an engine does more at its start than read files.
    """
    if before == after:
        return taken
    sizes = _bytes(before), _bytes(after)
    return round(taken * max(1.0, sizes[1] / sizes[0]), 1) if all(sizes) else None


def _bytes(model: Path) -> int:
    """Bytes of all files of a model; 0 where a file cannot be read."""
    try:
        return sum(file.stat().st_size for file in model.rglob("*") if file.is_file())
    except OSError:
        return 0


def swap_seconds(load: float | None) -> int | None:
    """The seconds for which a swap keeps requests away, without the drain; None where the load is unknown."""
    return None if load is None else round(load * MARGIN + SWAP_SECONDS)


def expected(paths: Paths, name: str, active: int | None, target: int) -> float | None:
    """How many seconds a release on this node may load; None where unknown. Raises SystemdError."""
    known = history.last(paths, name, target)
    if known and known.load_seconds:
        return known.load_seconds
    taken = seconds(name)
    if taken is None or active is None:
        return taken
    try:
        models = [Path(releases.load(paths, name, number).model_path) for number in (active, target)]
    except releases.ReleaseError:
        return None
    return of_another(taken, *models)
