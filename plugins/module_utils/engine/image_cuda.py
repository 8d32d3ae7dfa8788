# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version of CUDA in an engine's image, and which drivers and GPUs that version needs. Private to the
collection."""

from __future__ import annotations

import json
import re
from typing import Any

from ..models.fit.capabilities import Capability
from ..models.fit.misfit import Misfit
from ..models.flags import images
from .image_version import Run

_VARIABLES = (("CUDA_VERSION", re.compile(r"(\d+\.\d+)")), ("NVIDIA_REQUIRE_CUDA", re.compile(r"cuda>=(\d+\.\d+)")))
"""Variables of NVIDIA's base images, which images built on them inherit."""

_TAG = re.compile(r":[^/]*cu(\d\d)(\d)(?!\d)")
"""The version of CUDA in an image's tag, such as v0.33.0-cu129."""

_LEAST: tuple[tuple[int, Capability], ...] = ((13, (7, 5)), (12, (7, 0)))
"""The least compute capability by the major version of CUDA: CUDA 13 has dropped Maxwell, Pascal and Volta (its release
notes, "Deprecated Architectures"); images built with CUDA 12 have code from Volta on (vLLM's requirements)."""


def find(given: str, image: str, docker: str | None, run: Run) -> str:
    """The version of CUDA in an image, such as 12.9; empty where unknown.

    The first source that has it counts: the image's environment, `given` by the operator, the image's tag.
    """
    tagged = _TAG.search(image.partition("@")[0])
    return (docker and _of_image(docker, image, run)) or given or (f"{tagged[1]}.{tagged[2]}" if tagged else "")


def _of_image(docker: str, image: str, run: Run) -> str:
    code, output, _errors = run([docker, "image", "inspect", "--format", "{{json .Config.Env}}", image])
    try:
        lines: Any = json.loads(output) if code == 0 else None
    except ValueError:
        lines = None
    variables = dict(str(line).partition("=")[::2] for line in lines) if isinstance(lines, list) else {}
    for name, form in _VARIABLES:
        if match := form.search(variables.get(name, "")):
            return match[1]
    return ""


def lowest(cuda: str, version: str = "") -> Capability | None:
    """The least compute capability that an image with this CUDA and this version of the engine has code for; None where
    unknown."""
    major = _major(cuda)
    by_cuda = next((least for number, least in _LEAST if major and major >= number), None)
    return max(filter(None, (by_cuda, images.least(version))), default=None)


def driver_misfits(cuda: str, driver: str | None, driver_cuda: str | None) -> list[Misfit]:
    """Why a driver cannot run an image. An image runs on drivers with its major version of CUDA, or a later one."""
    needed, there = _major(cuda), _major(driver_cuda or "")
    if not needed or not there or needed <= there:
        return []
    message = (
        f"has CUDA {driver_cuda}, and the image is built with CUDA {cuda}: install a driver with CUDA {needed}.0 or "
        f"later (docs/hardware.md lists them), or take an image built with CUDA {there} or earlier"
    )
    return [Misfit("driver", "driver", driver, message)]


def _major(version: str) -> int | None:
    match = re.match(r"(\d+)\.\d+", version)
    return int(match[1]) if match else None
