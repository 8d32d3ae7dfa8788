# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of the GPUs, so that nothing essential needs DCGM. Private to the collection; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...core.exposition import Help, Samples
from ...engine.release import Release
from ..doctor.gpus import BAD_THROTTLES
from ..recovery.gpus import used_by

MIB = 1 << 20

MEGA = 1_000_000

POWER_CAP = "sw_power_cap"
"""The power limit. It is no fault, but explains lower speed."""

HELP: Help = {
    "inference_gpus_present": "GPUs on the PCI bus that the driver should list.",
    "inference_gpus_reported": "GPUs that the driver lists.",
    "inference_gpu_driver_ok": "1 if nvidia-smi answers and reports no failure. Missing on a node without a GPU.",
    "inference_gpu_driver_error": "1 for the kind of failure that nvidia-smi reports.",
    "inference_gpu_driver_info": "1 for the version of the driver.",
    "inference_gpu_info": "1 for the identity of a GPU.",
    "inference_gpu_reported": "1 if the driver lists the GPU.",
    "inference_gpu_lost": "1 if the GPU has fallen off the bus.",
    "inference_gpu_memory_total_bytes": "Memory of the GPU.",
    "inference_gpu_memory_used_bytes": "Memory of the GPU in use.",
    "inference_gpu_temperature_celsius": "Temperature of the GPU.",
    "inference_gpu_memory_temperature_celsius": "Temperature of the GPU's memory.",
    "inference_gpu_power_watts": "Power that the GPU draws.",
    "inference_gpu_power_limit_watts": "Power that the GPU may draw.",
    "inference_gpu_utilization_ratio": "Share of the time in which a kernel ran on the GPU.",
    "inference_gpu_sm_clock_hertz": "Clock of the GPU's processors.",
    "inference_gpu_sm_clock_max_hertz": "The highest clock of the GPU's processors.",
    "inference_gpu_throttled": "1 while the GPU is slowed down for this reason.",
    "inference_gpu_ecc_uncorrected_errors_total": "Uncorrected memory errors in the life of the GPU.",
    "inference_gpu_ecc_corrected_errors_total": "Corrected memory errors in the life of the GPU.",
    "inference_gpu_remapped_rows": "Rows of memory that were replaced, by the kind of error.",
    "inference_gpu_repair_pending": "1 if a repair of memory waits for a reset of the GPU.",
    "inference_gpu_repair_failed": "1 if the GPU's memory cannot be repaired any more.",
    "inference_gpu_reset_wanted": "1 if the driver asks for an action, such as a reset of the GPU.",
    "inference_gpu_unreadable_values": "Values that nvidia-smi could not read.",
    "inference_gpu_pcie_lanes": "Lanes of the PCIe link in use.",
    "inference_gpu_pcie_lanes_max": "Lanes that the PCIe link could have.",
    "inference_gpu_fabric_ok": "1 if the GPU is registered with the NVSwitch fabric.",
    "inference_instance_gpu": "1 for each GPU that an instance computes on.",
}


def render(facts: Mapping[str, Any], instances: Iterable[Release], samples: Samples) -> None:
    """Add the facts of gpu_facts."""
    gpus = [gpu for gpu in facts["gpus"] if not gpu["excluded"]]
    samples.add("inference_gpus_present", len(gpus))
    samples.add("inference_gpus_reported", sum(gpu["reported"] for gpu in gpus))
    if gpus:
        _driver(facts["gpu_driver"], samples)
    for gpu in gpus:
        _gpu(gpu, samples)
    for release in instances:
        for gpu in used_by(release, gpus) if release.accelerator == "nvidia" else ():
            samples.add("inference_instance_gpu", 1, name=release.instance, gpu=label(gpu))


def label(gpu: Mapping[str, Any]) -> str:
    """A GPU's name in labels: its index, as in nvidia-smi; the PCI address of a GPU that the driver does not list."""
    return str(gpu["pci_bus_id"] or gpu["uuid"] or "unknown") if gpu["index"] is None else str(gpu["index"])


def _driver(driver: Mapping[str, Any], samples: Samples) -> None:
    error = driver["error"]
    samples.add("inference_gpu_driver_ok", error is None)
    if error:
        samples.add("inference_gpu_driver_error", 1, kind=error["kind"])
    if driver["version"]:
        samples.add("inference_gpu_driver_info", 1, version=driver["version"], cuda=driver["cuda_version"] or "")


def _gpu(gpu: Mapping[str, Any], samples: Samples) -> None:
    name = label(gpu)

    def add(metric: str, value: float | None, scale: float = 1, **labels: str) -> None:
        samples.add(f"inference_gpu_{metric}", None if value is None else value * scale, gpu=name, **labels)

    words = {"uuid": gpu["uuid"], "pci_bus_id": gpu["pci_bus_id"], "model": gpu["name"], "vbios": gpu["vbios_version"]}
    samples.add("inference_gpu_info", 1, gpu=name, **{key: str(text or "") for key, text in words.items()})
    add("reported", gpu["reported"])
    add("lost", gpu["lost"])
    if not gpu["reported"]:
        # nvidia-smi has no values of this GPU. The PCIe lanes in sysfs do not count either: the link may be down.
        return
    add("memory_total_bytes", gpu["memory_total_mib"], MIB)
    add("memory_used_bytes", gpu["memory_used_mib"], MIB)
    add("temperature_celsius", gpu["temperature_c"])
    add("memory_temperature_celsius", gpu["memory_temperature_c"])
    add("power_watts", gpu["power_draw_w"])
    add("power_limit_watts", gpu["power_limit_w"])
    add("utilization_ratio", gpu["utilization"]["gpu_percent"], 0.01)
    add("sm_clock_hertz", gpu["clocks"]["sm_mhz"], MEGA)
    add("sm_clock_max_hertz", gpu["clocks"]["sm_max_mhz"], MEGA)
    for reason in (*BAD_THROTTLES, POWER_CAP):
        add("throttled", None if gpu["throttle_reasons"] is None else reason in gpu["throttle_reasons"], reason=reason)
    _memory(gpu, add)
    add("reset_wanted", None if gpu["recovery_action"] is None else gpu["recovery_action"] != "None")
    add("unreadable_values", len(gpu["unreadable"]))
    add("pcie_lanes", gpu["pcie"]["width"])
    add("pcie_lanes_max", gpu["pcie"]["width_max"])
    fabric = gpu["fabric"]
    if (fabric["state"] or "N/A") != "N/A":
        add("fabric_ok", fabric["state"] == "Completed" and fabric["status"] in (None, "Success"))


def _memory(gpu: Mapping[str, Any], add: Any) -> None:
    """Memory errors and repairs. A GPU that does not report a value gets no metric for it."""
    ecc, rows, pages = gpu["ecc"], gpu["remapped_rows"], gpu["retired_pages"]
    add("ecc_uncorrected_errors_total", ecc["aggregate_uncorrected"])
    add("ecc_corrected_errors_total", ecc["aggregate_corrected"])
    for kind in ("correctable", "uncorrectable"):
        add("remapped_rows", rows[kind], kind=kind)
    waiting = [rows["pending"], pages["pending"], ecc["channel_repair_pending"], ecc["tpc_repair_pending"]]
    add("repair_pending", _any(waiting))
    add("repair_failed", _any([rows["failure"], ecc["unrepairable_memory"], ecc["sram_threshold_exceeded"]]))


def _any(flags: Sequence[bool | None]) -> bool | None:
    """Whether one flag is set; None if all are unknown."""
    known = [flag for flag in flags if flag is not None]
    return any(known) if known else None
