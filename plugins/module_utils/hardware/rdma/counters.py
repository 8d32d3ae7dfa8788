# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a port's counters of errors and congestion. Private to the collection."""

from __future__ import annotations

import re
from pathlib import Path

from ...core import sysfs

TRAFFIC = re.compile(
    "(port_)?((uni|multi)cast_)?(xmit|rcv)_(data|packets)(_64)?"
    "|rx_(atomic|read|write)_requests|rdma_(sends|recvs)|(sent|rcvd)_pkts|lifespan"
)
"""Counters of traffic, and the file lifespan, the age limit of hardware counters in ms; both are left out. All other
counters count errors, discards, retries, waits or congestion. Sources: infiniband/core/sysfs.c; mlx5/counters.c;
rxe_hw_counters.c of Linux."""


def counters(port: Path) -> dict[str, int | None]:
    """The counters below a port's directory in sysfs, by the kernel's name, also those of its driver.

    None for a counter that the hardware does not have: reading it fails with EINVAL, or gives "N/A (no PMA)".
    """
    found: dict[str, int | None] = {}
    for directory in ("hw_counters", "counters"):
        for name, text in sysfs.read_each(port / directory, unwanted=TRAFFIC.fullmatch).items():
            number = sysfs.integer(text)
            found[name] = found.get(name) if number is None else number
    return dict(sorted(found.items()))
