# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of the GPUs, also of GPUs that the driver does not list."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.node.collectors import gpus

from ..conftest import GPU_DATA, plug
from .conftest import collect, declare


def test_gpus_have_metrics_in_base_units(tmp_path: Path) -> None:
    """Two synthetic GPUs: one hot with a pending remap and half of its lanes, the other asks for a reset."""
    plug(tmp_path, "0000:1b:00.0", "0000:9d:00.0")
    declare(Paths(tmp_path))
    text = collect("gpus", Paths(tmp_path), Outcome(0, (GPU_DATA / "report-580.xml").read_text()))
    for line in (
        "inference_gpus_present 2",
        "inference_gpus_reported 2",
        'inference_gpu_throttled{gpu="0",reason="hw_thermal_slowdown"} 1',
        'inference_gpu_repair_pending{gpu="0"} 1',
        'inference_gpu_pcie_lanes{gpu="0"} 8',
        'inference_gpu_pcie_lanes_max{gpu="0"} 16',
        'inference_gpu_reset_wanted{gpu="1"} 1',
        'inference_instance_gpu{name="main",gpu="0"} 1',
        'inference_collector_success{collector="gpus"} 1',
        'inference_collector_timestamp_seconds{collector="gpus"} 1777636800',
    ):
        assert f"{line}\n" in text, line
    total = re.search(r'inference_gpu_memory_total_bytes\{gpu="0"\} (\d+)\n', text)
    assert total and int(total[1]) > 70 << 30 and int(total[1]) % gpus.MIB == 0
    assert "# TYPE inference_gpu_ecc_uncorrected_errors_total counter\n" in text


def test_a_gpu_that_the_driver_does_not_list_is_labelled_by_its_address(tmp_path: Path) -> None:
    """Its unknown values have no metrics."""
    plug(tmp_path, "0000:1b:00.0")
    lost = Outcome(9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.")
    text = collect("gpus", Paths(tmp_path), lost)
    assert "inference_gpus_present 1\n" in text and "inference_gpus_reported 0\n" in text
    assert 'inference_gpu_driver_error{kind="driver_not_loaded"} 1\n' in text
    assert 'inference_gpu_reported{gpu="0000:1b:00.0"} 0\n' in text
    assert "inference_gpu_temperature" not in text


def test_a_node_without_gpus_has_no_metrics_of_a_driver(tmp_path: Path) -> None:
    text = collect("gpus", Paths(tmp_path))
    assert "inference_gpus_present 0\n" in text and "inference_gpu_driver" not in text


def test_an_instance_on_the_cpu_has_no_metric_of_a_gpu(tmp_path: Path) -> None:
    plug(tmp_path, "0000:1b:00.0", "0000:9d:00.0")
    declare(Paths(tmp_path), accelerator="cpu", gpus=())
    report = Outcome(0, (GPU_DATA / "report-580.xml").read_text())
    assert "inference_instance_gpu{" not in collect("gpus", Paths(tmp_path), report)


def test_an_instance_on_a_mig_device_has_the_metric_of_the_devices_gpu(tmp_path: Path) -> None:
    plug(tmp_path, "0000:1b:00.0", "0000:9d:00.0")
    declare(Paths(tmp_path), gpus=("1:0",))
    report = Outcome(0, (GPU_DATA / "report-580.xml").read_text())
    assert 'inference_instance_gpu{name="main",gpu="1"} 1\n' in collect("gpus", Paths(tmp_path), report)


@pytest.mark.parametrize(
    ("gpu", "label"),
    [
        ({"index": 3, "pci_bus_id": "0000:1b:00.0", "uuid": "GPU-1"}, "3"),
        ({"index": None, "pci_bus_id": "0000:1b:00.0", "uuid": "GPU-1"}, "0000:1b:00.0"),
        ({"index": None, "pci_bus_id": None, "uuid": "GPU-1"}, "GPU-1"),
        ({"index": None, "pci_bus_id": None, "uuid": None}, "unknown"),
    ],
)
def test_the_label_of_a_gpu_is_its_index_or_else_its_address_or_uuid(gpu: dict[str, Any], label: str) -> None:
    assert gpus.label(gpu) == label
