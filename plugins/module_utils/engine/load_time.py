# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long an engine took to load, by systemd's word. Private to the collection."""

from __future__ import annotations

from pathlib import Path

from ..core import systemd
from ..core.paths import Paths, unit_name
from .state import history, releases

SWAP_SECONDS = 30
"""What a swap takes beside the engine's load: its stop, and the probe before clients come back."""

MARGIN = 1.1
"""A load may take this much longer than the last one."""

_BEGAN, _READY = "InactiveExitTimestampMonotonic", "ActiveEnterTimestampMonotonic"


def seconds(name: str) -> float | None:
    """From the start of an instance's unit to its first answer; None where it does not serve. Raises SystemdError.

    systemd's monotonic times are microseconds, 0 for never.
    """
    unit = unit_name(name)
    shown = systemd.show([unit], ["ActiveState", _BEGAN, _READY])[unit]
    began, ready = (int(shown.get(key) or 0) for key in (_BEGAN, _READY))
    if shown.get("ActiveState") != "active" or not 0 < began < ready:
        return None
    return round((ready - began) / 1e6, 1)


def of_another(taken: float, before: Path, after: Path) -> float | None:
    """How long the model at `after` may load where the one at `before` has taken so long; None where unknown.

    More bytes take longer. Fewer are not counted on: an engine does more at its start than read them.
    """
    if before == after:
        return taken
    sizes = _bytes(before), _bytes(after)
    return round(taken * max(1.0, sizes[1] / sizes[0]), 1) if all(sizes) else None


def _bytes(model: Path) -> int:
    """Of all files of a model; 0 where they cannot be read."""
    try:
        return sum(file.stat().st_size for file in model.rglob("*") if file.is_file())
    except OSError:
        return 0


def swap_seconds(load: float | None) -> int | None:
    """How long a swap keeps requests away beside the drain, in seconds; None where the load is not known."""
    return None if load is None else round(load * MARGIN + SWAP_SECONDS)


def expected(paths: Paths, name: str, active: int | None, target: int) -> float | None:
    """How long a release that is kept may load, in seconds; None where unknown. Raises SystemdError."""
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
