# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The memory limit of a new release, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.memory_limit import limit, misfits, of, size
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Settings
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.config import Config
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.weights import Weights
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.host import HostMemory

GIB = 1 << 30
INSTANCE = Instance("main", "m", 5005, gpus=("0",))
FACTS = ModelFacts(config=Config(dtype="bfloat16"), weights=Weights(15 * GIB, 7 * GIB))


def held(entry: dict[str, Any] | None = None, facts: ModelFacts | None = FACTS, **settings: Any) -> HostMemory:
    return of(INSTANCE, entry or {}, facts, None, replace(Settings(), **settings), 64 * 1024)


@pytest.mark.parametrize(
    ("text", "wanted"), [("16g", 16 * GIB), ("512M", 512 << 20), ("1024", 1024), ("5k", 5120), ("0", 0), ("x", 0)]
)
def test_a_size_is_parsed(text: str, wanted: int) -> None:
    assert size(text) == wanted


def test_the_limit_is_what_the_engine_needs_in_whole_gib() -> None:
    # 1.1 x 15 of weights, 16 of /dev/shm, and 2 processes of 8
    assert limit(held(), 512 * 1024) == "49g"
    assert limit(held(shm_size="1g"), 512 * 1024) == "34g"


def test_the_limit_leaves_memory_to_the_node() -> None:
    assert limit(held({"kv-offloading-size": 400}), 400 * 1024) == "380g"
    assert limit(held(), 32 * 1024) == "28g"
    assert limit(held(), 6 * 1024) == "3g"


def test_without_a_known_need_the_limit_is_that_of_the_node() -> None:
    assert limit(held(facts=None), 100 * 1024) == "95g"
    assert limit(held(facts=None), None) == ""
    assert limit(held(), None) == "49g"


def refused(memory: str, entry: dict[str, Any] | None = None, total: int | None = 512 * 1024) -> str:
    settings = replace(Settings(), memory=memory)
    found = misfits(held(entry, memory=memory), settings, total, "memory of instance main")
    return "\n".join(map(str, found))


def test_a_limit_below_the_weights_is_refused() -> None:
    words = refused("8g")
    assert words.startswith("memory of instance main: '8g': is less than the 15.0 GiB")
    assert "(weights 15.0)" in words and "remove it" in words
    assert refused("15g") == "" and refused("") == "" and refused("0") == ""
    assert "(weights 15.0, offloaded by flags 20.0)" in refused("30g", {"kv-offloading-size": 20})


def test_more_than_the_node_has_is_refused() -> None:
    words = refused("", {"kv-offloading-size": 300, "cpu-offload-gb": 300})
    assert "put 600.0 GiB into the memory of the host, which has 512.0 GiB" in words
    assert refused("", {"kv-offloading-size": 300}) == ""
    assert refused("", {"kv-offloading-size": 3000}, None) == ""
