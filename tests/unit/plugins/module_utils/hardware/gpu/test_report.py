# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of nvidia-smi -q -x, of a synthetic machine and of real machines, complete and damaged."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware import pci
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import models, report

Sample = Callable[[str], str]

DATA = Path(__file__).parent / "data"
NEW = (DATA / "report-580.xml").read_text()


def test_the_report_of_a_new_driver_has_all_values_of_a_gpu(sample: Sample) -> None:
    found = report.parse(sample("report-580.xml"))
    assert (found.driver_version, found.cuda_version, found.damage, found.remarks) == ("580.95.05", "13.0", None, "")
    assert found.gpus[0] == models.Gpu(
        index=0,
        uuid="GPU-0a0b0c0d-1111-4222-8333-00000000001b",
        serial="1700000000011",
        minor_number=3,
        name="NVIDIA H100 80GB HBM3",
        architecture="Hopper",
        pci_bus_id="0000:1b:00.0",
        pci_device_id="10de:2330",
        pci_subsystem_id="10de:16c1",
        reported=True,
        pcie=models.Pcie(gen=1, width=8, gen_max=5, width_max=16),
        memory_total_mib=81559,
        memory_reserved_mib=551,
        memory_used_mib=70001,
        memory_free_mib=11007,
        mig_mode="disabled",
        mig_mode_pending="enabled",
        ecc=models.Ecc(
            current="enabled",
            pending="disabled",
            volatile_corrected=9,
            volatile_uncorrected=22,
            aggregate_corrected=90,
            aggregate_uncorrected=220,
            sram_threshold_exceeded=True,
            channel_repair_pending=False,
            tpc_repair_pending=True,
        ),
        remapped_rows=models.RemappedRows(correctable=3, uncorrectable=5, pending=True, failure=False),
        recovery_action="None",
        persistence_mode="enabled",
        compute_mode="Exclusive_Process",
        virtualization_mode="None",
        performance_state="P2",
        power_draw_w=612.25,
        power_limit_w=650,
        power_limit_requested_w=640,
        power_limit_default_w=700,
        power_limit_min_w=200,
        power_limit_max_w=700,
        temperature_c=61,
        memory_temperature_c=72,
        clocks=models.Clocks(1500, 1501, 2619, 1980, 1981, 2620),
        throttle_reasons=["sw_power_cap", "hw_thermal_slowdown"],
        utilization=models.Utilization(97, 41),
        fabric=models.Fabric("Completed", "Success", 7, "01234567-89ab-4cde-8f01-23456789abcd", "Healthy"),
        processes=[models.Process(pid=4321, type="C", name="VLLM::Worker <0>", memory_used_mib=69990)],
        vbios_version="96.00.AA.00.01",
        gsp_firmware_version="580.95.05",
    )


def test_a_gpu_with_mig_devices_keeps_its_own_memory(sample: Sample) -> None:
    gpu = report.parse(sample("report-580.xml")).gpus[1]
    assert (gpu.mig_mode, gpu.memory_total_mib, gpu.memory_used_mib) == ("enabled", 81559, 60)
    assert gpu.mig_devices == [
        models.MigDevice(
            index=0,
            gpu_instance_id=2,
            compute_instance_id=0,
            memory_total_mib=40448,
            memory_used_mib=44,
            multiprocessor_count=60,
            ecc_sram_uncorrectable=6,
        ),
        models.MigDevice(index=1, gpu_instance_id=9, compute_instance_id=1, memory_total_mib=9984, memory_used_mib=12),
    ]
    assert gpu.remapped_rows == models.RemappedRows()
    assert gpu.utilization == models.Utilization()
    assert gpu.throttle_reasons == [] and gpu.processes == []


def test_values_that_could_not_be_read_are_listed(sample: Sample) -> None:
    first, second = report.parse(sample("report-580.xml")).gpus
    assert first.unreadable == []
    assert second.unreadable == [
        models.Unreadable("fan_speed", "ERR!"),
        models.Unreadable("temperature/gpu_temp", "Unknown Error"),
    ]
    assert second.temperature_c is None and not second.lost


def test_the_report_of_an_old_driver_has_the_values_that_the_driver_has(sample: Sample) -> None:
    found = report.parse(sample("report-450.xml"))
    assert (found.driver_version, found.cuda_version, found.damage) == ("450.80.02", None, None)
    (gpu,) = found.gpus
    assert (gpu.index, gpu.minor_number, gpu.pci_bus_id) == (0, None, "0001:0a:00.0")
    assert (gpu.mig_mode, gpu.mig_devices, gpu.architecture) == (None, [], None)
    assert gpu.ecc == models.Ecc("enabled", "enabled", 3, 4, 33, None)
    assert gpu.retired_pages == models.RetiredPages(single_bit=6, double_bit=2, pending=True)
    assert (gpu.power_draw_w, gpu.power_limit_w, gpu.power_limit_default_w) == (41.5, 250, 300)
    assert gpu.throttle_reasons == ["gpu_idle"]
    assert gpu.processes is None
    assert gpu.remapped_rows == models.RemappedRows() and gpu.fabric == models.Fabric()


def test_a_gpu_that_nvidia_smi_reports_as_lost_is_lost() -> None:
    """In place of a value, nvidia-smi prints `GPU is lost`."""
    found = report.parse(NEW.replace("<gpu_temp>61 C</gpu_temp>", "<gpu_temp>GPU is lost</gpu_temp>"))
    assert [gpu.lost for gpu in found.gpus] == [True, False]
    assert found.gpus[0].temperature_c is None


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("610.57.04 [Deprecated; use KMD Version instead]", "610.57.04"),
        ("Deprecated", None),
        ("N/A", None),
        ("35.3.1", "35.3.1"),
    ],
)
def test_words_after_a_version_are_not_part_of_it(text: str, version: str | None) -> None:
    assert report.parse(NEW.replace("580.95.05</driver_v", f"{text}</driver_v")).driver_version == version


def test_the_element_names_of_later_drivers_are_read() -> None:
    renamed = NEW.replace("driver_version>", "kmd_version>").replace("cuda_version>", "cuda_umd_version>")
    found = report.parse(renamed)
    assert (found.driver_version, found.cuda_version) == ("580.95.05", "13.0")


def test_a_number_in_another_unit_is_unknown() -> None:
    gpu = report.parse(NEW.replace("81559 MiB", "81559 GiB").replace("650.00 W", "650.00 mW")).gpus[0]
    assert gpu.memory_total_mib is None and gpu.power_limit_w is None


def test_with_a_gpu_missing_no_index_is_known() -> None:
    found = report.parse(NEW.replace("<attached_gpus>2<", "<attached_gpus>3<"))
    assert [gpu.index for gpu in found.gpus] == [None, None]


def test_output_around_a_report_is_kept_as_remarks() -> None:
    found = report.parse(f"a warning\n{NEW}WARNING: infoROM is corrupted at gpu 0000:1B:00.0\n")
    assert found.damage is None and len(found.gpus) == 2
    assert found.remarks == "a warning\nWARNING: infoROM is corrupted at gpu 0000:1B:00.0"


@pytest.mark.parametrize("text", ["", "No devices were found\n", "<html>no</html>"])
def test_output_without_a_report_is_damage(text: str) -> None:
    found = report.parse(text)
    assert found.damage and found.gpus == [] and found.remarks == text.strip()


def test_an_incomplete_report_keeps_its_first_gpus() -> None:
    found = report.parse(NEW[: NEW.rindex("<utilization>")])
    assert found.damage
    assert [gpu.memory_used_mib for gpu in found.gpus] == [70001]
    assert found.gpus[0].index is None, "two GPUs are attached"


@given(st.integers(0, len(NEW)))
def test_a_report_cut_anywhere_is_damaged_and_no_exception(end: int) -> None:
    found = report.parse(NEW[:end])
    assert found.damage or NEW[:end].rstrip() == NEW.rstrip()
    assert len(found.gpus) <= 2


@given(st.lists(st.tuples(st.integers(0, len(NEW) - 1), st.integers(0, 255)), max_size=20))
def test_flipped_bytes_are_no_exception(flips: list[tuple[int, int]]) -> None:
    data = bytearray(NEW.encode())
    for position, value in flips:
        data[position] = value
    report.parse(data.decode("utf-8", errors="replace"))


@given(st.text())
def test_any_text_is_no_exception(text: str) -> None:
    report.parse(text)
    report.parse(f"<nvidia_smi_log><gpu><pci>{text}</pci></gpu>")
    report.parse(f"<?xml version='1.0' encoding='{text}'?><nvidia_smi_log/>")


def test_entities_do_not_grow_without_end() -> None:
    levels = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 12))
    start = time.monotonic()
    bomb = f'<!DOCTYPE nvidia_smi_log [<!ENTITY e0 "x">{levels}]><nvidia_smi_log>&e11;</nvidia_smi_log>'
    assert report.parse(bomb).gpus == []
    assert time.monotonic() - start < 5


MODES = ("ecc_current", "ecc_pending", "mig_current", "mig_pending", "persistence_mode")
FLAGS = ("remapped_failure", "remapped_pending", "retired_pending")


def meaning(key: str, raw: Any) -> Any:
    """The fact for an expected value. Some expected values are words of nvidia-smi."""
    if raw is None or raw == "N/A":
        return None
    if key == "bus_id":
        return pci.normalise(raw)
    if key == "pci_device_id":
        return f"10de:{raw[:4].lower()}"
    if key in MODES:
        return raw.lower()
    return {"Yes": True, "No": False}[raw] if key in FLAGS else raw


@pytest.mark.recordings("nvidia_smi_xml")
def test_recorded_reports_are_read(recording: Any) -> None:
    expected = recording.expected
    found = report.parse(recording.text())
    assert found.damage is None
    assert found.driver_version == expected["driver_version"]
    assert found.cuda_version == expected["cuda_version"]
    assert len(found.gpus) == expected["gpu_count"]
    for gpu, known in zip(found.gpus, expected["gpus"], strict=True):
        found_of = {
            "architecture": gpu.architecture,
            "bus_id": gpu.pci_bus_id,
            "compute_mode": gpu.compute_mode,
            "ecc_aggregate_corrected": gpu.ecc.aggregate_corrected,
            "ecc_aggregate_uncorrected": gpu.ecc.aggregate_uncorrected,
            "ecc_current": gpu.ecc.current,
            "ecc_pending": gpu.ecc.pending,
            "ecc_volatile_corrected": gpu.ecc.volatile_corrected,
            "ecc_volatile_uncorrected": gpu.ecc.volatile_uncorrected,
            "error_elements": [one.element for one in gpu.unreadable],
            "fabric_state": gpu.fabric.state,
            "fabric_status": gpu.fabric.status,
            "memory_free_mib": gpu.memory_free_mib,
            "memory_reserved_mib": gpu.memory_reserved_mib,
            "memory_total_mib": gpu.memory_total_mib,
            "memory_used_mib": gpu.memory_used_mib,
            "mig_current": gpu.mig_mode,
            "mig_pending": gpu.mig_mode_pending,
            "minor_number": gpu.minor_number,
            "pci_device_id": gpu.pci_device_id,
            "pcie_gen_max": gpu.pcie.gen_max,
            "pcie_width_max": gpu.pcie.width_max,
            "performance_state": gpu.performance_state,
            "persistence_mode": gpu.persistence_mode,
            "power_draw_w": gpu.power_draw_w,
            "power_limit_w": gpu.power_limit_w,
            "process_count": len(gpu.processes or []),
            "product_name": gpu.name,
            "recovery_action": gpu.recovery_action,
            "remapped_corr": gpu.remapped_rows.correctable,
            "remapped_failure": gpu.remapped_rows.failure,
            "remapped_pending": gpu.remapped_rows.pending,
            "remapped_unc": gpu.remapped_rows.uncorrectable,
            "retired_dbe": gpu.retired_pages.double_bit,
            "retired_pending": gpu.retired_pages.pending,
            "retired_sbe": gpu.retired_pages.single_bit,
            "serial": gpu.serial,
            "temperature_c": gpu.temperature_c,
            "uuid": gpu.uuid,
            "vbios": gpu.vbios_version,
            "virtualization_mode": gpu.virtualization_mode,
        }
        assert found_of == {key: meaning(key, known[key]) for key in found_of}
        assert [
            (one.index, one.gpu_instance_id, one.compute_instance_id, one.memory_total_mib, one.multiprocessor_count)
            for one in gpu.mig_devices
        ] == [(one["index"], one["gi"], one["ci"], one["memory_total_mib"], one["sm"]) for one in known["mig_devices"]]
