# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The models and instances of the machines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.layout import Layout, Wanted, plan
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.machine import Machine
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts

Make = Callable[..., Machine]
Model = Callable[..., ModelFacts]

COMMIT = "ab" * 20


def planned(facts: ModelFacts | None, *machines: Machine, **changes: Any) -> Layout:
    wanted = {"model": "example/Big-70B", "revision": COMMIT, "facts": facts.to_dict() if facts else None, **changes}
    return plan({machine.hostname: machine for machine in machines}, Wanted(**wanted))


def test_a_large_model_is_divided_alike_on_all_machines(machine: Make, model: Model) -> None:
    layout = planned(model("llama-3-70b"), machine("hgx-h100"), machine("hgx-h100", 12))
    assert layout.models == {"big-70b": {"model": "example/Big-70B", "revision": COMMIT, "tensor-parallel-size": 2}}
    assert layout.instances["hgx-h100-11"] == layout.instances["hgx-h100-12"]
    assert layout.instances["hgx-h100-11"] == [{"name": "main", "model": "big-70b", "port": 5005, "gpus": 2}]
    assert "6 GPUs stay free" in layout.reasons["hgx-h100-11"]


def test_a_machine_that_the_model_does_not_fit_gets_no_instance(machine: Make, model: Model) -> None:
    layout = planned(model("llama-3-70b"), machine("hgx-h100"), machine("v100s", 12))
    assert layout.instances["v100s-12"] == []
    assert "does not fit 3 x V100S-32GB" in layout.reasons["v100s-12"]
    assert not layout.proposal.questions


def test_a_model_that_fits_nowhere_is_a_question(machine: Make, model: Model) -> None:
    layout = planned(model("deepseek-v3"), machine("l40s"))
    assert layout.instances == {"l40s-11": []}
    assert "fits none of these machines" in layout.proposal.questions[0].text


def test_a_setting_with_which_the_model_would_fit_is_named(machine: Make, model: Model) -> None:
    card = {"product": "RTX-4090", "name": "NVIDIA GeForce RTX 4090", "compute_capability": "8.9", "index": 0}
    layout = planned(model("qwen3-8b"), machine("l40s", gpus=[{**card, "memory_total_mib": 24564}]))
    (finding,) = (line for line in layout.proposal.findings if "serves nothing" in line)
    assert layout.instances["l40s-11"] == [] and "max-model-len: 34" in finding.partition(". Would fit: ")[2], finding
    assert "set in the entry of models what the report says would fit" in layout.proposal.questions[0].text


def test_volta_gets_no_instance_of_an_image_with_cuda_13(machine: Make, model: Model) -> None:
    small = model("qwen3-8b")
    assert planned(small, machine("v100s"), cuda="13.0").instances["v100s-11"] == []


def test_a_model_that_cannot_be_read_is_written_without_instances(machine: Make) -> None:
    layout = planned(None, machine("l40s"), revision="", error="the hub does not answer")
    assert layout.models == {"big-70b": {"model": "example/Big-70B"}}
    assert [question.variable for question in layout.proposal.questions] == ["models", "instances"]
    assert "the hub does not answer" in layout.proposal.findings[0]


def test_an_archive_needs_its_checksum_and_is_not_planned(machine: Make) -> None:
    layout = planned(None, machine("l40s"), model="https://files.example.com/qwen3-8b.tar", revision="")
    checksum, instances = (question.text for question in layout.proposal.questions)
    assert "Add the key checksum: sha256:" in checksum and "discover does not read archives" in instances


def test_the_name_of_an_entry_comes_from_the_model() -> None:
    assert Wanted("Qwen/Qwen3-32B").entry_name == "qwen3-32b"
    assert Wanted("controller:/srv/models/My Model_v1.5/").entry_name == "my-model-v1.5"
