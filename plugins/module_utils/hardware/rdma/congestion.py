# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the settings of a port's congestion control. Private to the collection.

The inbox driver mlx5 has them in debugfs, the driver of DOCA-OFED in a directory of the network device. The place of
the directory in debugfs differs between kernels, so all known places are tried.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ...core import sysfs

DEBUGFS = ("sys/kernel/debug/mlx5/{address}/cc_params", "sys/kernel/debug/mlx5_ib/{address}/cc_params")

OFED = f"{sysfs.NETDEVS}/{{netdev}}/ecn"


@dataclass(frozen=True)
class Congestion:
    """The settings of congestion packets (CNP). None if unknown."""

    cnp_dscp: int | None
    cnp_priority: int | None
    ecn: list[int] | None
    """The priorities for which the port notices and obeys marks. Only DOCA-OFED shows them."""
    directory: str
    """The directory with the settings."""
    kind: str
    """debugfs or ofed."""


def read(root: Path, address: str | None, netdev: str | None) -> Congestion | None:
    """The settings of a port, by the PCI address of its function and its network device; None without any."""
    ofed = root / OFED.format(netdev=netdev)
    if netdev and ofed.is_dir():
        return Congestion(
            cnp_dscp=sysfs.read_int(ofed / "roce_np/cnp_dscp"),
            cnp_priority=sysfs.read_int(ofed / "roce_np/cnp_802p_prio"),
            ecn=_enabled(ofed),
            directory=f"/{ofed.relative_to(root)}",
            kind="ofed",
        )
    for place in DEBUGFS if address else ():
        directory = root / place.format(address=address)
        if directory.is_dir():
            return Congestion(
                cnp_dscp=_number(directory / "np_cnp_dscp"),
                cnp_priority=_number(directory / "np_cnp_prio"),
                ecn=None,
                directory=f"/{directory.relative_to(root)}",
                kind="debugfs",
            )
    return None


def _enabled(ofed: Path) -> list[int] | None:
    """The priorities that are enabled for both sides, the one that notices marks and the one that obeys."""
    sides = [sysfs.read_each(ofed / side / "enable") for side in ("roce_np", "roce_rp")]
    if not all(sides):
        return None
    return [number for number in range(8) if all(side.get(str(number)) == "1" for side in sides)]


def _number(path: Path) -> int | None:
    """A number in debugfs, decimal or hexadecimal."""
    text = sysfs.read(path) or ""
    match = re.fullmatch("(0x[0-9a-fA-F]{1,8}|[0-9]{1,9})", text)
    return int(match[1], 0 if match[1].startswith("0x") else 10) if match else None
