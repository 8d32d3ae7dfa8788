# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver: loaded, of one version, with its device nodes, usable by CUDA, and built for the next kernel."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import NOT_INSTALLED, Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import cuda
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor import check, driver
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.check import (
    FAIL,
    OK,
    UNKNOWN,
    WARN,
    CannotTell,
    Check,
    Once,
)

from .conftest import Machine


def test_a_gpu_without_a_driver_fails_the_check(machine: Machine) -> None:
    machine.plug("0000:1b:00.0")
    found = machine.check()
    assert found["driver-loaded"].status == FAIL
    assert found["driver-nodes"].status == FAIL and "nvidia-uvm" in found["driver-nodes"].message


def test_a_library_of_another_version_fails_the_check(machine: Machine) -> None:
    machine.plug("0000:1b:00.0")
    machine.write("sys/module/nvidia/version", "580.95.05\n")
    machine.write("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.105.08", "")
    found = machine.check()
    assert found["driver-package"].status == FAIL and "580.105.08" in found["driver-package"].message


def test_a_kernel_without_the_module_is_a_warning_before_its_boot(machine: Machine) -> None:
    machine.plug("0000:1b:00.0")
    for release in ("6.1.0-40-amd64", "6.1.0-41-amd64"):
        machine.write(f"boot/vmlinuz-{release}", "")
        machine.write(f"lib/modules/{release}/build/Makefile", "")
    machine.answers["dkms status"] = Outcome(0, "nvidia/580.95.05, 6.1.0-40-amd64, x86_64: installed\n")
    found = machine.check()
    assert found["driver-kernels"].status == WARN and "6.1.0-41-amd64" in found["driver-kernels"].message


def test_a_node_without_gpus_needs_no_driver(machine: Machine) -> None:
    assert [one.find(machine.host()) for one in driver.CHECKS] == [driver.NO_GPU] * len(driver.CHECKS)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("driver_library_mismatch", FAIL),
        (NOT_INSTALLED, WARN),
        # No other check reports these errors.
        ("power_cable", WARN),
        ("malformed_output", WARN),
        # The check gpu-count reports a lost GPU.
        ("gpu_lost", OK),
        (None, OK),
    ],
)
def test_the_error_of_nvidia_smi_decides_the_status_of_a_loaded_driver(
    machine: Machine, kind: str | None, status: str
) -> None:
    machine.plug("0000:1b:00.0")
    machine.write("sys/module/nvidia/version", "580.95.05\n")
    host = machine.host()
    facts = {**host.gpus(), "gpu_driver": {"error": kind and {"kind": kind, "message": "words"}}}
    host.gpus = Once(lambda: facts)
    found = driver.loaded(host)
    assert found.status == status and ("580.95.05" if status == OK else "words") in found.message


def test_a_node_with_the_device_nodes_of_cuda_is_ok(machine: Machine) -> None:
    machine.plug("0000:1b:00.0")
    for node in driver.UVM_NODES:
        machine.write(node, "")
    assert driver.nodes(machine.host()).status == OK


@pytest.mark.parametrize(
    ("found", "status", "words"),
    [
        (cuda.Check(True, 0, devices=8, cuda_version="13.0"), OK, "CUDA 13.0 sees 8 devices"),
        (cuda.Check(False, 802, message="the fabric is not up"), FAIL, "the fabric is not up"),
        (cuda.Check(False, message="CUDA did not answer"), UNKNOWN, "CUDA did not answer"),
    ],
)
def test_cuda_that_fails_is_a_failure_and_no_answer_is_unknown(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, found: cuda.Check, status: str, words: str
) -> None:
    machine.plug("0000:1b:00.0")
    monkeypatch.setattr(cuda, "check", lambda _library, _timeout, _run: found)
    result = machine.check()["driver-cuda"]
    assert (result.status, result.message) == (status, words)


@pytest.mark.parametrize(
    ("loaded", "installed", "status"),
    [("580.95.05", True, OK), ("580.95.05", False, FAIL), ("580.95.05", None, UNKNOWN)],
)
def test_a_loaded_module_that_is_not_the_installed_one_fails_the_check(
    machine: Machine, loaded: str, installed: bool | None, status: str
) -> None:
    machine.plug("0000:1b:00.0")
    host = machine.host()
    facts: Any = SimpleNamespace(module_version=loaded, library_version=None, matches_package=installed, package=None)
    host.driver = Once(lambda: facts)
    (found,) = check.run([Check("driver-package", driver.package)], host)
    assert found.status == status


def test_kernels_with_the_module_are_ok_and_a_missing_kernel_is_unknown(machine: Machine) -> None:
    machine.plug("0000:1b:00.0")
    with pytest.raises(CannotTell, match="/boot"):
        driver.next_kernel(machine.host())
    machine.write("boot/vmlinuz-6.1.0-40-amd64", "")
    machine.write("lib/modules/6.1.0-40-amd64/build/Makefile", "")
    machine.answers["dkms status"] = Outcome(0, "nvidia/580.95.05, 6.1.0-40-amd64, x86_64: installed\n")
    assert driver.next_kernel(machine.host()).status == OK
