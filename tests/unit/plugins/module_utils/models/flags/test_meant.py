# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hints for wrong keys of an entry: no hint may mislead."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.catalogue import choose
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.meant import (
    MAY_HOLD_SECRETS,
    MEANT,
    near,
)
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.entries import OWN_KEYS, read

NO_HINT = "`vllm serve --help=all` lists the flags"


def hint(key: str, value: Any = "x") -> str:
    """The message of the only problem of an entry with this key."""
    (problem,) = read({"m": {"model": "/srv/x", key: value}}, choose()).problems
    return problem.message


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("rope-scaling", "hf-overrides: {rope_parameters: …}"),
        ("rope-theta", "hf-overrides: {rope_parameters: …}"),
        ("max-position-embeddings", "hf-overrides: {max_position_embeddings: …}"),
        ("gpus", "set it in the instance"),
        ("num-gpus", "set gpus in the instance"),
        ("device", "set gpus in the instance"),
        ("image", "set image in the instance, an item of instances; or engine_image"),
        ("env", "set environment or secret_environment in the instance, an item of instances; or vllm_environment"),
        ("secret-environment", "in the instance, an item of instances; or vllm_environment"),
        ("memory", "set memory in the instance, an item of instances; or vllm_memory"),
        ("shm-size", "set shm_size in the instance, an item of instances; or vllm_shm_size"),
        ("args", "as a key of the entry itself"),
        ("engine-args", "as a key of the entry itself"),
        ("path", "write it as model"),
        ("sha256", "write checksum"),
        ("commit", "write revision"),
        ("name", "the key of the entry is its name"),
        ("task", "the engine reads the task from the model"),
        ("context-length", "write max-model-len"),
        ("speculative-model", "speculative-config: {model: ENTRY"),
        ("temperature", "write override-generation-config"),
        ("max-batch-size", "write max-num-seqs"),
        ("enable-reasoning", "write reasoning-parser"),
        ("adapters", "write an entry with base and adapter"),
        ("replicas", "an item of instances for each engine"),
        ("nodes", "in an item of instances, in host_vars of the node"),
        # A similar name, or a part of a name.
        ("dtypee", "did you mean 'dtype'?"),
        ("quant", "did you mean 'quantization'?"),
        ("tool-parser", "did you mean 'tool-call-parser'?"),
        ("gpu-utilization", "did you mean 'gpu-memory-utilization'?"),
        ("prefix-caching", "did you mean 'enable-prefix-caching'?"),
        ("kv-cache", "did you mean 'kv-cache-dtype'?"),
        ("template", "did you mean 'chat-template'?"),
        # Nothing is near.
        ("throughput-target", NO_HINT),
        ("healthcheck", NO_HINT),
        # Names of other engines, and of clients.
        ("tp-size", "write tensor-parallel-size"),
        ("mem-fraction-static", "write gpu-memory-utilization"),
        ("max-running-requests", "write max-num-seqs"),
        ("max-total-tokens", "write max-model-len"),
        ("quantize", "write quantization"),
        ("model-id", "write it as model: a hub id"),
        ("hf_repo", "write it as model: a hub id"),
        ("user", "set it in the instance"),
    ],
)
def test_a_wrong_key_has_a_hint_about_the_right_key(key: str, words: str) -> None:
    assert words in hint(key)
    # With a value of the wrong form, too, the message is about the key.
    assert words in hint(key, [])


def test_no_wrong_key_with_a_hint_is_a_right_key() -> None:
    assert not set(MEANT) & {*OWN_KEYS, *choose().flags}


def test_a_key_is_near_if_its_name_is_similar_or_a_part() -> None:
    known = ["max-model-len", "max-num-seqs", "model"]
    assert near("max-modle-len", known) == "did you mean 'max-model-len'?"
    assert near("seqs", known) == "did you mean 'max-num-seqs'?"
    assert near("len", known) == near("node", known) == ""


def test_the_keys_that_may_hold_a_secret_include_environments_and_arguments() -> None:
    assert {"env", "environment", "secret-environment", "args", "extra-args"} <= MAY_HOLD_SECRETS <= set(MEANT)
    assert "gpus" not in MAY_HOLD_SECRETS
