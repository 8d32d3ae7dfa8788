# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the counters of a network device's priorities, as `ethtool -S` does. Private to the collection.

Unlike the kernel's own counters of a network device, these include RDMA's packets, which bypass the kernel's network.
Debian does not install ethtool by default, so this module asks the kernel itself.
"""

from __future__ import annotations

import ctypes
import fcntl
import re
import socket
import struct
from collections.abc import Callable, Iterator, Mapping

SIOCETHTOOL = 0x8946
SET_INFO, STRINGS, STATS = 0x37, 0x1B, 0x1D
"""Commands of the kernel. Source: linux/ethtool.h: ETHTOOL_GSSET_INFO, ETHTOOL_GSTRINGS, ETHTOOL_GSTATS."""

STATISTICS = 1
"""The set of strings with the names of counters: ETH_SS_STATS."""

NAME_BYTES = 32
MOST_COUNTERS = 20_000
"""More than any driver has: a mlx5 with 128 queues has 4000."""

RX, TX = "received", "sent"

PATTERNS: Mapping[re.Pattern[str], tuple[str, str]] = {
    # mlx5: rx_prio3_bytes, tx_prio3_pause, rx_prio3_discards.
    re.compile(r"rx_prio([0-7])_bytes"): ("bytes", RX),
    re.compile(r"tx_prio([0-7])_bytes"): ("bytes", TX),
    re.compile(r"rx_prio([0-7])_pause"): ("pauses", RX),
    re.compile(r"tx_prio([0-7])_pause"): ("pauses", TX),
    re.compile(r"rx_prio([0-7])_discards"): ("discards", RX),
    # bnxt_en: rx_bytes_pri3, pfc_pri3_rx_transitions.
    re.compile(r"rx_bytes_pri([0-7])"): ("bytes", RX),
    re.compile(r"tx_bytes_pri([0-7])"): ("bytes", TX),
    re.compile(r"pfc_pri([0-7])_rx_transitions"): ("pauses", RX),
    re.compile(r"pfc_pri([0-7])_tx_transitions"): ("pauses", TX),
    # ice: rx_priority_3_xoff.nic.
    re.compile(r"rx_priority_([0-7])_xoff\.nic"): ("pauses", RX),
    re.compile(r"tx_priority_([0-7])_xoff\.nic"): ("pauses", TX),
}
"""The meaning of a driver's counters: what they count, and in which direction."""

DISCARDS = ("rx_discards_phy", "rx_out_of_buffer", "rx_total_discard_pkts", "rx_dropped.nic")
"""Packets that a network device lost because it had no room. Sources: mlx5/counters.rst, bnxt_ethtool.c and
ice_ethtool.c of Linux."""

Control = Callable[[str, ctypes.Array[ctypes.c_char]], None]


def control(netdev: str, buffer: ctypes.Array[ctypes.c_char]) -> None:
    """Give a command to the driver of a network device; the answer is in the buffer. Raises OSError."""
    request = struct.pack("16sP16x", netdev.encode()[:15], ctypes.addressof(buffer))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        fcntl.ioctl(handle, SIOCETHTOOL, request)


def counters(netdev: str, control: Control = control) -> dict[str, int]:
    """All counters of a network device by the driver's names; empty if it has none. Raises nothing."""
    try:
        return dict(_counters(netdev, control))
    except (OSError, struct.error, ValueError):
        return {}


def _counters(netdev: str, control: Control) -> Iterator[tuple[str, int]]:
    head = ctypes.create_string_buffer(struct.pack("=IIQI", SET_INFO, 0, 1 << STATISTICS, 0), 20)
    control(netdev, head)
    _command, _reserved, mask, number = struct.unpack("=IIQI", head.raw)
    if not mask or not 0 < number <= MOST_COUNTERS:
        return
    names = ctypes.create_string_buffer(struct.pack("=III", STRINGS, STATISTICS, number), 12 + number * NAME_BYTES)
    control(netdev, names)
    values = ctypes.create_string_buffer(struct.pack("=II", STATS, number), 8 + number * 8)
    control(netdev, values)
    for index, value in enumerate(struct.unpack_from(f"={number}Q", values.raw, 8)):
        start = 12 + index * NAME_BYTES
        name = names.raw[start : start + NAME_BYTES].split(b"\0", 1)[0]
        yield name.decode("utf-8", errors="replace").strip(), value


def priorities(found: Mapping[str, int]) -> dict[str, dict[str, dict[str, int]]]:
    """The counters of each priority: what they count, then the direction, then the priority."""
    result: dict[str, dict[str, dict[str, int]]] = {}
    for name, value in found.items():
        for pattern, (what, direction) in PATTERNS.items():
            if match := pattern.fullmatch(name):
                result.setdefault(what, {}).setdefault(direction, {})[match[1]] = value
                break
    return result


def discards(found: Mapping[str, int]) -> int | None:
    """The packets that were lost because there was no room; None if the driver does not count them."""
    known = [found[name] for name in DISCARDS if name in found]
    return sum(known) if known else None
