# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The form of a GPU's facts. Every key always exists; None is an unknown value. Private to the collection."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Pcie:
    """The PCIe link of a GPU: generation and lanes, now (lower while it saves power) and at most."""

    gen: int | None = None
    width: int | None = None
    gen_max: int | None = None
    width_max: int | None = None


@dataclass
class Clocks:
    """Frequencies in MHz, now and at most."""

    graphics_mhz: int | None = None
    sm_mhz: int | None = None
    memory_mhz: int | None = None
    graphics_max_mhz: int | None = None
    sm_max_mhz: int | None = None
    memory_max_mhz: int | None = None


@dataclass
class Utilization:
    """Share of the last sample period in percent in which a kernel ran, and in which memory was read or written."""

    gpu_percent: int | None = None
    memory_percent: int | None = None


@dataclass
class Ecc:
    """Error correction: mode now and after the next reset (`enabled`, `disabled`), and counts of errors: of single and
    double bits before Turing, of SRAM plus DRAM since. A start of the driver resets the volatile counts, but not the
    aggregate counts."""

    current: str | None = None
    pending: str | None = None
    volatile_corrected: int | None = None
    volatile_uncorrected: int | None = None
    aggregate_corrected: int | None = None
    aggregate_uncorrected: int | None = None
    sram_threshold_exceeded: bool | None = None
    channel_repair_pending: bool | None = None
    tpc_repair_pending: bool | None = None
    unrepairable_memory: bool | None = None


@dataclass
class RetiredPages:
    """Retired pages of memory, before Ampere; `pending`: further pages are retired at the next reset."""

    single_bit: int | None = None
    double_bit: int | None = None
    pending: bool | None = None


@dataclass
class RemappedRows:
    """Rows of memory replaced by spare rows, since Ampere; `pending`: further rows at the next reset; `failure`: a row
    could not be replaced."""

    correctable: int | None = None
    uncorrectable: int | None = None
    pending: bool | None = None
    failure: bool | None = None


@dataclass
class Fabric:
    """Registration with NVSwitch's fabric. A GPU in a fabric computes only in state Completed with status Success."""

    state: str | None = None
    status: str | None = None
    clique_id: int | None = None
    cluster_uuid: str | None = None
    health: str | None = None


@dataclass
class Nvlink:
    """Numbers of the links that are up and down, GB/s of one link, and nvidia-smi's message if it lists no links."""

    active: list[int] = field(default_factory=list)
    inactive: list[int] = field(default_factory=list)
    speed_gb_per_s: float | None = None
    message: str | None = None


@dataclass
class MigDevice:
    """A MIG device of a GPU."""

    index: int | None = None
    uuid: str | None = None
    profile: str | None = None
    gpu_instance_id: int | None = None
    compute_instance_id: int | None = None
    memory_total_mib: int | None = None
    memory_used_mib: int | None = None
    multiprocessor_count: int | None = None
    ecc_sram_uncorrectable: int | None = None


@dataclass
class Process:
    """A process on a GPU; `type` is C for compute, G for graphics, M for MPS, joined with a plus."""

    pid: int | None = None
    type: str | None = None
    name: str | None = None
    memory_used_mib: int | None = None
    gpu_instance_id: int | None = None
    compute_instance_id: int | None = None


@dataclass
class Unreadable:
    """A value that nvidia-smi could not read, which is a sign of a broken GPU."""

    element: str
    text: str


@dataclass
class Gpu:
    """A GPU by its PCI function, the driver and nvidia-smi. Persistence and MIG mode are `enabled` or `disabled`."""

    index: int | None = None
    uuid: str | None = None
    serial: str | None = None
    minor_number: int | None = None
    name: str | None = None
    product: str | None = None
    architecture: str | None = None
    compute_capability: str | None = None
    pci_bus_id: str | None = None
    pci_device_id: str | None = None
    pci_subsystem_id: str | None = None
    numa_node: int | None = None
    driver: str | None = None
    excluded: bool = False
    """Not for the driver: a virtual machine has it, or NVreg_ExcludedGpus names it."""
    lost: bool = False
    reported: bool = False
    pcie: Pcie = field(default_factory=Pcie)
    memory_total_mib: int | None = None
    memory_reserved_mib: int | None = None
    memory_used_mib: int | None = None
    memory_free_mib: int | None = None
    mig_mode: str | None = None
    mig_mode_pending: str | None = None
    mig_devices: list[MigDevice] = field(default_factory=list)
    ecc: Ecc = field(default_factory=Ecc)
    retired_pages: RetiredPages = field(default_factory=RetiredPages)
    remapped_rows: RemappedRows = field(default_factory=RemappedRows)
    recovery_action: str | None = None
    persistence_mode: str | None = None
    compute_mode: str | None = None
    virtualization_mode: str | None = None
    performance_state: str | None = None
    power_draw_w: float | None = None
    power_limit_w: float | None = None
    power_limit_requested_w: float | None = None
    power_limit_default_w: float | None = None
    power_limit_min_w: float | None = None
    power_limit_max_w: float | None = None
    temperature_c: int | None = None
    memory_temperature_c: int | None = None
    clocks: Clocks = field(default_factory=Clocks)
    throttle_reasons: list[str] | None = None
    utilization: Utilization = field(default_factory=Utilization)
    fabric: Fabric = field(default_factory=Fabric)
    nvlink: Nvlink | None = None
    processes: list[Process] | None = None
    vbios_version: str | None = None
    gsp_firmware_version: str | None = None
    unreadable: list[Unreadable] = field(default_factory=list)
