# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks whether CUDA works, by calls into the driver's library: nvidia-smi can succeed where CUDA fails.

Private to the collection.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass

from ...core.commands import Outcome, run

LIBRARY = "libcuda.so.1"

SCRIPT = """\
import ctypes, json, sys
try:
    cuda = ctypes.CDLL(sys.argv[1])
    code = cuda.cuInit(0)
    text, version, count = ctypes.c_char_p(), ctypes.c_int(), ctypes.c_int()
    cuda.cuGetErrorName(code, ctypes.byref(text))
    cuda.cuDriverGetVersion(ctypes.byref(version))
    if code == 0:
        code = cuda.cuDeviceGetCount(ctypes.byref(count))
        cuda.cuGetErrorName(code, ctypes.byref(text))
    answer = {
        "code": code,
        "name": text.value.decode() if text.value else None,
        "devices": count.value if code == 0 else None,
        "cuda": version.value or None,
    }
except (OSError, AttributeError) as error:
    answer = {"error": str(error)}
print(json.dumps(answer))
"""
"""Runs in a separate process, because cuInit may hang in the kernel or end the calling process.

Source: CUDA driver API, chapters Initialization, Version Management, Device Management, Error Handling.
"""

ADVICE = {
    2: "the GPUs have no memory left: see nvidia-smi for the processes that use it",
    46: "a GPU is in exclusive mode and in use, or does not answer: see nvidia-smi -q -d COMPUTE",
    100: "the driver sees no GPU, or CUDA_VISIBLE_DEVICES hides them: compare with lspci -d 10de:",
    101: "CUDA cannot use a GPU, for example one in MIG mode without MIG devices: see nvidia-smi -L",
    802: "the NVLink fabric is not up: see systemctl status nvidia-fabricmanager, whose version must be the driver's",
    803: "libraries and loaded kernel module are of different versions: reboot, or reload the module",
    804: "the libraries are newer than the loaded kernel module, which these GPUs refuse: install the module's version",
    999: "nvidia-uvm is not loaded, or /dev/nvidia-uvm does not exist: run nvidia-modprobe -c 0 -u, and see dmesg",
}
"""Cause and remedy by code. Source of the meaning: enum CUresult of cuda.h."""


@dataclass(frozen=True)
class Check:
    """The answer of CUDA. Unknown fields are None."""

    ok: bool
    code: int | None = None
    """CUresult of cuInit, or of cuDeviceGetCount if only cuDeviceGetCount failed; 0 is success."""
    name: str | None = None
    """CUDA_SUCCESS, CUDA_ERROR_NO_DEVICE, …"""
    devices: int | None = None
    """How many GPUs, or MIG devices, CUDA can use."""
    cuda_version: str | None = None
    """The highest version of CUDA that the driver supports, as 13.0."""
    message: str = ""
    """Cause and remedy; empty if CUDA works."""


def check(library: str, timeout: float, runner: Callable[..., Outcome] = run) -> Check:
    """Initialise CUDA in a child process that gets `timeout` seconds. Raises nothing."""
    # -I: neither PYTHON variables of the caller nor the working directory change what Python imports.
    outcome = runner([sys.executable, "-I", "-c", SCRIPT, library], timeout)
    if outcome.failure:
        return Check(False, message=f"CUDA did not answer: {outcome.message}. See dmesg for Xid and NVRM lines")
    try:
        answer = json.loads(outcome.stdout)
    except ValueError:
        said = outcome.stderr.strip().splitlines()
        end = f"signal {-outcome.code}" if outcome.code and outcome.code < 0 else f"exit status {outcome.code}"
        words = f"{end}: {said[-1]}" if said else end
        return Check(False, message=f"CUDA ended the process that called it, with {words}; see dmesg")
    if "error" in answer:
        return Check(False, message=f"{answer['error']}: install the driver's libraries (libcuda1)")
    return _read(answer["code"], answer["name"], answer["devices"], answer["cuda"])


def _read(code: int, name: str | None, devices: int | None, cuda: int | None) -> Check:
    # 12020 means version 12.2. Source: cuDriverGetVersion.
    version = f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None
    if code == 0:
        return Check(True, code, name, devices, version)
    advice = ADVICE.get(code, "see dmesg for Xid and NVRM lines")
    return Check(False, code, name, None, version, f"CUDA fails with {name or 'error'} ({code}): {advice}")
