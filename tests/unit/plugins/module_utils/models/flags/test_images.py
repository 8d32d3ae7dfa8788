# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPUs that images of an engine's version have code for."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.flags import images


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.19.1", (7, 0)),
        ("v0.20.0", (7, 5)),
        ("0.32.0+cpu", (7, 5)),
        ("1.0.0rc1", (7, 5)),
        ("", None),
        ("latest", None),
    ],
)
def test_the_least_compute_capability_depends_on_the_version(version: str, expected: tuple[int, int] | None) -> None:
    assert images.least(version) == expected


@pytest.mark.parametrize(
    ("capability", "words"),
    [
        ((7, 0), "vLLM 0.19, in an image built with CUDA 12, is the last version with code for it"),
        ((7, 2), "vLLM 0.19, in an image built with CUDA 12, is the last version with code for it"),
        ((6, 0), "no version of vLLM has code for it: the least compute capability is 7.0"),
        ((7, 5), ""),
        (None, ""),
    ],
)
def test_a_gpu_below_the_least_compute_capability_has_a_last_version(
    capability: tuple[int, int] | None, words: str
) -> None:
    assert images.last(capability) == words
