# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads `nvidia-smi nvlink -s` and `nvidia-smi -L`: GPUs with their NVLinks or MIG devices. Private to the
collection."""

from __future__ import annotations

import re

from .models import Nvlink

GPU = re.compile(r"\s*GPU ([0-9]+): .*\(UUID: (GPU-[^)\s]+)\)")
LINK = re.compile(r"\s*Link ([0-9]{1,4}): *(?:<inactive>|([0-9]{1,6}(?:\.[0-9]{1,6})?) GB/s)", re.IGNORECASE)
MIG = re.compile(r"\s*MIG (\S+) +Device +([0-9]{1,4}): \(UUID: (MIG-[^)\s]+)\)")


def links(text: str) -> dict[str, Nvlink]:
    """The links of each GPU, by its UUID."""
    found: dict[str, Nvlink] = {}
    gpu: Nvlink | None = None
    for line in text.splitlines():
        if match := GPU.match(line):
            gpu = found.setdefault(match[2], Nvlink())
        elif gpu is None or not line.strip():
            continue
        elif match := LINK.match(line):
            (gpu.active if match[2] else gpu.inactive).append(int(match[1]))
            gpu.speed_gb_per_s = float(match[2]) if match[2] else gpu.speed_gb_per_s
        elif "nvlink" in line.casefold():
            gpu.message = line.strip()
    return found


def mig_devices(text: str) -> dict[tuple[str, int], tuple[str, str]]:
    """Profile and UUID of each MIG device, by its GPU's UUID and its index."""
    found = {}
    gpu = None
    for line in text.splitlines():
        if match := GPU.match(line):
            gpu = match[2]
        elif gpu and (match := MIG.match(line)):
            found[gpu, int(match[2])] = (match[1], match[3])
    return found
