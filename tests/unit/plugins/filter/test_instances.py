# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters for a site's instances."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.filter.instances import FilterModule

FILTERS = FilterModule().filters()
MODELS = {"base": {"model": "/m"}, "bot": {"base": "base"}, "other": {"model": "/o"}}
INSTANCES = [
    {"name": "main", "model": "bot", "accelerator": "cpu"},
    {"name": "old", "model": "other", "state": "absent"},
]


def test_absent_instances_do_not_count() -> None:
    assert [item["name"] for item in FILTERS["present_instances"](INSTANCES)] == ["main"]
    assert list(FILTERS["served_models"](MODELS, INSTANCES)) == ["base"]
    assert FILTERS["want_gpus"](INSTANCES) is False
    assert FILTERS["own_images"]([{**item, "image": item["name"]} for item in INSTANCES]) == ["main"]
    assert FILTERS["want_gpus"]([*INSTANCES, {"name": "big", "model": "other"}]) is True


def test_modules_and_logs_get_no_secret() -> None:
    secret = {"name": "main", "model": "bot", "secret_environment": {"HF_TOKEN": "s3cret-value"}}
    gone = {**secret, "name": "old", "state": "absent"}
    assert "s3cret" not in str(FILTERS["without_secrets"]([secret, gone, "no dictionary"]))
    assert FILTERS["without_secrets"]([secret, "no dictionary"]) == [{"name": "main", "model": "bot"}, "no dictionary"]
    assert FILTERS["instance_secrets"]([secret, gone, *INSTANCES]) == {"main": {"HF_TOKEN": "s3cret-value"}}
