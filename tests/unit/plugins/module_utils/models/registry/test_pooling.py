# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flags for generated text in an entry that asks for vectors or classes."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.catalogue import choose
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.entries import read
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.pooling import GENERATING

VECTORS = {"model": "/srv/vectors", "runner": "pooling"}


def problems(**models: Any) -> list[str]:
    return [str(one) for one in read(models, choose()).problems]


def test_all_flags_for_text_are_refused_at_once_without_the_models_files() -> None:
    flags = {"tool-call-parser": "hermes", "enable-auto-tool-choice": True, "reasoning-parser": "qwen3"}
    found = problems(vectors={**VECTORS, **flags, "speculative-config": {"method": "suffix"}})
    assert [one.partition(": is for generated text")[0] for one in found] == [
        "models.vectors: reasoning-parser: 'qwen3'",
        "models.vectors: tool-call-parser: 'hermes'",
        "models.vectors: enable-auto-tool-choice: True",
        "models.vectors: speculative-config: {'method': 'suffix'}",
    ]
    assert all("this model is served for vectors or classes. Remove the flag" in one for one in found)


def test_a_variant_with_a_text_flag_of_its_base_is_refused() -> None:
    chat = {"model": "/srv/chat", "tool-call-parser": "hermes"}
    (found,) = problems(chat=chat, vectors={"base": "chat", "runner": "pooling"})
    assert found.startswith("models.vectors: tool-call-parser: 'hermes'") and "write model instead of base" in found
    # The mistake of the base is reported once, and not for each of its variants.
    wrong = {**chat, "runner": "pooling"}
    assert len(problems(chat=wrong, other={"base": "chat", "max-model-len": 512})) == 1


@pytest.mark.parametrize("runner", ["auto", "generate", None])
def test_other_runners_are_accepted_without_the_models_files(runner: str | None) -> None:
    entry = {"model": "/srv/chat", "tool-call-parser": "hermes", **({"runner": runner} if runner else {})}
    assert problems(chat=entry) == []


def test_every_refused_flag_is_a_flag_of_the_engine() -> None:
    assert set(GENERATING) <= set(choose().flags)
    assert problems(vectors={**VECTORS, "enable-auto-tool-choice": False}) == []
