# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of one instance as plain values."""

from __future__ import annotations

import json
from collections.abc import Callable

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.devices import UNREPORTED, hypothetical
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.plan import NOT_THERE, plan

Model = Callable[..., ModelFacts]


def test_the_plan_is_plain_json(model: Model) -> None:
    argv = ["/models/llama", "--tensor-parallel-size", "3"]
    found = plan("llama", argv, model("llama-3-70b"), {"tensor-parallel-size": 3}, hypothetical("4xH100-80GB"))
    assert json.loads(json.dumps(found)) == found
    assert (found["ok"], found["model"], found["argv"]) == (False, "llama", argv)
    assert {"weights_gib", "kv_cache_gib", "spare_gib", "max_concurrency"} <= set(found["estimate"])
    for problem in found["problems"]:
        assert set(problem) == {"check", "key", "value", "message", "fits"}
    assert found["devices"][3] == {"name": "H100-80GB", "memory_mib": 81559, "compute_capability": "9.0"}
    fits = plan("llama", argv, model("llama-3-8b"), {}, hypothetical("1xH100-80GB"))
    assert (fits["ok"], fits["problems"], fits["estimate"]["weights_gib"]) == (True, [], 14.96)


def test_without_facts_only_flags_and_gpus_are_checked() -> None:
    unknown = plan("llama", [], None, {}, hypothetical("1xL4"))
    assert (unknown["ok"], unknown["problems"], unknown["unknown"]) == (None, [], [NOT_THERE])
    wrong = plan("llama", [], None, {"tensor-parallel-size": 2}, hypothetical("1xL4"))
    assert (wrong["ok"], [one["check"] for one in wrong["problems"]]) == (False, ["gpus"])


def test_the_image_and_unreported_gpus_are_in_the_plan(model: Model) -> None:
    image = plan("llama", [], model("llama-3-8b"), {}, hypothetical("1xL4"), lowest_capability=(9, 0))
    assert [one["check"] for one in image["problems"]] == ["image"]
    (device,) = plan("llama", [], None, {}, [UNREPORTED])["devices"]
    assert device == {"name": "GPU", "memory_mib": None, "compute_capability": None}
