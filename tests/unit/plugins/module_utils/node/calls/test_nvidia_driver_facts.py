# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module nvidia_driver_facts: its documented results, and its refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import cuda, dkms, kernel_check
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.facts import Reader
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.kernels import Kernel
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.runfile import Installed
from ansible_collections.baremetal.inference.plugins.module_utils.node.calls import nvidia_driver_facts
from ansible_collections.baremetal.inference.plugins.modules import nvidia_driver_facts as module

from ....driver_node import NEXT, OUTPUTS, RUNNING, answer, driver_node, facts_of, same_keys
from ....modules.conftest import RunModule


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return driver_node(tmp_path)


def documented(name: str) -> dict[str, Any]:
    """The documented keys of a fact."""
    facts = yaml.safe_load(module.RETURN)["ansible_facts"]["contains"]
    contains: dict[str, Any] = facts[name]["contains"]
    return contains


def test_the_facts_are_documented(root: Path) -> None:
    same_keys(documented("nvidia_driver"), facts_of(root))


def test_the_facts_of_a_driver_of_the_installer_are_documented() -> None:
    runfile = documented("nvidia_driver")["runfile"]["contains"]
    assert set(runfile) == set(vars(Installed(None, None, registered=False)))


def test_the_result_of_the_kernel_check_is_documented() -> None:
    modules = dkms.parse(OUTPUTS["dkms status"])
    found = nvidia_driver_facts.judge([Kernel(RUNNING, True), Kernel(NEXT, False)], modules, kernel_check.Wanted())
    same_keys(documented("nvidia_driver_boot"), found)
    assert [kernel["module"] for kernel in found["kernels"]] == ["nvidia-current-open/535.8.01", None]
    assert len(found["problems"]) == 1


def test_the_result_of_cuda_is_documented() -> None:
    assert set(documented("cuda")) == set(vars(cuda.Check(True)))


@pytest.mark.parametrize(
    ("found", "devices", "words"),
    [
        (cuda.Check(True, 0, "CUDA_SUCCESS", 8), 8, ""),
        (cuda.Check(True, 0, "CUDA_SUCCESS", 8), None, ""),
        (cuda.Check(False, 802, message="broken"), None, ""),
        (cuda.Check(False, 802, message="broken"), 8, "broken"),
        (cuda.Check(True, 0, "CUDA_SUCCESS", 7), 8, "7 GPUs instead of 8"),
    ],
)
def test_a_missing_gpu_fails_only_if_a_number_of_gpus_is_given(
    found: cuda.Check, devices: int | None, words: str
) -> None:
    text = nvidia_driver_facts.shortfall(found, devices)
    assert words in text
    assert bool(text) is bool(words)


@pytest.mark.parametrize(("code", "fails"), [(802, True), (0, True), (100, False)])
def test_a_fabric_that_is_down_fails_after_a_wait(code: int, fails: bool) -> None:
    """No number of GPUs is given, as with MIG."""
    found = cuda.Check(False, code, message="broken")
    assert bool(nvidia_driver_facts.shortfall(found, None, 300)) is fails


class Driver:
    """A fake node for a run of the whole module. Records which parts the module reads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.asked: list[str] = []
        self.warnings: list[str] = []
        self.cuda = cuda.Check(True, 0, "CUDA_SUCCESS", 8)
        monkeypatch.setattr(nvidia_driver_facts, "Reader", self.reader)
        monkeypatch.setattr(nvidia_driver_facts.cuda, "check", self.check)
        self.root = root

    def reader(self, _root: Path, _run: object, timeout: float, _firmware: Path | None = None) -> Reader:
        self.asked.append("driver")
        found = Reader(self.root, answer, timeout)
        found.warnings += self.warnings
        return found

    def check(self, library: str, timeout: float) -> cuda.Check:
        self.asked.append("cuda")
        return self.cuda


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch, root: Path) -> Driver:
    return Driver(monkeypatch, root)


def test_by_default_only_the_driver_is_read(driver: Driver, run_module: RunModule) -> None:
    found = run_module(nvidia_driver_facts)
    assert list(found["ansible_facts"]) == ["nvidia_driver"]
    assert (found["changed"], driver.asked) == (False, ["driver"])


def test_the_kernel_check_refuses_a_kernel_without_the_module(driver: Driver, run_module: RunModule) -> None:
    """Check mode refuses, too. The refusal has the facts of all kernels."""
    found = run_module(nvidia_driver_facts, check=True, gather_subset=["kernel_check"])
    assert found["msg"].startswith("Do not reboot this node: a kernel could come up without the NVIDIA driver.\n- ")
    assert (found["failed"], NEXT in found["msg"]) == (True, True)
    kernels = found["ansible_facts"]["nvidia_driver_boot"]["kernels"]
    assert [kernel["release"] for kernel in kernels] == [RUNNING, NEXT]


@pytest.mark.parametrize(
    ("options", "passes"),
    [
        ({}, True),
        ({"flavor": "open", "version": "535.8.01"}, True),
        ({"flavor": "proprietary"}, False),
        ({"version": "535.9"}, False),
        ({"kernels": [NEXT]}, False),
    ],
)
def test_the_kernel_check_takes_the_given_kernels_flavor_and_version(
    driver: Driver, run_module: RunModule, options: dict[str, Any], passes: bool
) -> None:
    found = run_module(nvidia_driver_facts, **{"gather_subset": ["kernel_check"], "kernels": [RUNNING], **options})
    assert bool(found.get("failed")) is not passes
    assert driver.asked == ["driver"]


def test_the_kernel_check_refuses_kernels_that_it_cannot_read(driver: Driver, run_module: RunModule) -> None:
    driver.warnings = ["dkms did not end within 60 s"]
    found = run_module(nvidia_driver_facts, gather_subset=["kernel_check"], kernels=[RUNNING])
    assert found["msg"] == (
        "The kernels could not be read: dkms did not end within 60 s. Correct this before you reboot the node."
    )
    found = run_module(nvidia_driver_facts)
    assert ("failed" in found, driver.warnings[0] in str(found["warnings"])) == (False, True)


def test_the_subset_cuda_reads_no_driver(driver: Driver, run_module: RunModule) -> None:
    found = run_module(nvidia_driver_facts, gather_subset=["cuda"], devices=8)
    assert found["ansible_facts"]["cuda"]["devices"] == 8
    assert driver.asked == ["cuda"]
    found = run_module(nvidia_driver_facts, gather_subset=["cuda"], devices=9)
    assert (found["failed"], "8 GPUs instead of 9" in found["msg"]) == (True, True)
    assert found["ansible_facts"]["cuda"]["code"] == 0


def test_the_option_fabric_wait_waits_for_the_fabric(
    driver: Driver, run_module: RunModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait gets the GPUs that nvidia-smi shows, since their registration decides."""
    shown = [{"index": 0}]
    monkeypatch.setattr(nvidia_driver_facts.gpu_facts, "gather", lambda *_given: {"gpus": shown})

    def wait(check: Any, gpus: Any, seconds: float) -> cuda.Check:
        assert (check(), gpus(), seconds) == (driver.cuda, shown, 300)
        return cuda.Check(False, 802, message="the fabric is not up")

    monkeypatch.setattr(nvidia_driver_facts.fabric, "wait", wait)
    found = run_module(nvidia_driver_facts, gather_subset=["cuda"], fabric_wait=300)
    assert (found["failed"], found["msg"]) == (True, "the fabric is not up")


WANTED: dict[str, Any] = {"decision": {"plan": {"branch": 580}, "problems": [], "warnings": ["unwise"]}, "driver": {}}


def test_a_comparison_reports_whether_the_role_is_due(run_module: RunModule, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []
    asked: list[Any] = []

    def reasons(comparison: Any) -> list[str]:
        asked.append((comparison.version, comparison.kernels, comparison.devices, comparison.wanted["load"]))
        return found

    monkeypatch.setattr(nvidia_driver_facts.Comparison, "reasons", reasons)
    monkeypatch.setattr(nvidia_driver_facts.Comparison, "reboot_reason", lambda _comparison: "nouveau")
    options = {"gather_subset": ["min"], "compare": {**WANTED, "load": True}, "devices": 8, "kernels": [NEXT]}
    result = run_module(nvidia_driver_facts, check=True, **options)
    assert (result["due"], result["reasons"], result["plan"], result["ansible_facts"]) == (
        False,
        [],
        {"branch": 580},
        {},
    )
    assert result["reboot_reason"] == "nouveau"
    assert asked == [("", [NEXT], 8, True)] and "unwise" in str(result["warnings"])
    found.append("CUDA says no")
    result = run_module(nvidia_driver_facts, **options)
    assert (result["changed"], result["due"], result["reasons"]) == (False, True, ["CUDA says no"])


def test_a_decision_with_problems_is_refused_with_all_of_them(run_module: RunModule) -> None:
    decision = {"plan": None, "problems": ["too old", "too new"], "warnings": []}
    wanted = {**WANTED, "decision": decision, "advice": "Nothing was changed."}
    result = run_module(nvidia_driver_facts, gather_subset=["min"], compare=wanted)
    assert (
        result["failed"] and result["msg"] == "no driver fits. To correct:\n- too old\n- too new\nNothing was changed."
    )
