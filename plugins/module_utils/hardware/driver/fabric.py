# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits for the fabric of the NVSwitches, without which CUDA does not start. Private to the collection."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .cuda import Check

NOT_READY = 802
"""CUDA_ERROR_SYSTEM_NOT_READY. Source: enum CUresult of cuda.h."""

COMPLETED, SUCCESS = "Completed", "Success"

PAUSE = 5.0
"""Seconds between two tries."""


def unregistered(gpus: Sequence[Mapping[str, Any]]) -> list[str]:
    """The GPUs of the fact `gpus` that are not registered with the fabric, each with its state.

    For GPUs before Hopper, nvidia-smi reports no state, and only CUDA's answer counts.
    """
    found = []
    for gpu in gpus:
        state, status = gpu["fabric"]["state"], gpu["fabric"]["status"]
        if state is not None and (state != COMPLETED or status not in (None, SUCCESS)):
            words = state if status in (None, SUCCESS) else f"{state}, {status}"
            found.append(f"GPU {gpu['pci_bus_id'] or gpu['uuid']}: {words}")
    return found


def wait(
    ask: Callable[[], Check],
    gpus: Callable[[], Sequence[Mapping[str, Any]]],
    seconds: float,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Check:
    """CUDA's answer when every GPU is registered with the fabric, or after `seconds`.

    The fabric manager's unit is active before it has registered the GPUs. Other errors of CUDA are returned at once.
    """
    end = clock() + seconds
    while True:
        found = ask()
        if not found.ok and found.code != NOT_READY:
            return found
        missing = unregistered(gpus())
        if found.ok and not missing:
            return found
        if clock() >= end:
            break
        sleep(PAUSE)
    states = f" ({'; '.join(missing)})" if missing else ""
    # CUDA may start although GPUs do not reach one another.
    message = found.message or (
        "CUDA starts, but not every GPU is registered with the NVLink fabric: see systemctl status nvidia-fabricmanager"
    )
    return replace(found, ok=False, message=f"{message}. Waited for {seconds:g} s{states}")
