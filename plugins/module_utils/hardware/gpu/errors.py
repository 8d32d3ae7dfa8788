# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Classifies failures of nvidia-smi by its output and exit status. Private to the collection."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..pci import normalise

WORDS = (
    ("driver_not_loaded", "couldn't communicate with the nvidia driver"),
    ("driver_not_loaded", "driver not loaded"),
    ("driver_library_mismatch", "driver/library version mismatch"),
    ("gpu_lost", "gpu is lost"),
    ("gpu_lost", "fallen off the bus"),
    ("gpu_requires_reset", "gpu requires reset"),
    ("gpu_handle_error", "unable to determine the device handle"),
    ("library_not_found", "couldn't find libnvidia-ml"),
    ("library_not_found", "shared library not found"),
    ("function_not_found", "function not found"),
    ("inforom_corrupted", "inforom is corrupted"),
    ("no_permission", "insufficient permissions"),
    ("nvml_unknown_error", "failed to initialize nvml: unknown error"),
    ("nvml_init_failed", "failed to initialize nvml"),
    ("no_devices", "no devices were found"),
)
"""Kinds by words of nvidia-smi, specific words first. Source: nvmlErrorString of nvml.h, and operators' reports."""

STATUSES = {
    2: "bad_argument",
    4: "no_permission",
    6: "no_devices",
    8: "power_cable",
    9: "driver_not_loaded",
    10: "interrupt_problem",
    12: "library_not_found",
    13: "function_not_found",
    14: "inforom_corrupted",
    15: "gpu_lost",
}
"""Kinds by exit status, for unknown words. Source: nvidia-smi(1), RETURN VALUE; nvmlReturn_t of nvml.h."""

NAMED = re.compile(r"gpu *(?:at )?(?:pci:)?([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-7])?)", re.IGNORECASE)

SHOWN = 2000
"""How many characters of the output are kept."""


@dataclass(frozen=True)
class Failure:
    """A failure: its kind, its message, and the GPU that the message names."""

    kind: str
    message: str
    pci_bus_id: str | None = None


def classify(words: str, code: int | None = 0) -> Failure | None:
    """The failure by output and exit status; None if there is no failure."""
    # Terminals and issue trackers wrap lines; nvidia-smi itself writes two spaces after "lost.".
    words = " ".join(words.split())
    message = words[:SHOWN] or f"nvidia-smi ended with status {code} and printed nothing"
    kind = next((kind for kind, known in WORDS if known in words.casefold()), None)
    kind = kind or (STATUSES.get(code, "failed") if code else None)
    if kind is None:
        return None
    named = NAMED.search(words)
    return Failure(kind, message, normalise(named[1]) if named else None)
