# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Affinity keys that no request to a model has."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.keyless import mistake


@pytest.mark.parametrize(
    ("entry", "tasks", "keyless"),
    [
        ({"routing": "affinity"}, ("transcribe",), True),
        ({"routing": "affinity", "affinity-key": ["user", "prefix"]}, ("transcribe",), True),
        ({"routing": "affinity", "affinity-key": ["header", "user"], "affinity-header": "X-S"}, ("transcribe",), False),
        ({"routing": "affinity"}, ("generate", "transcribe"), False),
        ({"routing": "affinity"}, (), False),
        ({"routing": "least-connections"}, ("transcribe",), False),
        ({}, ("transcribe",), False),
    ],
)
def test_an_affinity_key_without_a_header_is_a_mistake_for_a_model_that_only_transcribes(
    entry: dict[str, Any], tasks: tuple[str, ...], keyless: bool
) -> None:
    words = mistake({"large": {"model": "/srv/large", **entry}}, "large", tasks)
    assert bool(words) is keyless
    if keyless:
        assert "is in no request: clients send sound as a form" in words and "Use header" in words
