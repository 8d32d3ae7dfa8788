# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated prefix cache of the paced engine."""

from __future__ import annotations

import asyncio

import pytest
from paced_engine import Engine, PrefixCache

BLOCK = 64


def text(*blocks: str) -> str:
    return "".join(block * BLOCK for block in blocks)


def test_a_prompt_finds_the_blocks_that_it_shares_from_its_beginning() -> None:
    cache = PrefixCache(10)
    assert cache.use(text("a", "b", "c")) == (48, 0)
    assert cache.use(text("a", "b", "d")) == (48, 32)
    # The same block after another beginning is another block.
    assert cache.use(text("x", "b")) == (32, 0)
    # A block that is not full is not kept.
    assert cache.use("a" * (BLOCK + 8)) == (18, 16)


def test_the_cache_drops_the_block_that_was_unused_for_longest() -> None:
    cache = PrefixCache(2)
    cache.use(text("a"))
    cache.use(text("b"))
    assert cache.use(text("a")) == (16, 16)
    cache.use(text("c"))
    assert cache.use(text("b")) == (16, 0)


def test_only_an_engine_with_a_cache_reports_cached_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(round(seconds, 6))

    monkeypatch.setattr(asyncio, "sleep", sleep)
    messages = [{"role": "user", "content": "a" * 1000}]
    assert asyncio.run(Engine().prefill(messages)) == {"prompt_tokens": 1}
    cached = Engine(100)
    first = asyncio.run(cached.prefill(messages))
    again = asyncio.run(cached.prefill(messages))
    assert first["prompt_tokens"] == again["prompt_tokens"] == 251
    assert first["prompt_tokens_details"] == {"cached_tokens": 0}
    assert again["prompt_tokens_details"] == {"cached_tokens": 240}
    assert slept == [0.0251, 0.0011]
