# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of an engine on the hardware of a node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine import plans
from ansible_collections.baremetal.inference.plugins.module_utils.engine.changes import NOTHING, Change
from ansible_collections.baremetal.inference.plugins.module_utils.hardware import host_memory
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import facts as gpu_facts
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import from_config
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.devices import Device, hypothetical
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.misfit import Misfit
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.variables import CPU_CACHE, LONGER

GPUS = [
    {"index": index, "uuid": f"GPU-{index}", "reported": True, "product": "L4", "memory_total_mib": 23034}
    for index in range(2)
]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A node with two GPUs. The list gets an item each time that the GPUs are read."""
    found: list[str] = []

    def gather(*_given: Any) -> dict[str, Any]:
        found.append("gpus")
        return {"gpus": GPUS, "gpu_driver": {"version": "535.261.03", "cuda_version": "12.2"}}

    monkeypatch.setattr(gpu_facts, "gather", gather)
    return found


def engine(**more: Any) -> plans.Engine:
    return plans.Engine("tiny-a", ["vllm", "serve"], {}, **more)


def test_gpus_are_read_once_and_only_where_an_engine_needs_them(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_memory, "smallest_numa_node", lambda root: 4096)
    hardware = plans.Hardware(Path("/"))
    assert [device.memory_mib for device in hardware.devices(engine(accelerator="cpu"))] == [4096]
    assert asked == []
    assert len(hardware.devices(engine())) == 2
    assert [device.name for device in hardware.devices(engine(gpus=["GPU-1"]))] == ["L4"]
    assert asked == ["gpus"]
    with pytest.raises(ValueError, match="has no GPU '7'"):
        hardware.devices(engine(gpus=["7"]))


def test_a_gpu_that_is_not_there_is_a_problem(asked: list[str]) -> None:
    found = plans.plan(engine(gpus=["7"], instance="main"), plans.Hardware(Path("/")))
    assert (found["ok"], found["instance"], found["gpus"]) == (False, "main", ["7"])
    assert (found["problems"][0]["key"], found["problems"][0]["value"]) == ("gpus", ["7"])
    assert "has no GPU '7'" in found["problems"][0]["message"]


def test_named_gpus_replace_those_of_the_node(asked: list[str]) -> None:
    named = hypothetical("1xL40S")
    change = Change(NOTHING, 1, 1)
    found = plans.plan(engine(gpus=["7"], change=change, revision="abc"), plans.Hardware(Path("/"), named))
    assert (found["ok"], found["gpus"], found["revision"]) == (None, None, "abc")
    assert [device["name"] for device in found["devices"]] == ["L40S"]
    assert found["change"] == change.to_dict() and asked == []


def test_with_a_known_problem_no_plan_fits() -> None:
    known = Misfit("inventory", "model", "x", "is not in the model registry")
    found = plans.plan(engine(problems=[known]), plans.Hardware(Path("/"), [Device("L4", 23034)]))
    assert found["ok"] is False and found["problems"][0] == known.to_dict()


def test_a_plan_uses_only_the_deciding_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def fit_plan(*given: Any) -> dict[str, Any]:
        seen.append(given[5])
        return {"ok": True, "problems": []}

    monkeypatch.setattr(plans, "fit_plan", fit_plan)
    hardware = plans.Hardware(Path("/"), [Device("L4", 23034)])
    variables = {CPU_CACHE: "4", LONGER: "1", "HF_TOKEN": "secret"}
    plans.plan(engine(environment=plans.deciding(variables)), hardware)
    plans.plan(engine(), hardware)
    assert seen == [{CPU_CACHE: "4", LONGER: "1"}, {}]


@pytest.mark.parametrize(
    ("verdicts", "all_fit"), [([], True), ([True], True), ([True, None], None), ([None, False, True], False)]
)
def test_the_result_for_all_plans_is_that_of_the_worst_plan(verdicts: list[bool | None], all_fit: bool | None) -> None:
    assert plans.verdict([{"ok": ok} for ok in verdicts]) is all_fit


def test_driver_and_gpus_must_run_the_image(asked: list[str]) -> None:
    """The node has Debian 12's driver, which cannot run images of CUDA 13."""
    found = plans.plan(engine(image_cuda="13.0"), plans.Hardware(Path("/")))
    assert found["ok"] is False
    assert [one["check"] for one in found["problems"]] == ["driver"]
    assert plans.plan(engine(image_cuda="12.9"), plans.Hardware(Path("/")))["problems"] == []
    # For named GPUs, the driver is unknown. The compute capabilities of the image still count.
    old = plans.plan(engine(image_cuda="13.0"), plans.Hardware(Path("/"), hypothetical("1xV100S-32GB")))
    assert [one["check"] for one in old["problems"]] == ["image"]
    last = "only for 7.5 and later; vLLM 0.19, in an image built with CUDA 12, is the last version with code for it"
    assert old["problems"][0]["message"].endswith(last)
    # With CUDA 12, too, the newest version of vLLM has no code for this GPU.
    newest = engine(image_cuda="12.9", version="0.33.0")
    found = plans.plan(newest, plans.Hardware(Path("/"), hypothetical("1xV100S-32GB")))
    assert [one["check"] for one in found["problems"]] == ["image"]
    older = engine(image_cuda="12.9", version="0.19.1")
    assert plans.plan(older, plans.Hardware(Path("/"), hypothetical("1xV100S-32GB")))["problems"] == []
    pascal = plans.plan(older, plans.Hardware(Path("/"), hypothetical("1xP100-SXM2-16GB")))
    none = "no version of vLLM has code for it: the least compute capability is 7.0"
    assert pascal["problems"][0]["message"].endswith(none)


def test_an_image_of_unknown_cuda_is_noted(asked: list[str]) -> None:
    hardware = plans.Hardware(Path("/"))
    assert plans.UNCOMPARED in plans.plan(engine(image_cuda=""), hardware)["notes"]
    for other in (engine(image_cuda="12.9"), engine(image_cuda="", accelerator="cpu"), engine()):
        assert plans.UNCOMPARED not in plans.plan(other, hardware)["notes"]
    named = plans.Hardware(Path("/"), hypothetical("1xL4"))
    assert plans.UNCOMPARED not in plans.plan(engine(image_cuda=""), named)["notes"]


def test_a_division_is_proposed_for_named_gpus(published: dict[str, Any]) -> None:
    facts = from_config(published["llama-3-70b"]["config"])
    found = plans.plan(engine(), plans.Hardware(Path("/"), hypothetical("8xH100-80GB")), facts)
    assert (found["ok"], found["argv"][-2:]) == (True, ["--tensor-parallel-size", "2"])
    assert found["notes"][0].startswith("tensor-parallel-size: 2: proposed")
