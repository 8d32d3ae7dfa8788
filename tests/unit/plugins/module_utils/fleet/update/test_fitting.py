# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which plans stop a run, and the text of the refusal."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.plan_text import refusal
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update.fitting import misfits
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update.plan import Choice

PROBLEM = {
    "check": "max_model_len",
    "key": "max-model-len",
    "value": 99999,
    "message": "is more than the model's 8192 tokens",
    "fits": [{"max-model-len": 8192}],
}
ESTIMATE = {"weights_gib": 1.0, "overhead_gib": None, "kv_cache_gib": None, "spare_gib": -2.5, "max_concurrency": None}


def planned(name: str = "main", ok: bool | None = False, **change: Any) -> dict[str, Any]:
    return {
        "ok": ok,
        "instance": name,
        "model": "tiny-b",
        "revision": None,
        "gpus": None,
        "devices": [{"name": "CPU"}],
        "estimate": ESTIMATE,
        "change": {"action": "start", "active": None, "desired": None, "served": False, **change},
        "problems": [PROBLEM],
    }


RUNS = {"action": "none", "active": 1, "desired": 1}
PENDING = {"action": "update", "active": 1, "desired": None}
DOWN = {"action": "start", "active": 1, "desired": 1}
DOWN_AND_PENDING = {"action": "start", "active": 1, "desired": 2}


@pytest.mark.parametrize(
    ("change", "starts", "swapped"),
    [
        ({}, True, True),
        (RUNS, False, False),
        (PENDING, False, True),
        (DOWN, True, False),
        (DOWN_AND_PENDING, True, True),
        # A release that has served on this node fits, whatever the estimate says.
        ({**DOWN, "served": True}, False, False),
        ({**PENDING, "desired": 2, "served": True}, False, False),
    ],
)
def test_only_releases_that_the_run_starts_are_checked(change: dict[str, Any], starts: bool, swapped: bool) -> None:
    plans = [planned(**change)]
    assert (misfits(plans, Choice(), swaps=False) == plans) == starts
    assert (misfits(plans, Choice(), swaps=True) == plans) == swapped


@pytest.mark.parametrize("change", [RUNS, PENDING, {**DOWN, "served": True}])
def test_a_golden_prompt_of_another_task_stops_every_run(change: dict[str, Any]) -> None:
    plans = [{**planned(**change), "problems": [{**PROBLEM, "check": "golden-prompts"}]}]
    assert misfits(plans, Choice(), swaps=False) == misfits(plans, Choice(), swaps=True) == plans


def test_a_plan_that_fits_or_is_unknown_stops_no_run() -> None:
    assert misfits([planned(ok=True), planned(ok=None)], Choice(), swaps=True) == []


def test_only_chosen_instances_are_checked() -> None:
    plans = [planned(), planned("side")]
    assert misfits(plans, Choice(("side",)), swaps=True) == plans[1:]
    assert misfits(plans, Choice(model="tiny-b"), swaps=True) == plans
    assert misfits(plans, Choice(model="tiny-a"), swaps=True) == []


def test_a_refusal_names_every_problem_of_every_instance() -> None:
    mistake = {"key": "instances[1] (odd): gpus", "value": 1, "message": "is too few", "fits": []}
    assert refusal([planned(), planned("side")], [mistake]).splitlines() == [
        "main: does not fit",
        "  model     tiny-b, revision not known yet",
        "  runs on   CPU",
        "  estimate  weights 1.00 GiB, spare -2.50 GiB",
        "  PROBLEM   max-model-len: 99999: is more than the model's 8192 tokens",
        "            would fit: max-model-len: 8192",
        "side: does not fit",
        "  model     tiny-b, revision not known yet",
        "  runs on   CPU",
        "  estimate  weights 1.00 GiB, spare -2.50 GiB",
        "  PROBLEM   max-model-len: 99999: is more than the model's 8192 tokens",
        "            would fit: max-model-len: 8192",
        "this node:",
        "  PROBLEM   instances[1] (odd): gpus: 1: is too few",
    ]
    assert refusal([], []) == ""


@pytest.mark.parametrize(("change", "refused"), [(RUNS, False), (PENDING, True), ({**PENDING, "served": True}, False)])
def test_before_staging_only_a_new_release_with_a_wrong_adapter_is_refused(
    change: dict[str, Any], refused: bool
) -> None:
    plans = [{**planned(**change), "problems": [PROBLEM, {**PROBLEM, "check": "adapters"}]}]
    assert (misfits(plans, Choice(), swaps=False) == plans) == refused
