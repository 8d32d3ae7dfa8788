# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The entries and instances that guides show can be copied: the checks of the roles accept each block."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.engine import input_check
from ansible_collections.baremetal.inference.plugins.module_utils.engine.declared import Declared

pytestmark = pytest.mark.once

DOCS = Path(__file__).parents[3] / "docs"

COMMIT = "0123456789abcdef0123456789abcdef01234567"

BASES: dict[str, Any] = {"qwen3-8b": {"model": "Qwen/Qwen3-8B", "revision": COMMIT}}
"""Entries that blocks name as a base, and that another block defines."""


def blocks() -> Iterator[tuple[str, dict[str, Any]]]:
    """Place and content of each block with entries of a model registry."""
    for file in sorted(DOCS.glob("*.md")):
        text = file.read_text(encoding="utf-8")
        for found in re.finditer(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            content = yaml.safe_load(found[1])
            if isinstance(content, dict) and isinstance(content.get("models"), dict):
                yield f"{file.name}:{text[: found.start()].count(chr(10)) + 1}", content


BLOCKS = dict(blocks())


@pytest.mark.parametrize("place", BLOCKS)
def test_the_checks_accept_each_block_with_models(place: str) -> None:
    shown = BLOCKS[place]
    models = {**BASES, **shown["models"]}
    # If a block has no instances, each entry gets one, except adapters: their base serves them.
    names = [name for name, entry in shown["models"].items() if "adapter" not in entry]
    made = [{"name": f"one-{number}", "model": name, "port": 5100 + number} for number, name in enumerate(names)]
    instances = shown.get("instances") or made
    declared = Declared.read(models, instances)
    assert [str(one) for one in (*declared.problems, *input_check.source_problems(models, instances))] == []
    assert declared.warnings == ()


def test_the_guide_to_models_shows_an_entry_of_each_kind() -> None:
    shown = "".join(str(BLOCKS[place]) for place in BLOCKS if place.startswith("models.md:"))
    for words in ("expect", "order", "dimension", "label", "audio", "adapter", "qwen3-0.6b", "ngram", "image"):
        assert f"'{words}'" in shown, words
