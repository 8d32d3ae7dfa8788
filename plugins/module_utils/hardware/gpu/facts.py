# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Joins the data of PCI bus, driver, nvidia-smi and kernel log about a node's GPUs. Private to the collection."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from ...core.commands import Outcome
from .. import kernel_log, pci
from . import driver, nvlink, products, report, topology, xid
from .errors import Failure, classify
from .models import Gpu, Pcie

Run = Callable[[list[str]], Outcome]
"""Runs a command within the time limit."""

NVIDIA_SMI, NVLINK, TOPOLOGY, XIDS = "nvidia_smi", "nvlink", "topology", "xids"
PARTS = (NVIDIA_SMI, NVLINK, TOPOLOGY, XIDS)
"""Optional parts. The bus and the driver's files are always read."""

MANAGED_SWITCHES = ("Blackwell",)
"""Architectures whose NVSwitches are managed by InfiniBand (NVLink 5). Source: NVIDIA's fabric manager user guide, "GPU
baseboard topologies"."""


class Tool:
    """nvidia-smi. After a run without an exit status, it is not run again. The first failure is kept."""

    def __init__(self, run: Run, program: str) -> None:
        self._run = run
        self._program = program
        self._usable = True
        self.failure: Failure | None = None

    def ask(self, *arguments: str) -> Outcome | None:
        """The result of a run; None after an earlier run without an exit status."""
        if not self._usable:
            return None
        outcome = self._run([self._program, *arguments])
        if outcome.failure:
            self._usable = False
            self.failed(Failure(outcome.failure, outcome.message))
        return outcome

    def failed(self, failure: Failure) -> None:
        self.failure = self.failure or failure


def gather(root: Path, run: Run, program: str, parts: Collection[str], timeout: float) -> dict[str, Any]:
    """The facts gpus, nvswitches, nvswitch_managers and gpu_driver, and those of the parts, below a root. `timeout` is
    in seconds, for the kernel log.

    Raises nothing for a broken nvidia-smi, driver or GPU: the facts describe the failure.
    """
    tool = Tool(run, program)
    loaded = driver.read(root)
    smi = _report(tool) if NVIDIA_SMI in parts else report.Report()
    gpus = _join(pci.nvidia_gpus(root), smi.gpus)
    for gpu in gpus:
        driver.information(root, gpu)
        gpu.excluded = driver.left_alone(root, gpu.driver, gpu.pci_bus_id or "")
        _complete(gpu)
    if NVIDIA_SMI in parts:
        _name_mig_devices(tool, gpus)
        _mark_lost(tool, gpus)
    facts: dict[str, Any] = {}
    if NVLINK in parts:
        _add_nvlinks(tool, gpus)
    if TOPOLOGY in parts:
        facts["gpu_topology"] = _topology(tool, gpus)
    if XIDS in parts:
        log = kernel_log.read(root, timeout)
        found = None if log is None else xid.find(log)
        facts["gpu_xids"] = None if found is None else [asdict(one) for one in found[0]]
        facts["gpu_kernel_errors"] = None if found is None else [asdict(one) for one in found[1]]
    asked = {NVIDIA_SMI, NVLINK, TOPOLOGY} & set(parts)
    may_be_managed = any(gpu.architecture in MANAGED_SWITCHES for gpu in gpus)
    return {
        "gpus": [asdict(gpu) for gpu in gpus],
        "nvswitches": pci.nvswitches(root),
        "nvswitch_managers": pci.nvswitch_managers(root) if may_be_managed else [],
        "gpu_driver": {
            "ok": tool.failure is None if asked else None,
            "error": asdict(tool.failure) if tool.failure else None,
            # NVML reports the version of the loaded module.
            "version": smi.driver_version or loaded.module_version,
            "cuda_version": smi.cuda_version,
            "module_version": loaded.module_version,
            "module_flavor": loaded.module_flavor,
            "package": asdict(loaded.package) if loaded.package else None,
            "library_version": loaded.library_version,
            "matches_package": loaded.matches_package,
        },
        **facts,
    }


def _report(tool: Tool) -> report.Report:
    outcome = tool.ask("-q", "-x")
    if outcome is None:
        return report.Report()
    smi = report.parse(outcome.stdout)
    # nvidia-smi prints failures on standard output, sometimes after a good report.
    if failure := classify(f"{smi.remarks}\n{outcome.stderr}".strip(), outcome.code or 0):
        tool.failed(failure)
    elif smi.damage:
        tool.failed(Failure("malformed_output", f"The report of nvidia-smi cannot be read to its end: {smi.damage}"))
    elif not smi.gpus:
        tool.failed(Failure("no_devices", "nvidia-smi lists no GPU"))
    return smi


def _join(on_bus: list[pci.Device], smi: list[Gpu]) -> list[Gpu]:
    """The GPUs of the bus and of nvidia-smi, matched by address. Sorted by index, GPUs without an index last."""
    gpus = {gpu.pci_bus_id: gpu for gpu in smi if gpu.pci_bus_id}
    for device in on_bus:
        gpu = gpus.setdefault(device.address, Gpu(pci_bus_id=device.address))
        gpu.pci_device_id = _id(device.vendor, device.device) or gpu.pci_device_id
        gpu.pci_subsystem_id = _id(device.subsystem_vendor, device.subsystem_device) or gpu.pci_subsystem_id
        gpu.numa_node = device.numa_node
        gpu.driver = device.driver
        gpu.lost = gpu.lost or device.lost
        for one in fields(Pcie):
            if (value := getattr(device.link, one.name)) is not None:
                setattr(gpu.pcie, one.name, value)
    nameless = [gpu for gpu in smi if not gpu.pci_bus_id]
    return sorted(
        [*gpus.values(), *nameless],
        key=lambda gpu: (gpu.index is None, gpu.index or 0, pci.sort_key(gpu.pci_bus_id or "")),
    )


def _id(vendor: int | None, device: int | None) -> str | None:
    return None if vendor is None or device is None else f"{vendor:04x}:{device:04x}"


def _complete(gpu: Gpu) -> None:
    """Add data of the product tables."""
    device = int(gpu.pci_device_id.partition(":")[2], 16) if gpu.pci_device_id else None
    product = products.by_name(gpu.name) or products.by_device(device)
    generation = products.generation(device, gpu.name, gpu.architecture)
    if generation:
        gpu.architecture = gpu.architecture or generation.architecture
        gpu.compute_capability = generation.compute_capability
    if product:
        gpu.product = product.product
        # Not the memory: only nvidia-smi has the right size, because a virtual machine may have a part of the card.
        gpu.name = gpu.name or product.name


def _name_mig_devices(tool: Tool, gpus: list[Gpu]) -> None:
    """Add profiles, which the report does not have, and UUIDs, which it may lack."""
    if not any(gpu.mig_devices for gpu in gpus):
        return
    outcome = tool.ask("-L")
    named = nvlink.mig_devices(outcome.stdout) if outcome else {}
    for gpu in gpus:
        for device in gpu.mig_devices:
            if device.index is not None:
                device.profile, device.uuid = named.get((gpu.uuid or "", device.index), (None, device.uuid))


def _mark_lost(tool: Tool, gpus: list[Gpu]) -> None:
    """Mark the GPU that nvidia-smi names as lost. Without an earlier failure, record the first lost GPU, or else the
    first GPU that nvidia-smi does not list."""
    if tool.failure and tool.failure.kind == "gpu_lost" and tool.failure.pci_bus_id:
        for gpu in gpus:
            gpu.lost = gpu.lost or gpu.pci_bus_id == tool.failure.pci_bus_id
    for gpu in gpus:
        if gpu.lost:
            tool.failed(Failure("gpu_lost", f"GPU {gpu.pci_bus_id} has fallen off the bus", gpu.pci_bus_id))
    for gpu in gpus:
        if gpu.driver == "nvidia" and not gpu.reported and not gpu.excluded:
            message = f"GPU {gpu.pci_bus_id} is on the bus and bound to the driver, but nvidia-smi does not list it"
            tool.failed(Failure("gpu_missing", message, gpu.pci_bus_id))


def _add_nvlinks(tool: Tool, gpus: list[Gpu]) -> None:
    outcome = tool.ask("nvlink", "-s")
    links = nvlink.links(outcome.stdout) if outcome else {}
    for gpu in gpus:
        gpu.nvlink = links.get(gpu.uuid or "")


def _topology(tool: Tool, gpus: list[Gpu]) -> dict[str, Any] | None:
    outcome = tool.ask("topo", "-m")
    matrix = topology.parse(outcome.stdout) if outcome else None
    if matrix is None:
        return None
    addresses = {gpu.index: gpu.pci_bus_id for gpu in gpus if gpu.index is not None}
    for gpu in matrix.gpus:
        gpu.pci_bus_id = addresses.get(gpu.index)
    return asdict(matrix)
