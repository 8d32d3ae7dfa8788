# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The counters of a port that tell of errors and congestion. Private to the collection."""

from __future__ import annotations

import re
from pathlib import Path

from ...core import sysfs

TRAFFIC = re.compile(
    "(port_)?((uni|multi)cast_)?(xmit|rcv)_(data|packets)(_64)?"
    "|rx_(atomic|read|write)_requests|rdma_(sends|recvs)|(sent|rcvd)_pkts|lifespan"
)
"""What counts traffic, and how many milliseconds old the hardware's counters may be. All else is trouble: errors,
discards, retries, waits, congestion. Sources: infiniband/core/sysfs.c; mlx5/counters.c; rxe_hw_counters.c of Linux."""


def counters(port: Path) -> dict[str, int | None]:
    """The counters below a port's directory in sysfs, by the kernel's name, those of its driver included.

    None for one that the hardware does not have: reading it fails with EINVAL, or says "N/A (no PMA)".
    """
    found: dict[str, int | None] = {}
    for directory in ("hw_counters", "counters"):
        for name, text in sysfs.read_each(port / directory, unwanted=TRAFFIC.fullmatch).items():
            number = sysfs.integer(text)
            found[name] = found.get(name) if number is None else number
    return dict(sorted(found.items()))
