# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan in words."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine import plan_text

ESTIMATE = {
    "weights_gib": 15.268,
    "overhead_gib": 2.0,
    "kv_cache_gib": None,
    "spare_gib": -1.5,
    "max_concurrency": 3.5,
    "max_model_len": 8192,
}
PROBLEM = {
    "key": "max-model-len",
    "value": 99999,
    "message": "is more than 8192",
    "fits": [{"max-model-len": 8192}, {"gpus": 4, "tensor-parallel-size": 4}],
}


def plan(**more: Any) -> dict[str, Any]:
    return {
        "ok": True,
        "instance": "main",
        "model": "tiny-a",
        "revision": "abc",
        "gpus": ["0", "1"],
        "devices": [{"name": "L4"}, {"name": "L4"}, {"name": "T4"}],
        "argv": ["vllm", "serve", "two words"],
        "estimate": ESTIMATE,
        "change": None,
        "problems": [],
        "unknown": ["the size"],
        "notes": ["a note"],
        **more,
    }


def test_a_plan_that_fits_has_its_command_and_its_estimate() -> None:
    assert plan_text.render([plan()]).splitlines() == [
        "main: fits",
        "  model     tiny-a, revision abc",
        "  runs on   2 x L4 and T4 (GPU 0, 1)",
        "  command   vllm serve 'two words'",
        "  estimate  weights 15.27 GiB, overhead 2.00 GiB, spare -1.50 GiB",
        "  at once   3.5 requests of 8192 tokens",
        "  unknown   the size",
        "  note      a note",
    ]


def test_unknown_values_are_left_out_of_a_plan() -> None:
    nothing = dict.fromkeys(ESTIMATE)
    bare = plan(
        ok=None, instance=None, revision=None, gpus=None, devices=[], argv=[], estimate=nothing, unknown=[], notes=[]
    )
    assert plan_text.render([bare, bare]).splitlines()[:4] == [
        "tiny-a: unknown whether it fits",
        "  model     tiny-a, revision not known yet",
        "  runs on   no GPU",
        "",
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"action": "none", "active": 1, "desired": 1}, "nothing: release 1 runs"),
        ({"action": "start", "active": 1, "desired": 1}, "does not run: baremetal.inference.site starts release 1"),
        (
            {"action": "start", "active": 1, "desired": 2},
            "baremetal.inference.site starts release 2, in place of release 1",
        ),
        (
            {"action": "start", "active": None, "desired": None},
            "does not run: baremetal.inference.site starts a new release",
        ),
        (
            {"action": "update", "active": 1, "desired": 2},
            "release 1 runs, release 2 is pending: run baremetal.inference.update_model",
        ),
    ],
)
def test_the_change_of_an_instance_is_in_the_plan(change: dict[str, Any], words: str) -> None:
    lines = plan_text.render([plan(change={**change, "differences": ["- a", "+ b"]})]).splitlines()
    position = next(index for index, line in enumerate(lines) if line.startswith("  change"))
    assert words in lines[position]
    assert lines[position + 1 : position + 3] == ["            - a", "            + b"]


def test_a_refusal_has_the_misfits_and_the_problems_of_the_node() -> None:
    text = plan_text.refusal([plan(ok=False, problems=[PROBLEM])], [{**PROBLEM, "value": None, "fits": []}])
    lines = text.splitlines()
    assert lines[0] == "main: does not fit"
    assert "  PROBLEM   max-model-len: 99999: is more than 8192" in lines
    assert "            would fit: max-model-len: 8192; or gpus: 4, tensor-parallel-size: 4" in lines
    assert lines[-2:] == ["this node:", "  PROBLEM   max-model-len: is more than 8192"]
    assert "command" not in text and plan_text.refusal([], []) == ""


def test_the_text_of_a_node_has_its_warnings_and_its_orphans() -> None:
    lines = plan_text.of_node([], [], ["old flag"], ["side"]).splitlines()
    assert lines == [
        "no instance that can be planned",
        "",
        "this node:",
        "  warning   old flag",
        "  orphan    side is on the node, but not in the inventory",
    ]
    assert plan_text.of_node([plan()], [], [], []) == plan_text.render([plan()])
