# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The digest of a gang's release: which changes give another digest, and which do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine import adapters
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang import digest

from .test_members import gang

GIVEN: dict[str, Any] = {
    "gang": gang(),
    "image": "vllm@sha256:0",
    "model": "llama",
    "revision": "abc",
    "port": 5010,
    "arguments": ["--dtype", "half"],
    "environment": {"VLLM_LOGGING_LEVEL": "INFO", "NCCL_IB_HCA": "mlx5_0", "VLLM_API_KEY": "s3cret-value"},
    "engine": adapters.get(),
}


def of(**changes: Any) -> str:
    return digest.digest(digest.parts(**{**GIVEN, **changes}), "big")


def test_each_member_has_the_same_digest() -> None:
    assert of() == of(gang=gang(1)) and len(of()) == 64
    own = {"VLLM_LOGGING_LEVEL": "INFO", "NCCL_IB_HCA": "mlx5_7", "VLLM_API_KEY": "another-value", "VLLM_HOST_IP": "x"}
    assert of(environment=own) == of()


@pytest.mark.parametrize(
    "changes",
    [
        {"image": "vllm@sha256:1"},
        {"model": "other"},
        {"revision": "abd"},
        {"port": 5011},
        {"arguments": ["--dtype", "float"]},
        {"environment": {"VLLM_LOGGING_LEVEL": "DEBUG"}},
        {"gang": gang(nodes=3)},
        {"gang": replace(gang(), rendezvous_port=29511)},
        {"gang": replace(gang(), members=gang().members[::-1])},
        {"gang": replace(gang(), executor="ray")},
        {"gang": replace(gang(), dashboard=True)},
    ],
)
def test_each_part_that_members_must_share_changes_the_digest(changes: dict[str, Any]) -> None:
    assert of(**changes) != of()


def test_the_parts_have_no_value_of_a_variable() -> None:
    assert "INFO" not in str(digest.parts(**GIVEN)) and "s3cret" not in str(digest.parts(**GIVEN))
