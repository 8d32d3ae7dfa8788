# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module gpu_facts, with a script in the place of nvidia-smi."""

from __future__ import annotations

import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.hardware import cdi, container_gpus
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.container_gpus import Container, Found
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import (
    driver,
    errors,
    models,
    topology,
    xid,
)
from ansible_collections.baremetal.inference.plugins.modules import gpu_facts as module

DRIVER = "571.20.03"

GPU_FACTS = {"gpus", "nvswitches", "nvswitch_managers", "gpu_driver"}
ALL_FACTS = GPU_FACTS | {"gpu_topology", "gpu_xids", "gpu_kernel_errors"}

LOST = Container("1" * 64, "main", "gpus", 7, ["/dev/nvidia0"], {"/dev/nvidia0": "Operation not permitted"})
KEPT = Container("2" * 64, "other", "cdi", 8, ["/dev/nvidia1"])


class Done(Exception):
    """The module has ended."""


class Module:
    """Replaces AnsibleModule: takes parameters, and ends with a result."""

    params: dict[str, Any]

    def __init__(self, argument_spec: dict[str, Any], supports_check_mode: bool) -> None:
        assert supports_check_mode
        self.params = {name: option.get("default") for name, option in argument_spec.items()} | type(self).params

    def exit_json(self, **result: Any) -> None:
        raise Done(result)

    def fail_json(self, msg: str) -> None:
        raise Done({"failed": True, "msg": msg})


def run(monkeypatch: pytest.MonkeyPatch, **params: Any) -> dict[str, Any]:
    monkeypatch.setattr(module, "AnsibleModule", type("Given", (Module,), {"params": params}))
    with pytest.raises(Done) as done:
        module.main()
    result: dict[str, Any] = done.value.args[0]
    return result


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_an_nvidia_smi_that_hangs_is_stopped_in_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool = script(tmp_path / "nvidia-smi", "sleep 60 & sleep 60")
    start = time.monotonic()
    result = run(monkeypatch, root=str(tmp_path), nvidia_smi=tool, timeout=0.5)
    assert time.monotonic() - start < 3, "asked once, and killed"
    assert result["changed"] is False
    assert result["ansible_facts"]["gpu_driver"]["error"]["kind"] == "timeout"
    assert result["ansible_facts"]["gpus"] == []


def test_an_error_on_standard_output_is_recognized(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool = script(tmp_path / "nvidia-smi", "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18")
    result = run(monkeypatch, root=str(tmp_path), nvidia_smi=tool)
    assert result["ansible_facts"]["gpu_driver"]["error"]["kind"] == "driver_library_mismatch"


def test_a_missing_nvidia_smi_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    result = run(monkeypatch, root=str(tmp_path), nvidia_smi=str(tmp_path / "none"))
    assert result["ansible_facts"]["gpu_driver"]["error"]["kind"] == "not_installed"


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_an_invalid_time_limit_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, timeout: float) -> None:
    result = run(monkeypatch, root=str(tmp_path), timeout=timeout)
    assert result["failed"] and "timeout" in result["msg"]


@pytest.fixture
def docker(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The roots for which Docker was asked; two containers have GPUs, and one has lost them."""
    asked: list[Path] = []

    def find(_run: Any, root: Path) -> Found:
        asked.append(root)
        return Found([LOST, KEPT])

    monkeypatch.setattr(container_gpus, "find", find)
    return asked


@pytest.mark.parametrize(
    ("subset", "expected"),
    [
        (["all"], ALL_FACTS),
        ([], ALL_FACTS),
        (["min"], GPU_FACTS),
        (["cdi"], {"cdi"}),
        (["containers"], {"container_gpus"}),
        (["cdi", "containers"], {"cdi", "container_gpus"}),
        (["min", "cdi"], GPU_FACTS | {"cdi"}),
        (["nvidia_smi", "cdi"], GPU_FACTS | {"cdi"}),
        (["!xids", "containers"], GPU_FACTS | {"gpu_topology", "container_gpus"}),
    ],
)
def test_only_the_facts_of_the_chosen_subsets_are_gathered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, docker: list[Path], subset: list[str], expected: set[str]
) -> None:
    result = run(monkeypatch, root=str(tmp_path), nvidia_smi=str(tmp_path / "none"), gather_subset=subset)
    assert (set(result["ansible_facts"]), result["changed"]) == (expected, False)
    assert docker == ([tmp_path] if "containers" in subset else [])


def test_containers_that_have_lost_their_gpus_are_named(monkeypatch: pytest.MonkeyPatch, docker: list[Path]) -> None:
    gpus = run(monkeypatch, gather_subset=["containers"])["ansible_facts"]["container_gpus"]
    assert (gpus["error"], gpus["lost"], len(docker)) == (None, ["main"], 1)
    assert gpus["containers"][0] == {
        "id": "1" * 64,
        "name": "main",
        "request": "gpus",
        "devices": ["/dev/nvidia0"],
        "lost": {"/dev/nvidia0": "Operation not permitted"},
        "error": None,
    }


def test_with_an_invalid_time_limit_docker_is_not_asked(monkeypatch: pytest.MonkeyPatch, docker: list[Path]) -> None:
    found = run(monkeypatch, gather_subset=["containers"], timeout=0)
    assert (found["failed"], docker) == (True, [])


def test_a_missing_cdi_specification_is_a_reason_to_refresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = run(monkeypatch, root=str(tmp_path), gather_subset=["cdi"])["ansible_facts"]["cdi"]
    assert (found["specs"], found["driver_version"]) == ([], None)
    assert "is not there" in found["refresh_reason"]


def test_specifications_are_compared_with_the_driver_and_the_gpus(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    version = tmp_path / "proc/driver/nvidia/version"
    version.parent.mkdir(parents=True)
    version.write_text(f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {DRIVER}  x\n")
    compared: list[Any] = []
    monkeypatch.setattr(cdi, "facts", lambda *arguments: compared.append(arguments))
    gpus = [{"uuid": "GPU-1"}]
    monkeypatch.setattr(module.facts, "gather", lambda *arguments: {"gpus": gpus})
    for subset in (["nvidia_smi", "cdi"], ["cdi"]):
        run(monkeypatch, root=str(tmp_path), gather_subset=subset)
    assert compared == [(tmp_path, DRIVER, gpus), (tmp_path, DRIVER, [])]


GPU_PARTS = {
    "pcie": models.Pcie,
    "mig_devices": models.MigDevice,
    "ecc": models.Ecc,
    "retired_pages": models.RetiredPages,
    "remapped_rows": models.RemappedRows,
    "clocks": models.Clocks,
    "utilization": models.Utilization,
    "fabric": models.Fabric,
    "nvlink": models.Nvlink,
    "processes": models.Process,
    "unreadable": models.Unreadable,
}


def test_every_key_of_every_part_is_documented() -> None:
    documented = yaml.safe_load(module.RETURN)["ansible_facts"]["contains"]
    parts: list[tuple[dict[str, Any], Any]] = [
        (documented["gpus"], models.Gpu),
        (documented["gpu_driver"]["contains"]["error"], errors.Failure),
        (documented["gpu_driver"]["contains"]["package"], driver.Package),
        (documented["gpu_topology"], topology.Topology),
        (documented["gpu_topology"]["contains"]["gpus"], topology.TopologyGpu),
        (documented["gpu_topology"]["contains"]["nics"], topology.TopologyNic),
        (documented["gpu_xids"], xid.Xid),
        (documented["gpu_kernel_errors"], xid.KernelError),
        *((documented["gpus"]["contains"][name], part) for name, part in GPU_PARTS.items()),
    ]
    for documentation, part in parts:
        assert list(documentation["contains"]) == [field.name for field in fields(part)], part
    nested = {name for name, entry in documented["gpus"]["contains"].items() if "contains" in entry}
    assert nested == set(GPU_PARTS)
