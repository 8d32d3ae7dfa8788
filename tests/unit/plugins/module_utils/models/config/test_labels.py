# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The number of classes of a configuration."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.labels import labels


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ({}, None),
        ({"num_labels": 1}, 1),
        ({"id2label": {"0": "a", "1": "b", "2": "c"}, "num_labels": 1}, 3),
        ({"classifier_from_token": ["no", "yes"]}, 2),
        ({"classifier_from_token": ["no", "yes"], "method": "from_2_way_softmax"}, 1),
        ({"classifier_from_token": ["no", "yes"], "is_original_qwen3_reranker": True}, 1),
        ({"id2label": ["a"], "num_labels": "many"}, None),
    ],
)
def test_the_number_of_classes_comes_from_labels_or_tokens(raw: dict[str, Any], found: int | None) -> None:
    assert labels(raw, {}) == found
    assert labels(raw, {"num_labels": 9}) == found
