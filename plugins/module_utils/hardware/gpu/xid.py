# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds errors of NVIDIA's driver in the kernel's log: XIDs, and failures without an XID. Private to the collection."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .. import kernel_log
from ..pci import normalise

ADDRESS = r"([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)"

XID = re.compile(rf"NVRM: +Xid \((?:PCI:)?{ADDRESS}\): ([0-9]{{1,5}})\b")
"""A line with an XID. It does not match the SXids of NVSwitch, which another driver writes. Drivers before 2014 write
no "PCI:". Source: NVIDIA's XID documentation, "Viewing Xid error messages"."""

GPU = re.compile(rf"\bGPU (?:at )?(?:PCI:)?{ADDRESS}")

FAILURES = (
    ("fallen_off_bus", re.compile("fallen off the bus")),
    ("init_failed", re.compile("RmInitAdapter failed")),
    ("needs_open_module", re.compile("requires use of the NVIDIA open kernel modules")),
    ("legacy_gpu", re.compile("Legacy (?:drivers|GPU)", re.IGNORECASE)),
)
"""Messages of failures without an XID. Source: nv.c and nv-pci.c of the open kernel modules, and reports."""

DRIVER_LOADED = "NVRM: loading NVIDIA UNIX"
"""The driver's message when it is loaded. Earlier XIDs are out of date. Source: nv.c of the open modules."""

LOADING_SECONDS = 10.0
"""Seconds before DRIVER_LOADED in which the driver may already report a card that does not start."""

WITHIN = 3
"""Largest number of lines of a message, whose first line names the GPU."""


@dataclass(frozen=True)
class Xid:
    """An error with a number of the driver; `time_s` is in seconds since boot."""

    pci_bus_id: str | None
    xid: int
    time_s: float | None
    text: str


@dataclass(frozen=True)
class KernelError:
    """A failure without a number, of kind `fallen_off_bus`, `init_failed`, `needs_open_module` or `legacy_gpu`."""

    pci_bus_id: str | None
    kind: str
    time_s: float | None
    text: str


def find(log: str) -> tuple[list[Xid], list[KernelError]]:
    """The XIDs and the failures without an XID in a log, in its order."""
    xids: list[Xid] = []
    errors: list[KernelError] = []
    named, since, age = None, None, 0
    for line in kernel_log.about(log, "NVRM", after=WITHIN - 1):
        if match := XID.search(line.text):
            xids.append(Xid(normalise(match[1]), int(match[2]), line.time_s, line.text[match.start() :].strip()))
            continue
        # In some logs, only the first line of a longer message starts with the driver's name.
        if match := GPU.search(line.text):
            named, since, age = normalise(match[1]), line.time_s, 0
        age += 1
        kind = next((kind for kind, words in FAILURES if words.search(line.text)), None)
        if kind and ("NVRM" in line.text or (named and age <= WITHIN)):
            address, begun = (named, since) if age <= WITHIN else (None, None)
            time_s = begun if line.time_s is None else line.time_s
            errors.append(KernelError(address, kind, time_s, line.text.strip()))
    return xids, errors


def recent(log: str) -> tuple[list[Xid], list[KernelError]]:
    """XIDs and failures since the driver was last loaded, because a reload resets the GPUs. If the log has no times,
    all XIDs and failures."""
    loads = [line.time_s for line in kernel_log.about(log, DRIVER_LOADED) if line.time_s is not None]
    begin = loads[-1] - LOADING_SECONDS if loads else 0.0
    found, errors = find(log)
    return (
        [one for one in found if one.time_s is None or one.time_s >= begin],
        [one for one in errors if one.time_s is None or one.time_s >= begin],
    )
