# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CUDA of an image, and the drivers and GPUs that can run it."""

from __future__ import annotations

import json

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine import image_cuda


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (["PATH=/bin", "CUDA_VERSION=12.9.1"], "12.9"),
        (["NVIDIA_REQUIRE_CUDA=cuda>=13.0 brand=unknown,driver>=535"], "13.0"),
        (["CUDA_VERSION=none"], ""),
        ([], ""),
        (None, ""),
    ],
)
def test_the_environment_of_the_image_has_its_cuda(variables: list[str] | None, expected: str) -> None:
    asked: list[list[str]] = []

    def run(argv: list[str]) -> tuple[int, str, str]:
        asked.append(argv)
        return 0, json.dumps(variables), ""

    assert image_cuda.find("", "image", "docker", run) == expected
    assert asked[0][:3] == ["docker", "image", "inspect"]


def test_the_image_counts_before_the_operator_and_without_both_the_result_is_empty() -> None:
    environment = json.dumps(["CUDA_VERSION=13.0.1"])
    assert image_cuda.find("12.4", "image", "docker", lambda argv: (0, environment, "")) == "13.0"
    assert image_cuda.find("12.4", "image", "docker", lambda argv: (1, "", "")) == "12.4"
    assert image_cuda.find("", "image", "docker", lambda argv: (1, "", "no such image")) == ""
    assert image_cuda.find("", "image", "docker", lambda argv: (0, "{", "")) == ""
    assert image_cuda.find("", "image", None, lambda argv: (0, "[]", "")) == ""


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("vllm/vllm-openai:v0.33.0-cu129@sha256:abc", "12.9"),
        ("registry:5000/vllm-cu12x:v0.33.0@sha256:cu130", ""),
        ("vllm/vllm-openai:v0.33.0@sha256:abc", ""),
    ],
)
def test_without_the_image_its_tag_may_have_the_cuda(image: str, expected: str) -> None:
    assert image_cuda.find("", image, None, lambda argv: (0, "[]", "")) == expected
    assert image_cuda.find("", image, "docker", lambda argv: (0, json.dumps(["CUDA_VERSION=13.0.1"]), "")) == "13.0"


@pytest.mark.parametrize(
    ("cuda", "version", "least"),
    [
        ("13.0", "", (7, 5)),
        ("12.9", "", (7, 0)),
        ("11.8", "", None),
        ("", "", None),
        ("x", "", None),
        ("12.9", "0.19.1", (7, 0)),
        ("12.9", "0.33.0", (7, 5)),
        ("", "0.33.0", (7, 5)),
        ("13.0", "0.19.1", (7, 5)),
    ],
)
def test_the_least_compute_capability_depends_on_cuda_and_on_the_version_of_vllm(
    cuda: str, version: str, least: tuple[int, int] | None
) -> None:
    assert image_cuda.lowest(cuda, version) == least


@pytest.mark.parametrize(
    ("cuda", "driver", "refused"),
    [
        ("13.0", "12.2", True),
        ("12.9", "12.2", False),
        ("12.9", "13.0", False),
        ("", "12.2", False),
        ("13.0", None, False),
    ],
)
def test_a_driver_with_an_older_major_version_of_cuda_is_refused(cuda: str, driver: str | None, refused: bool) -> None:
    found = image_cuda.driver_misfits(cuda, "535.261.03", driver)
    assert bool(found) is refused
    if refused:
        assert (found[0].key, found[0].value) == ("driver", "535.261.03")
        assert "install a driver with CUDA 13.0 or later" in found[0].message
