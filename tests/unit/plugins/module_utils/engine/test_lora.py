# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The flags and the mistakes of the LoRA adapters of an instance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine import lora
from ansible_collections.baremetal.inference.plugins.module_utils.engine.lora import Lora
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Settings
from ansible_collections.baremetal.inference.plugins.module_utils.models.adapter_facts import AdapterFacts
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.config import Config
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.entries import Entry
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

BASE = Entry("large", "large", "/srv/large", flags={"dtype": "float32"})

SETTINGS = Settings(store_path="/mnt/models", fast_path="/mnt/nvme")


def one(name: str, rank: int | None) -> Lora:
    facts = AdapterFacts(rank=rank, layers=2) if rank else None
    entry = Entry(name, name, f"/srv/{name}", adapter_of="large")
    return Lora(entry, StoredModel(f"/mnt/models/{name}/0123456789ab", "0123456789ab"), facts)


LORAS = [one("legal", 16), one("medical", 40)]


def with_flags(**flags: Any) -> Entry:
    return replace(BASE, flags={**BASE.flags, **{key.replace("_", "-"): value for key, value in flags.items()}})


def test_without_adapters_the_flags_stay() -> None:
    assert lora.flags(BASE, [], SETTINGS) is BASE.flags
    assert lora.paths([], SETTINGS) == {}


def test_the_least_rank_that_is_enough_is_chosen() -> None:
    assert lora.flags(BASE, LORAS, SETTINGS) == {
        "dtype": "float32",
        "enable-lora": True,
        "max-lora-rank": 64,
        "max-loras": 2,
        "lora-modules": ["legal=/mnt/nvme/legal/0123456789ab", "medical=/mnt/nvme/medical/0123456789ab"],
    }
    assert lora.flags(BASE, LORAS[:1], SETTINGS)["max-lora-rank"] == 16
    # The files of the adapter were not read yet, so its rank is unknown.
    assert lora.flags(BASE, [one("legal", None)], SETTINGS)["max-lora-rank"] == 1


def test_flags_in_the_entry_of_the_base_win() -> None:
    found = lora.flags(with_flags(max_lora_rank=128, max_loras=4), LORAS, SETTINGS)
    assert (found["max-lora-rank"], found["max-loras"]) == (128, 4)


@pytest.mark.parametrize(
    ("entry", "rank", "words"),
    [
        (
            with_flags(max_lora_rank=8),
            16,
            "has rank 16, more than max-lora-rank of large, 8: raise max-lora-rank in large",
        ),
        (BASE, 600, "has rank 600, more than vLLM's limit, 512: train an adapter of a lower rank"),
    ],
)
def test_a_rank_above_the_limit_is_refused(entry: Entry, rank: int, words: str) -> None:
    (problem,) = lora.problems(entry, None, [one("legal", rank)])
    assert str(problem).startswith("models.legal: adapter: it ") and words in str(problem)


def test_every_adapter_is_checked() -> None:
    found = lora.misfits(with_flags(max_lora_rank=8), Config(layers=1), [*LORAS, one("none", None)])
    assert [each.key for each in found] == ["models.legal"] * 2 + ["models.medical"] * 2
    assert "its base has 1: it belongs to another model" in found[0].message
