# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Failures of nvidia-smi, by its output and exit status."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import errors


@pytest.mark.parametrize(
    ("words", "code", "kind"),
    [
        ("Failed to initialize NVML: Driver/library version mismatch", 18, "driver_library_mismatch"),
        ("Failed to initialize NVML: Unknown Error", 255, "nvml_unknown_error"),
        ("Failed to initialize NVML: Driver Not Loaded", 9, "driver_not_loaded"),
        ("Failed to initialize NVML: Insufficient Permissions", 4, "no_permission"),
        ("Failed to initialize NVML: GPU access blocked by the operating system", 17, "nvml_init_failed"),
        ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.", 12, "library_not_found"),
        ("No devices were found", 6, "no_devices"),
        ("No devices were found", 0, "no_devices"),
        ("WARNING: infoROM is corrupted at gpu 0000:1B:00.0", 14, "inforom_corrupted"),
        ("words that are not known", 15, "gpu_lost"),
        ("words that are not known", 8, "power_cable"),
        ("words that are not known", 255, "failed"),
        ("", -11, "failed"),
    ],
)
def test_output_or_status_decides_the_kind(words: str, code: int, kind: str) -> None:
    failure = errors.classify(words, code)
    assert failure is not None and failure.kind == kind and failure.message


@pytest.mark.parametrize("words", ["", "a remark"])
def test_success_is_no_failure(words: str) -> None:
    assert errors.classify(words, 0) is None


@pytest.mark.parametrize(
    "gpu", ["GPU 0000:1B:00.0", "GPU0000:1b:00.0", "gpu 00000000:1B:00.0", "GPU at PCI:0000:1b:00"]
)
def test_a_failure_has_the_gpu_that_the_output_names(gpu: str) -> None:
    words = f"Unable to determine the device handle for {gpu}: GPU is lost.  Reboot\n the system to recover this GPU"
    failure = errors.classify(words, 15)
    assert failure is not None
    assert (failure.kind, failure.pci_bus_id) == ("gpu_lost", "0000:1b:00.0")
    assert failure.message.endswith("GPU is lost. Reboot the system to recover this GPU")


def test_long_output_is_cut() -> None:
    failure = errors.classify("no " * 10000, 1)
    assert failure is not None and len(failure.message) == errors.SHOWN


@given(st.text(), st.integers(-255, 255))
def test_any_words_are_no_exception(words: str, code: int) -> None:
    failure = errors.classify(words, code)
    assert failure is not None or code == 0


@pytest.mark.recordings("errors")
def test_recorded_failures_are_recognised(recording: Any) -> None:
    if recording.expected["kind"] in ("fan_error_in_table", "nvlink_inactive"):
        pytest.skip("part of a good answer")
    failure = errors.classify(recording.text(), 1)
    assert failure is not None
    assert failure.kind == recording.expected["kind"]
    assert (failure.pci_bus_id or "") == (recording.expected["bus_id"] or "").lower()
    assert (recording.expected["nvml_library_version"] or "") in failure.message
