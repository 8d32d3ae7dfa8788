# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long an engine took to load, by systemd's word. Private to the collection."""

from __future__ import annotations

from ..paths import unit_name
from . import systemd

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
