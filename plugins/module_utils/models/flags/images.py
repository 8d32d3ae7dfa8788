# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPUs that images of an engine's version have code for. Private to the collection.

Sources: the PyTorch that each version requires (2.10 up to vLLM 0.19, 2.11 from 0.20 on); PyTorch's RFC 172352, which
removed Volta from the builds of 2.11; TORCH_CUDA_ARCH_LIST in vLLM's docker/Dockerfile, which begins with 7.0.
"""

from __future__ import annotations

import re

Capability = tuple[int, int]

LEAST: Capability = (7, 0)
"""No image of any version has code for older GPUs."""

WITHOUT_VOLTA, LEAST_WITHOUT_VOLTA = (0, 20), (7, 5)
"""The first version without code for Volta, and the compute capability from which it has code."""

_VERSION = re.compile(r"v?(\d+)\.(\d+)")


def least(version: str) -> Capability | None:
    """The least compute capability that images of a version have code for; None for an unknown version."""
    found = _VERSION.match(version)
    if not found:
        return None
    return LEAST_WITHOUT_VOLTA if (int(found[1]), int(found[2])) >= WITHOUT_VOLTA else LEAST


def last(capability: Capability | None) -> str:
    """The last version with code for a GPU, in words; empty if the newest version has code for the GPU."""
    if capability is None or capability >= LEAST_WITHOUT_VOLTA:
        return ""
    if capability < LEAST:
        return f"no version of vLLM has code for it: the least compute capability is {LEAST[0]}.{LEAST[1]}"
    major, minor = WITHOUT_VOLTA
    return f"vLLM {major}.{minor - 1}, in an image built with CUDA 12, is the last version with code for it"
