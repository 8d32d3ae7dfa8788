# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the MTU of ports from `ibv_devinfo`. Private to the collection.

Only programs with libibverbs can read the MTU, because no file of the kernel has it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LINE = re.compile(r"^\s*(hca_id|port|max_mtu|active_mtu):\s*(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Mtu:
    """Bytes of payload in a packet of a port. None if missing or not valid."""

    active: int | None = None
    max: int | None = None


def mtus(text: str) -> dict[tuple[str, int], Mtu]:
    """The MTUs by device and port. Output before a failure counts, too."""
    found: dict[tuple[str, int], dict[str, int]] = {}
    device, port = "", 0
    for name, value in LINE.findall(text):
        if name == "hca_id":
            device, port = value, 0
        elif re.fullmatch("[0-9]{1,9}", value):
            if name == "port":
                port = int(value)
            elif device and port:
                found.setdefault((device, port), {})[name.removesuffix("_mtu")] = int(value)
    return {key: Mtu(**values) for key, values in found.items()}
