# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hints for wrong keys of an instance: none may mislead."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.adapters.catalogues import choose
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance_keys import MEANT, hint
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import INSTANCE_KEYS
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.entries import OWN_KEYS


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("shm-size", "write 'shm_size'"),
        ("Port", "write 'port'"),
        ("env", "write environment, or secret_environment for secrets"),
        ("gpu_ids", "write gpus: a number"),
        ("models", "write model: one entry of the model registry"),
        ("replicas", "the gateway balances between them"),
        (
            "tensor_parallel_size",
            "belongs to the model: write 'tensor-parallel-size' in its entry of the model registry",
        ),
        ("--max-model-len", "write 'max-model-len' in its entry of the model registry"),
        ("tp", "write 'tensor-parallel-size'"),
        ("system-prompt", "write 'system-prompt' in its entry of the model registry"),
        ("warm-up-prompts", "write 'warm-up-prompts' in its entry of the model registry"),
        ("acelerator", "did you mean 'accelerator'?"),
    ],
)
def test_a_hint_says_what_to_do(key: str, words: str) -> None:
    assert words in hint(key, INSTANCE_KEYS)


def test_without_a_hint_all_keys_are_named() -> None:
    assert hint("frobnicate", INSTANCE_KEYS) == f"known: {', '.join(sorted(INSTANCE_KEYS))}"


def test_no_wrong_key_with_a_hint_is_a_right_key() -> None:
    assert not set(MEANT) & INSTANCE_KEYS
    kebab = {key.replace("_", "-") for key in MEANT}
    # The engine's flag for keys of clients is set by the role.
    assert kebab & {*OWN_KEYS, *choose().flags, *choose().aliases} == {"api-key"}
