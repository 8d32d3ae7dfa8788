# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel's log and the driver say of the GPUs of an instance. Private to the collection."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from ...engine.release import Release
from ...engine.state.drains import parse_time
from ...hardware.gpu import xid, xid_actions
from ...hardware.pci import sort_key
from .state import State

Gpus = Sequence[Mapping[str, Any]]


def used_by(release: Release, gpus: Gpus) -> list[Mapping[str, Any]]:
    """The GPUs that a release names, by index, UUID, or the UUID of a slice."""
    wanted = {name.partition(":")[0] if name[:1].isdigit() else name for name in release.gpus}
    numbered = _numbered(gpus)
    return [
        gpu
        for gpu in gpus
        if wanted & {numbered.get(gpu["pci_bus_id"], ""), gpu["uuid"], *(part["uuid"] for part in gpu["mig_devices"])}
    ]


def _numbered(gpus: Gpus) -> dict[str, str]:
    """The index of each GPU, by its address. One that is lost has none, and those after it would move up: then they are
    counted as they were when all was well, in the order of their addresses."""
    own = [gpu for gpu in gpus if gpu["pci_bus_id"] and (gpu["reported"] or gpu["driver"] == "nvidia")]
    if all(gpu["reported"] for gpu in own):
        return {gpu["pci_bus_id"]: str(gpu["index"]) for gpu in own}
    addresses = sorted((gpu["pci_bus_id"] for gpu in own), key=sort_key)
    return {address: str(number) for number, address in enumerate(addresses)}


def last_reset(known: State, now: datetime) -> float:
    """When the GPUs of an instance were last reset, in seconds since boot, as the kernel counts; 0 where they were not,
    or before this boot."""
    try:
        ago = (now - parse_time(known.gpus_reset)).total_seconds()
    except ValueError:
        return 0.0
    # Of the future: the clock was set back, and the time of the reset is unknown.
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - ago) if ago >= 0 else 0.0


def needed_by_log(log: str, addresses: Collection[str], since: float, missing: Collection[str] = ()) -> tuple[str, str]:
    """The worst that the log asks for, and its words, of GPUs, since the driver was loaded and a time since boot (s).
    `missing` are those that the driver does not list now: what it said of their start counts."""
    found, errors = xid.recent(log)
    actions, words = [], []
    for one in found:
        if one.pci_bus_id not in addresses or (one.time_s is not None and one.time_s <= since):
            continue
        meaning = xid_actions.meaning(one.xid, one.text)
        actions.append(meaning.action)
        if meaning.action in (xid_actions.RESET, xid_actions.REBOOT, xid_actions.REPLACE):
            words.append(f"XID {one.xid} of GPU {one.pci_bus_id}: {meaning.words}")
    for error in errors:
        if error.pci_bus_id in addresses and error.kind == "fallen_off_bus":
            actions.append(xid_actions.REBOOT)
            words.append(f"GPU {error.pci_bus_id} has fallen off the bus")
        if error.pci_bus_id in missing and error.kind == "init_failed":
            actions.append(xid_actions.REBOOT)
            words.append(f"the driver cannot start GPU {error.pci_bus_id}")
    return xid_actions.worst(actions), "; ".join(dict.fromkeys(words))


def needed_by_driver(own: Gpus, found: Gpus) -> tuple[str, str]:
    """The worst that the driver says these GPUs need, and its words; `found` are all. A kernel's log forgets, and some
    faults have no XID. Where the tool lists no GPU at all, it may be the tool: then nothing is said."""
    listed = any(gpu["reported"] for gpu in found)
    actions, words = [], []
    for gpu in own:
        asks = gpu["recovery_action"]
        if gpu["lost"]:
            actions.append(xid_actions.REBOOT)
            words.append(f"GPU {gpu['pci_bus_id']} has fallen off the bus")
        elif listed and not gpu["reported"]:
            actions.append(xid_actions.REBOOT)
            words.append(f"nvidia-smi does not list GPU {gpu['pci_bus_id']}")
        elif asks:
            actions.append(xid_actions.wanted(asks))
            if actions[-1] != xid_actions.NONE:
                words.append(f"GPU {gpu['pci_bus_id']} asks for: {asks}")
    return xid_actions.worst(actions), "; ".join(dict.fromkeys(words))
