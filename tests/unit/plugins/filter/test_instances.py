# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters over a site's instances."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.filter.instances import FilterModule

FILTERS = FilterModule().filters()
MODELS = {"base": {"model": "/m"}, "bot": {"base": "base"}, "other": {"model": "/o"}}
INSTANCES = [
    {"name": "main", "model": "bot", "accelerator": "cpu"},
    {"name": "old", "model": "other", "state": "absent"},
]


def test_only_instances_that_must_be_there_count() -> None:
    assert [item["name"] for item in FILTERS["present_instances"](INSTANCES)] == ["main"]
    assert list(FILTERS["served_models"](MODELS, INSTANCES)) == ["base"]
    assert FILTERS["want_gpus"](INSTANCES) is False
    assert FILTERS["want_gpus"]([*INSTANCES, {"name": "big", "model": "other"}]) is True
