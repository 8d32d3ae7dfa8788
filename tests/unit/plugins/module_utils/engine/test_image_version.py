# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version of vLLM in an image: from the operator, the record, the image or its tag, in this order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.engine.image_version import find, kept_as

DIGEST = "sha256:" + "0" * 64
IMAGE = f"registry.example.com:5000/vllm-openai:v0.31.0@{DIGEST}"


class Image:
    """An image whose Python prints a text. Records the commands that were run."""

    def __init__(self, output: str = "0.32.0+cpu\n", code: int = 0) -> None:
        self.answer = (code, output, "")
        self.asked: list[list[str]] = []

    def run(self, argv: list[str]) -> tuple[int, str, str]:
        self.asked.append(argv)
        return self.answer


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    return tmp_path / "registry.json"


def test_the_first_source_that_has_a_version_counts(registry: Path) -> None:
    image = Image("a plugin's greeting\n0.32.0+cpu\n")
    assert find("0.30.0", IMAGE, registry, "docker", image.run) == "0.30.0"
    assert image.asked == []
    assert find("", IMAGE, registry, "docker", image.run) == "0.32.0+cpu"
    assert IMAGE in image.asked[0]
    files.write_json(registry, {"schema": 1, "engine": kept_as(IMAGE, "0.33.0", "")})
    assert find("", IMAGE, registry, "docker", image.run) == "0.33.0"
    assert len(image.asked) == 1


@pytest.mark.parametrize("kept", [kept_as("another", "0.33.0", ""), kept_as(IMAGE, "0.33.0", "0.33.0")])
def test_a_record_of_another_image_or_of_the_operator_does_not_count(registry: Path, kept: dict[str, Any]) -> None:
    files.write_json(registry, {"schema": 1, "engine": kept})
    assert find("", IMAGE, registry, "docker", Image().run) == "0.32.0+cpu"


@pytest.mark.parametrize("text", ["", "[]", '{"engine": 1}', '{"schema": 1, "models": {}}', "\xff"])
def test_a_damaged_record_does_not_count(registry: Path, text: str) -> None:
    registry.write_text(text, encoding="latin-1")
    assert find("", IMAGE, registry, "docker", Image().run) == "0.32.0+cpu"


@pytest.mark.parametrize("image", [Image(code=125), Image(""), Image("Traceback\n"), None])
def test_the_tag_counts_where_the_image_gives_no_version(registry: Path, image: Image | None) -> None:
    run = (image or Image()).run
    assert find("", IMAGE, registry, "docker" if image else None, run) == "0.31.0"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("vllm/vllm-openai:v0.33.0", "0.33.0"),
        ("vllm/vllm-openai:v0.33.0-cu129", "0.33.0"),
        ("vllm-cpu:0.32.0", "0.32.0"),
        ("example.com/ai/vllm:v0.34.0rc1", "0.34.0rc1"),
        ("vllm/vllm-openai", ""),
        ("vllm/vllm-openai:nightly", ""),
        ("vllm.example.com:5000/engine:1.2.0", ""),
        ("example.com/vllm/engine:1.2.0", ""),
        ("example.com/vllm:1.2.0.4", ""),
    ],
)
def test_only_the_tag_of_an_image_named_vllm_has_the_version(registry: Path, name: str, expected: str) -> None:
    """The tag of another image may be the version of another program."""
    assert find("", f"{name}@{DIGEST}", registry, None, Image().run) == expected
