# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits for the fabric of the NVSwitches, with which CUDA starts. Private to the collection."""

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
"""Seconds between two questions."""


def unregistered(gpus: Sequence[Mapping[str, Any]]) -> list[str]:
    """The GPUs of the fact `gpus` that the fabric does not have, each with its state.

    Before Hopper the tool tells nothing of it: there CUDA's own answer has to do.
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
    """CUDA's answer, once every GPU is registered with the fabric, or `seconds` later.

    The fabric manager is up before it has registered the GPUs. What else CUDA may say does not get better by waiting.
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
    # CUDA may start, with GPUs that do not reach one another.
    message = found.message or (
        "CUDA starts, and not every GPU is registered with the NVLink fabric: see systemctl status nvidia-fabricmanager"
    )
    return replace(found, ok=False, message=f"{message}. Waited for {seconds:g} s{states}")
