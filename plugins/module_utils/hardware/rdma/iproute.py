# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the output of the command `rdma` of iproute2, of any version. Private to the collection."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from ...core.problems import is_integer

ENTRY = re.compile(r"^(?:link |[0-9]+(?:/[0-9]+)?: )([^\s/:]+)(?:/([0-9]+))?:?(?=\s|$)", re.MULTILINE)
"""Start of an entry in text: "link mlx5_0/1 ", in old versions "0/1: mlx5_0/1: "; for a device "0: mlx5_0: "."""

PHYSICAL_STATES = {
    "SLEEP": "Sleep",
    "POLLING": "Polling",
    "DISABLED": "Disabled",
    "ARMED": "PortConfigurationTraining",
    "LINK_UP": "LinkUp",
    "LINK_ERROR_RECOVER": "LinkErrorRecovery",
    "PHY_TEST": "Phy Test",
}
"""Names of physical states in sysfs, by the words of `rdma`. Sources: iproute2 rdma/link.c;
Linux infiniband/core/sysfs.c."""


NO_STATE = (None, "NOP", "UNKNOWN")


@dataclass(frozen=True)
class Link:
    """A port. None for a value that this version or kernel does not print."""

    device: str
    port: int
    state: str | None
    physical_state: str | None
    """The word of `rdma`."""
    netdev: str | None
    lid: int | None
    """On InfiniBand only."""
    sm_lid: int | None


@dataclass(frozen=True)
class Device:
    """A device. None for a value that is not printed."""

    name: str
    node_type: str | None
    """ca, rnic, …"""
    firmware: str | None
    node_guid: str | None
    protocol: str | None
    """ib, roce, iw, …"""


def links(text: str) -> list[Link]:
    """The ports in the output of `rdma -j link` or `rdma link`. Raises ValueError for wrong output."""
    found = []
    for entry in _entries(text):
        name, _slash, number = str(entry.get("ifname") or "").partition("/")
        # Up to iproute2 5.5, the name contains the port.
        port = _integer(entry, "port") or (int(number) if re.fullmatch("[0-9]{1,9}", number) else None)
        if name and port is not None:
            found.append(
                Link(
                    device=name,
                    port=port,
                    state=_word(entry, "state"),
                    physical_state=_word(entry, "physical_state"),
                    netdev=_word(entry, "netdev"),
                    lid=_integer(entry, "lid"),
                    sm_lid=_integer(entry, "sm_lid"),
                )
            )
    return found


def devices(text: str) -> list[Device]:
    """The devices in the output of `rdma -j dev` or `rdma dev`. Raises ValueError for wrong output."""
    return [
        Device(
            name=name,
            node_type=_word(entry, "node_type"),
            firmware=_word(entry, "fw"),
            node_guid=_word(entry, "node_guid"),
            protocol=_word(entry, "protocol"),
        )
        for entry in _entries(text)
        if (name := _word(entry, "ifname"))
    ]


def physical_state(word: str | None) -> str | None:
    """A physical state by its name in sysfs; None if unknown."""
    return None if word in NO_STATE else PHYSICAL_STATES.get(word or "", word)


def _entries(text: str) -> list[dict[str, Any]]:
    """The entries in JSON, or in text: a version without JSON ignores the option -j."""
    # Such a version prints nothing if there are no devices.
    if not text.strip() or ENTRY.match(text):
        return _text_entries(text)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(data, list):
        raise ValueError("not a list of entries")
    return [entry for entry in data if isinstance(entry, dict)]


def _text_entries(text: str) -> list[dict[str, Any]]:
    pieces = ENTRY.split(text)[1:]
    entries = []
    for name, port, rest in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        # Pairs of name and value. Only the last value, capabilities, has several words.
        words = rest.split()
        entries.append({**dict(zip(words[::2], words[1::2], strict=False)), "ifname": name, "port": port})
    return entries


def _word(entry: dict[str, Any], key: str) -> str | None:
    word = entry.get(key)
    return word if isinstance(word, str) and word else None


def _integer(entry: dict[str, Any], key: str) -> int | None:
    number = entry.get(key)
    if isinstance(number, str) and re.fullmatch("[0-9]{1,9}", number):
        return int(number)
    return number if is_integer(number) else None
