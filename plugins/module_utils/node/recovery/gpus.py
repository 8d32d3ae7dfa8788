# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the GPUs of an instance need, by the kernel's log and the driver. Private to the collection."""

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
    """The GPUs that a release names, by index, UUID, or the UUID of a MIG device."""
    wanted = {name.partition(":")[0] if name[:1].isdigit() else name for name in release.gpus}
    numbered = _numbered(gpus)
    return [
        gpu
        for gpu in gpus
        if wanted & {numbered.get(gpu["pci_bus_id"], ""), gpu["uuid"], *(part["uuid"] for part in gpu["mig_devices"])}
    ]


def _numbered(gpus: Gpus) -> dict[str, str]:
    """The index of each GPU, by its address. If a GPU is lost, the driver gives its index to the next one. Then this
    function numbers all GPUs in the order of their addresses, as the driver does without a fault."""
    own = [gpu for gpu in gpus if gpu["pci_bus_id"] and (gpu["reported"] or gpu["driver"] == "nvidia")]
    if all(gpu["reported"] for gpu in own):
        return {gpu["pci_bus_id"]: str(gpu["index"]) for gpu in own}
    addresses = sorted((gpu["pci_bus_id"] for gpu in own), key=sort_key)
    return {address: str(number) for number, address in enumerate(addresses)}


def last_reset(known: State, now: datetime) -> float:
    """When the GPUs of an instance were last reset, in seconds since boot, like the kernel's times.

    0 if they were not reset since boot, or if the time is unknown.
    """
    try:
        ago = (now - parse_time(known.gpus_reset)).total_seconds()
    except ValueError:
        return 0.0
    # A reset in the future means that the clock was set back: its time is unknown.
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - ago) if ago >= 0 else 0.0


def needed_by_log(log: str, addresses: Collection[str], since: float, missing: Collection[str] = ()) -> tuple[str, str]:
    """The strongest action that the kernel's log asks for, for these GPUs, and why.

    Reads lines since the driver was loaded. Of these, a line with an XID counts only if it came after `since`, in
    seconds since boot, or has no time. The line that the driver cannot start a GPU counts only for `missing` GPUs,
    which the driver does not list.
    """
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
    """The strongest action that the driver asks for, for these GPUs, and why. `found` has all GPUs. Needed because the
    kernel's log loses old lines, and some faults have no XID. If nvidia-smi lists no GPU, nvidia-smi may be at fault,
    and unlisted GPUs count as sound."""
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
