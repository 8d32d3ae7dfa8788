# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action for each XID. Private to the collection; pure.

Source: NVIDIA, "Analyzing Xid Errors with the Xid Catalog" (docs.nvidia.com/deploy/xid-errors), for Ampere and later as
of 2025-10-29, XIDs 1 to 172; read on 2026-11-22. NVIDIA's documentation wins over tables of cloud vendors. Exceptions
have a comment at their line.

Actions here, for NVIDIA's column Immediate Action:

- IGNORE: none; or watch, if the hardware wears
- RESTART_APP: application
- RESET_GPU: reset
- RESTART_BM, RESTART_VM: reboot
- CHECK_MECHANICALS: replace
- a workflow, or nothing: watch, because XID 154 then names the action

The table leaves out XIDs that NVIDIA marks as unused or only for its support.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NONE, APPLICATION, WATCH, RESET, REBOOT, REPLACE = "none", "application", "watch", "reset", "reboot", "replace"
"""From mild to severe: no action; restart the process; watch; reset the GPU; reboot the machine; have the hardware
repaired or replaced."""

ORDER = (NONE, APPLICATION, WATCH, RESET, REBOOT, REPLACE)

MEANINGS: dict[int, tuple[str, str]] = {
    8: (APPLICATION, "the GPU stopped processing"),
    11: (APPLICATION, "invalid push buffer stream"),
    13: (APPLICATION, "graphics engine exception"),
    25: (APPLICATION, "invalid push buffer stream"),
    31: (APPLICATION, "GPU memory page fault"),
    32: (APPLICATION, "invalid push buffer stream"),
    37: (NONE, "driver firmware error"),
    38: (NONE, "driver firmware error"),
    **dict.fromkeys((39, 40, 41, *range(70, 73), *range(75, 78), 85), (APPLICATION, "copy engine exception")),
    43: (NONE, "a process's channel was reset"),
    44: (NONE, "fault during a context switch"),
    45: (NONE, "channels were removed because of an earlier error, or because a process ended"),
    46: (RESET, "the GPU stopped processing"),
    # NVIDIA has a workflow. AWS's table for driver branch 590 has a reset, which is clear.
    48: (RESET, "double bit ECC error"),
    54: (REPLACE, "auxiliary power is not connected"),
    60: (APPLICATION, "video processor exception"),
    62: (RESET, "internal microcontroller halt"),
    63: (NONE, "a row or page of memory was set aside"),
    64: (RESET, "a row or page of memory could not be set aside"),
    66: (NONE, "illegal access by the driver"),
    67: (NONE, "illegal access by the driver"),
    **dict.fromkeys((68, 83, 84, 88, 89, *range(96, 99)), (APPLICATION, "video decoder exception")),
    69: (APPLICATION, "graphics engine class error"),
    74: (WATCH, "NVLink error"),
    78: (WATCH, "a virtual GPU cannot start: driver and firmware do not fit"),
    79: (REBOOT, "the GPU has fallen off the bus"),
    80: (APPLICATION, "corrupted data sent to the GPU"),
    **dict.fromkeys((82, *range(99, 106)), (APPLICATION, "JPEG engine exception")),
    86: (APPLICATION, "optical flow engine exception"),
    92: (WATCH, "high rate of single bit ECC errors"),
    93: (WATCH, "the InfoROM has been written too often"),
    94: (APPLICATION, "contained memory error"),
    95: (RESET, "uncontained memory error"),
    106: (NONE, "test message"),
    107: (NONE, "test message"),
    109: (RESET, "context switch timeout"),
    110: (RESET, "security fault"),
    119: (RESET, "the GPU's system processor (GSP) does not answer"),
    120: (RESET, "error of the GPU's system processor (GSP)"),
    121: (WATCH, "corrected error of the chip-to-chip link"),
    **dict.fromkeys(range(126, 136), (APPLICATION, "copy engine exception")),
    136: (RESET, "link training failed"),
    # NVIDIA has IGNORE, although most are bugs of applications.
    137: (APPLICATION, "illegal access over NVLink"),
    139: (APPLICATION, "optical flow engine exception"),
    140: (RESET, "unrecovered ECC error"),
    141: (NONE, "CUDA fast path error"),
    143: (RESET, "initialisation of the GPU failed"),
    144: (WATCH, "NVLink: SAW error"),
    145: (WATCH, "NVLink: RLW error"),
    146: (WATCH, "NVLink: TLW error"),
    147: (WATCH, "NVLink: TREX error"),
    148: (WATCH, "NVLink: NVLPW control error"),
    149: (WATCH, "NVLink: NETIR error"),
    150: (WATCH, "NVLink: MSE error"),
    151: (REBOOT, "key rotation failed"),
    152: (NONE, "deep learning accelerator: memory error"),
    153: (NONE, "deep learning accelerator: timeout"),
    155: (RESET, "NVLink: software-defined error"),
    156: (RESET, "a resource will be retired"),
    157: (WATCH, "a resource could not be retired"),
    158: (RESET, "fatal timeout of the GPU"),
    159: (WATCH, "chip-to-chip link: error without data"),
    160: (NONE, "a channel was retired"),
    161: (NONE, "a channel could not be retired"),
    162: (NONE, "power smoothing works again"),
    163: (WATCH, "power smoothing is off: too hot, or timed out"),
    164: (WATCH, "power smoothing is nearly worn out"),
    165: (WATCH, "power smoothing is worn out"),
    166: (WATCH, "NVLink: unencrypted traffic in confidential computing"),
    167: (WATCH, "fatal timeout of PCIe"),
    # NVIDIA's column is empty. The text of the XID says: enable ECC, or boot again.
    168: (REBOOT, "an error in the memory of the GPU's firmware: enable ECC, or boot again"),
    169: (WATCH, "internal microcontroller halt (SEC2)"),
    170: (WATCH, "NVLink: interrupt in confidential computing"),
    # These come together with XID 48, whose action counts.
    171: (WATCH, "uncorrectable error of the GPU's memory (DRAM)"),
    172: (WATCH, "uncorrectable error within the GPU (SRAM)"),
}

RECOVERY_CHANGED = 154
"""This XID names the GPU's recovery action in its text, which wins over the table."""

WORDS = (
    (REBOOT, re.compile(r"\breboot\b", re.IGNORECASE)),
    (RESET, re.compile(r"\breset\b", re.IGNORECASE)),
    (WATCH, re.compile("drain p2p", re.IGNORECASE)),
    (NONE, re.compile(r"\bnone\b|^n/a$", re.IGNORECASE)),
)
"""Recovery actions as XID 154 and nvidia-smi write them: "GPU Reset Required", "Drain and Reset", "Node Reboot
Required", "Drain P2P", "None"; shorter in nvidia-smi. Source: NVIDIA's text about XID 154; nvml.h."""


@dataclass(frozen=True)
class Meaning:
    """The action for an XID, and its meaning in words."""

    action: str
    words: str


def meaning(number: int, text: str = "") -> Meaning:
    """Action and meaning of an XID. For an unknown XID, the action is watch."""
    if number == RECOVERY_CHANGED:
        # "changed from 0x0 (None) to 0x1 (GPU Reset Required)": the new action counts.
        return Meaning(wanted(text.rpartition(" to ")[2]), "the recovery action of the GPU has changed")
    action, words = MEANINGS.get(number, (WATCH, "not in the table"))
    return Meaning(action, words)


def wanted(words: str) -> str:
    """The action by a GPU's own words. For unknown words, the action is watch."""
    return next((action for action, pattern in WORDS if pattern.search(words)), WATCH)


def worst(actions: list[str]) -> str:
    """The most severe of several actions; `none` for an empty list."""
    return max(actions, key=ORDER.index, default=NONE)
