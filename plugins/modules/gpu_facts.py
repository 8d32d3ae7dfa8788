#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_facts
short_description: Report the NVIDIA GPUs of a node and their health, before and after the driver is installed
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Finds the GPUs on the PCI bus, which needs no driver. Adds facts from the driver's files, C(nvidia-smi) and the
    kernel's log, matched by PCI address. Changes nothing.
  - Never fails for a driver, a tool or a GPU that is broken or hangs. Then RV(ansible_facts.gpu_driver.ok) is false,
    RV(ansible_facts.gpu_driver.error) gives the reason, and all other facts are still returned.
  - Unknown values are null. Every GPU always has every key.
  - On request, also returns the devices of the Container Device Interface (CDI), and the running containers that can no
    longer open their GPUs.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  gather_subset:
    description:
      - What to read, in addition to the PCI bus and the driver's files, which are always read.
      - V(nvidia_smi) runs C(nvidia-smi -q -x), and C(nvidia-smi -L) if a GPU has MIG devices; V(nvlink) runs
        C(nvidia-smi nvlink -s); V(topology) runs C(nvidia-smi topo -m); V(xids) reads the kernel's log.
      - V(all) is these four, V(min) none. An exclamation mark leaves a subset out. If the list has only
        such items, all remaining subsets of V(all) are read.
      - V(cdi) and V(containers) are not part of V(all). With only these two, the module returns no facts about the GPUs
        themselves.
      - V(cdi) reads the CDI specifications in C(/etc/cdi) and C(/var/run/cdi). It compares those of the kind
        C(nvidia.com/gpu) with the loaded driver, and with the node's files and devices. With a specification for an
        earlier driver, containers fail to start, or get libraries that do not fit the kernel module.
      - If V(nvidia_smi) is read as well, RV(ansible_facts.cdi.refresh_reason) also reports new and missing GPUs and MIG
        devices. Specifications in YAML need C(python3-yaml) on the node. If it is missing,
        RV(ansible_facts.cdi.specs[].error) says so.
      - V(containers) finds all running containers with NVIDIA GPUs, and opens their device nodes from inside, without
        using the driver. A container that was started with C(--gpus) loses its GPUs at the next
        C(systemctl daemon-reload), often by a run of C(apt). The container keeps running, but its processes get
        C(Failed to initialize NVML) or a CUDA error.
      - Facts that are not read are not returned, so that earlier facts stay.
    type: list
    elements: str
    default: [all]
    choices:
      - all
      - min
      - nvidia_smi
      - '!nvidia_smi'
      - nvlink
      - '!nvlink'
      - topology
      - '!topology'
      - xids
      - '!xids'
      - cdi
      - containers
  nvidia_smi:
    description: The program to run, as a path or as a name in the search path.
    type: str
    default: nvidia-smi
  root:
    description:
      - The directory below which C(/sys), C(/proc), C(/var/lib/dpkg), the CDI specifications and the kernel's log are
        read.
      - The kernel's log is C(dev/kmsg) below this directory if that is a plain file, else C(var/log/kern.log). With
        V(/) it is the live C(/dev/kmsg).
    type: path
    default: /
  timeout:
    description:
      - The time limit of each command, in seconds. A command that exceeds it is killed with its children, and
        C(nvidia-smi) is then not run again. If the command hangs in the kernel, the module continues without it a
        second later.
      - Without persistence mode, each call of the tool starts the driver, which takes seconds for each GPU.
    type: float
    default: 30
"""

EXAMPLES = r"""
- name: Read the facts of all GPUs
  baremetal.inference.gpu_facts:

- name: Fail if the driver is broken
  ansible.builtin.assert:
    that: ansible_facts.gpu_driver.ok
    fail_msg: "{{ ansible_facts.gpu_driver.error.kind }}: {{ ansible_facts.gpu_driver.error.message }}"

- name: Count the GPUs on the bus, without running any command
  baremetal.inference.gpu_facts:
    gather_subset: [min]

- name: Read only health, with a short time limit
  baremetal.inference.gpu_facts:
    gather_subset: ['!topology', '!nvlink']
    timeout: 10

- name: Read the CDI specifications, and compare them with the driver and the GPUs
  baremetal.inference.gpu_facts:
    gather_subset: [nvidia_smi, cdi]

- name: Write the specification again if it no longer describes the node
  ansible.builtin.systemd_service:
    name: nvidia-cdi-refresh.service
    state: restarted
  when: ansible_facts['cdi'].refresh_reason is not none

- name: Try the GPUs of all running containers
  baremetal.inference.gpu_facts:
    gather_subset: [containers]

- name: Fail if a container has lost its GPUs
  ansible.builtin.assert:
    that: ansible_facts['container_gpus'].lost | length == 0
    fail_msg: "Restart {{ ansible_facts['container_gpus'].lost | join(', ') }}"
"""

RETURN = r"""
ansible_facts:
  description: The facts.
  returned: always
  type: dict
  contains:
    gpus:
      description:
        - The GPUs, sorted by index; GPUs without an index come last, by PCI address.
      returned: unless only V(cdi) or V(containers) are gathered
      type: list
      elements: dict
      contains:
        index:
          description: The GPU's number for C(nvidia-smi) and CUDA. Null before the driver is installed, and if the tool
            omits a GPU.
          type: int
        uuid:
          description: The GPU's UUID, which never changes.
          type: str
          sample: GPU-5f0c1c51-9a53-4a4c-8d6e-2b7f4f1d9e10
        serial:
          description: Serial number of the board.
          type: str
        minor_number:
          description: The number N of C(/dev/nvidiaN), which may differ from the index.
          type: int
        name:
          description: The product's name as the tool prints it.
          type: str
          sample: NVIDIA H100 80GB HBM3
        product:
          description: The short name in this collection's table of products; null for other products.
          type: str
          sample: H100-80GB
        architecture:
          description: Kepler, Maxwell, Pascal, Volta, Turing, Ampere, Ada Lovelace, Hopper, Blackwell or newer.
          type: str
        compute_capability:
          description: The compute capability, from the table of products. A text, to compare by C(version).
          type: str
          sample: "9.0"
        pci_bus_id:
          description: PCI address as in sysfs.
          type: str
          sample: "0000:1b:00.0"
        pci_device_id:
          description: Vendor and device.
          type: str
          sample: 10de:2330
        pci_subsystem_id:
          description: Vendor and device of the board.
          type: str
        numa_node:
          description: The GPU's NUMA node; null if there is only one, or the firmware does not report it.
          type: int
        driver:
          description: The kernel driver that is bound, such as V(nvidia), V(nouveau) or V(vfio-pci).
          type: str
        excluded:
          description: >-
            Whether an operator has excluded the GPU, by a driver for virtual machines such as V(vfio-pci), or by the
            kernel module's parameter C(NVreg_ExcludedGpus). The parameter is only known once the kernel module is
            loaded. CUDA does not count the GPU.
          type: bool
        lost:
          description: Whether the GPU has fallen off the bus. Its registers read as ones, or the tool reports it.
          type: bool
        reported:
          description: Whether the tool's report has the GPU.
          type: bool
        pcie:
          description: The PCIe link.
          type: dict
          contains:
            gen:
              description: The current generation; lower while the GPU saves power.
              type: int
            width:
              description: The current number of lanes.
              type: int
            gen_max:
              description: The highest possible generation.
              type: int
            width_max:
              description: The highest possible number of lanes.
              type: int
        memory_total_mib:
          description: Memory in MiB; null if the tool does not report the GPU.
          type: int
        memory_reserved_mib:
          description: Memory that the driver reserves, in MiB.
          type: int
        memory_used_mib:
          description: Memory in use, in MiB.
          type: int
        memory_free_mib:
          description: Free memory in MiB.
          type: int
        mig_mode:
          description: V(enabled), V(disabled), or null for a GPU that has no MIG.
          type: str
        mig_mode_pending:
          description: The MIG mode after the next reset.
          type: str
        mig_devices:
          description: The MIG devices of the GPU.
          type: list
          elements: dict
          contains:
            index:
              description: The number of the MIG device.
              type: int
            uuid:
              description: The MIG device's name for CUDA and the container runtime.
              type: str
            profile:
              description: The profile, such as V(3g.40gb).
              type: str
            gpu_instance_id:
              description: Number of the GPU instance.
              type: int
            compute_instance_id:
              description: Number of the compute instance.
              type: int
            memory_total_mib:
              description: Memory in MiB.
              type: int
            memory_used_mib:
              description: Memory in use, in MiB.
              type: int
            multiprocessor_count:
              description: Streaming multiprocessors.
              type: int
            ecc_sram_uncorrectable:
              description: Uncorrectable errors of SRAM since the driver was loaded.
              type: int
        ecc:
          description: Error correction. Before Turing, counts are of bits; since Turing, of SRAM and DRAM together.
          type: dict
          contains:
            current:
              description: V(enabled), V(disabled), or null for a GPU without ECC.
              type: str
            pending:
              description: The state after the next reset.
              type: str
            volatile_corrected:
              description: Corrected errors since the driver was loaded.
              type: int
            volatile_uncorrected:
              description: Uncorrected errors since the driver was loaded.
              type: int
            aggregate_corrected:
              description: Corrected errors in the GPU's life.
              type: int
            aggregate_uncorrected:
              description: Uncorrected errors in the GPU's life.
              type: int
            sram_threshold_exceeded:
              description: Whether SRAM has exceeded NVIDIA's threshold of errors. Then the GPU must be replaced.
              type: bool
            channel_repair_pending:
              description: Whether a reset would repair a memory channel.
              type: bool
            tpc_repair_pending:
              description: Whether a reset would repair a processing cluster.
              type: bool
            unrepairable_memory:
              description: Whether memory is damaged beyond repair.
              type: bool
        retired_pages:
          description: Retired memory pages, on GPUs before Ampere.
          type: dict
          contains:
            single_bit:
              description: Pages with several single bit errors.
              type: int
            double_bit:
              description: Pages with a double bit error.
              type: int
            pending:
              description: Whether more pages will be retired at the next reset.
              type: bool
        remapped_rows:
          description: Memory rows replaced by spare rows, on GPUs since Ampere.
          type: dict
          contains:
            correctable:
              description: Rows with correctable errors.
              type: int
            uncorrectable:
              description: Rows with uncorrectable errors.
              type: int
            pending:
              description: Whether more rows will be replaced at the next reset.
              type: bool
            failure:
              description: Whether no spare row was left. Then the GPU must be replaced.
              type: bool
        recovery_action:
          description: The action that the driver requests, such as V(None), V(Reset), V(Reboot), V(Drain P2P) or
            V(Drain and Reset). Null before driver 570.
          type: str
        persistence_mode:
          description: V(enabled) or V(disabled).
          type: str
        compute_mode:
          description: V(Default), V(Exclusive_Process) or V(Prohibited).
          type: str
        virtualization_mode:
          description: V(None), V(Pass-Through), V(VGPU), …
          type: str
        performance_state:
          description: V(P0), the fastest, to V(P15).
          type: str
        power_draw_w:
          description: Power drawn, in W.
          type: float
        power_limit_w:
          description: Power limit, in W.
          type: float
        power_limit_requested_w:
          description: Requested power limit, in W. The limit in force may be lower. Null before driver 535.
          type: float
        power_limit_default_w:
          description: Default power limit, in W.
          type: float
        power_limit_min_w:
          description: The lowest power limit that the GPU accepts, in W.
          type: float
        power_limit_max_w:
          description: The highest power limit that the GPU accepts, in W.
          type: float
        temperature_c:
          description: Temperature in °C.
          type: int
        memory_temperature_c:
          description: Temperature of the memory in °C.
          type: int
        clocks:
          description: Frequencies.
          type: dict
          contains:
            graphics_mhz:
              description: Graphics clock in MHz.
              type: int
            sm_mhz:
              description: Clock of the multiprocessors in MHz.
              type: int
            memory_mhz:
              description: Clock of the memory in MHz.
              type: int
            graphics_max_mhz:
              description: Highest graphics clock, in MHz.
              type: int
            sm_max_mhz:
              description: Highest clock of the multiprocessors, in MHz.
              type: int
            memory_max_mhz:
              description: Highest clock of the memory, in MHz.
              type: int
        throttle_reasons:
          description: Why the clocks are below their maximum, in NVML's names. V(gpu_idle) and
            V(applications_clocks_setting) are normal. V(hw_slowdown), V(hw_thermal_slowdown) and
            V(hw_power_brake_slowdown) are faults.
          type: list
          elements: str
          sample: [sw_power_cap]
        utilization:
          description: Use during the last sample period, in percent.
          type: dict
          contains:
            gpu_percent:
              description: The time in which the GPU computed.
              type: int
            memory_percent:
              description: The time in which memory was read or written.
              type: int
        fabric:
          description: Registration with the NVSwitch fabric; all null without one. CUDA works only if the state is
            C(Completed) and the status is C(Success).
          type: dict
          contains:
            state:
              description: V(Completed), V(In Progress) or V(Not Started).
              type: str
            status:
              description: The result of the registration.
              type: str
            clique_id:
              description: The number of the clique. GPUs of one clique reach each other.
              type: int
            cluster_uuid:
              description: The NVLink domain.
              type: str
            health:
              description: Summary of the fabric's health.
              type: str
        nvlink:
          description: The NVLinks; null if the tool does not list them, or V(nvlink) is not gathered.
          type: dict
          contains:
            active:
              description: Numbers of the links that are up.
              type: list
              elements: int
            inactive:
              description: Numbers of the links that are down.
              type: list
              elements: int
            speed_gb_per_s:
              description: Speed of one link, in GB/s.
              type: float
            message:
              description: The tool's message, if it prints no list.
              type: str
        processes:
          description: Processes on the GPU; null if the tool cannot list them.
          type: list
          elements: dict
          contains:
            pid:
              description: The process ID.
              type: int
            type:
              description: V(C) for compute, V(G) for graphics, V(C+G) for both.
              type: str
            name:
              description: The program.
              type: str
            memory_used_mib:
              description: GPU memory of the process, in MiB.
              type: int
            gpu_instance_id:
              description: Number of the process's GPU instance.
              type: int
            compute_instance_id:
              description: Number of the process's compute instance.
              type: int
        vbios_version:
          description: Version of the video BIOS.
          type: str
        gsp_firmware_version:
          description: Version of the firmware of the GPU's system processor.
          type: str
        unreadable:
          description: Values that the tool could not read, a sign of a broken GPU.
          type: list
          elements: dict
          contains:
            element:
              description: Path of the element in the tool's report.
              type: str
              sample: fan_speed
            text:
              description: The text in the report.
              type: str
              sample: ERR!
    nvswitches:
      description: PCI addresses of the NVSwitches. Since NVLink 5 (HGX B200), they are not on the host's bus.
      returned: unless only V(cdi) or V(containers) are gathered
      type: list
      elements: str
      sample: ["0000:05:00.0"]
    nvswitch_managers:
      description:
        - PCI addresses of the InfiniBand functions with which the host manages NVSwitches that are not on its bus. They
          are not NICs for traffic.
      returned: unless only V(cdi) or V(containers) are gathered
      type: list
      elements: str
      sample: []
    gpu_driver:
      description: The driver and its tool.
      returned: unless only V(cdi) or V(containers) are gathered
      type: dict
      contains:
        ok:
          description: Whether the tool answered, and reported every GPU. Null if the tool was not run.
          type: bool
        error:
          description: The first error, or null.
          type: dict
          contains:
            kind:
              description:
                - Errors of the tool are V(not_installed), V(not_runnable), V(timeout), V(endless_output),
                  V(malformed_output), V(bad_argument), V(no_permission), V(failed).
                - Errors of the driver are V(driver_not_loaded), V(driver_library_mismatch), V(library_not_found),
                  V(function_not_found), V(nvml_unknown_error), V(nvml_init_failed), V(interrupt_problem).
                - Errors of GPUs are V(no_devices), V(gpu_lost), V(gpu_missing) for a GPU that is bound to the driver
                  but not listed, V(gpu_requires_reset), V(gpu_handle_error), V(inforom_corrupted), V(power_cable).
              type: str
            message:
              description: The tool's message.
              type: str
            pci_bus_id:
              description: PCI address of the GPU that the message names.
              type: str
        version:
          description: Version of the driver.
          type: str
          sample: 580.105.08
        cuda_version:
          description: The newest version of CUDA that the driver supports.
          type: str
          sample: "13.0"
        module_version:
          description: Version of the loaded kernel module; null if none is loaded.
          type: str
        module_flavor:
          description: V(open) or V(proprietary).
          type: str
        package:
          description: The installed package of the kernel module; null if there is none.
          type: dict
          contains:
            name:
              description: The package's name.
              type: str
              sample: nvidia-open-kernel-dkms
            version:
              description: The package's version.
              type: str
            flavor:
              description: V(open) or V(proprietary).
              type: str
        library_version:
          description: Version of the installed NVML library.
          type: str
        matches_package:
          description: Whether the loaded module has the version and flavour of the package. False after an upgrade
            without a reboot. Null if either is unknown.
          type: bool
    gpu_topology:
      description: The connections between GPUs, and between GPUs and NICs; null if the tool does not report them.
      returned: if V(topology) is gathered
      type: dict
      contains:
        gpus:
          description: The GPUs.
          type: list
          elements: dict
          contains:
            index:
              description: Index of the GPU.
              type: int
            pci_bus_id:
              description: PCI address; null if V(nvidia_smi) is not gathered.
              type: str
            cpu_affinity:
              description: The nearest CPUs.
              type: str
              sample: 0-51,104-155
            numa_affinity:
              description: The nearest NUMA nodes.
              type: str
            gpu_numa_id:
              description: The NUMA node of the GPU's own memory.
              type: str
            nearest_nics:
              description: The nearest RDMA devices; the column's name if the device is unknown.
              type: list
              elements: str
              sample: [mlx5_0]
        nics:
          description: The NICs.
          type: list
          elements: dict
          contains:
            name:
              description: The name of the column.
              type: str
              sample: NIC0
            device:
              description: The RDMA device; null if the legend is missing.
              type: str
              sample: mlx5_0
        links:
          description: The connection of each pair, by column names. NV18 is 18 NVLinks; PIX, PXB, PHB, NODE and SYS are
            connections over PCIe, the nearest first.
          type: dict
          sample: {GPU0: {GPU1: NV18, NIC0: PIX}}
        all_nvlink:
          description: Whether all GPUs reach each other by NVLink; null with a single GPU.
          type: bool
    gpu_xids:
      description: >-
        Errors of the driver with a number (XIDs) since the boot, in order; null if the kernel's log cannot be read.
        The live log drops its oldest lines.
      returned: if V(xids) is gathered
      type: list
      elements: dict
      contains:
        pci_bus_id:
          description: PCI address of the GPU.
          type: str
        xid:
          description: The number.
          type: int
          sample: 79
        time_s:
          description: Seconds since boot; null if the log has no time stamps.
          type: float
        text:
          description: The message.
          type: str
    gpu_kernel_errors:
      description: Failures that the driver reports without a number, since the boot; null if the kernel's log cannot be
        read.
      returned: if V(xids) is gathered
      type: list
      elements: dict
      contains:
        pci_bus_id:
          description: PCI address of the GPU; null if the message does not name it.
          type: str
        kind:
          description: V(fallen_off_bus), V(init_failed), V(needs_open_module), or V(legacy_gpu) for a GPU that needs an
            older branch of the driver.
          type: str
        time_s:
          description: Seconds since boot; null if the log has no time stamps.
          type: float
        text:
          description: The line of the log.
          type: str
    cdi:
      description: The specifications of the Container Device Interface.
      returned: if V(cdi) is gathered
      type: dict
      contains:
        devices:
          description: The qualified names of the devices that a container can get.
          type: list
          elements: str
          sample: [nvidia.com/gpu=0, nvidia.com/gpu=all]
        conflicts:
          description: Devices that no container can get, because two files of one directory define them.
          type: list
          elements: dict
          contains:
            device:
              description: The qualified name.
              type: str
            paths:
              description: The files.
              type: list
              elements: str
        driver_version:
          description: The version of the loaded driver; V(null) if none is loaded.
          type: str
        refresh_reason:
          description:
            - Why C(nvidia-cdi-refresh.service) must write C(/var/run/cdi/nvidia.yaml) again; V(null) if it need not.
          type: str
        specs:
          description: The files, in the order in which they are read. If both directories define a device, the later
            file counts.
          type: list
          elements: dict
          contains:
            path:
              description: The file.
              type: str
            kind:
              description: The kind of its devices, such as V(nvidia.com/gpu); V(null) if the file cannot be read.
              type: str
            cdi_version:
              description: The version of the CDI format; V(null) if the file has none.
              type: str
            devices:
              description: The names of the devices, without the kind.
              type: list
              elements: str
            driver_versions:
              description: The driver versions of the NVIDIA libraries in the file.
              type: list
              elements: str
            missing_paths:
              description: Files and device nodes in the specification that do not exist on the host.
              type: list
              elements: str
            renumbered:
              description: Device nodes whose numbers in the specification are wrong.
              type: list
              elements: str
            stale:
              description:
                - Why the file must be removed; V(null) if it may stay.
                - A file of the kind C(nvidia.com/gpu) is stale if it is for another driver than the loaded one, names
                  missing files or devices, has old device numbers, or conflicts with another file. A file C(nvidia*)
                  other than C(/var/run/cdi/nvidia.yaml) is stale, too, because nothing updates it.
              type: str
            error:
              description: Why the file cannot be read; V(null) if it can.
              type: str
    container_gpus:
      description: The containers with GPUs.
      returned: if V(containers) is gathered
      type: dict
      contains:
        error:
          description: Why the containers are unknown, such as no answer from Docker; V(null) if Docker answers.
          type: str
        lost:
          description: The names of the containers that cannot open a device of their GPUs.
          type: list
          elements: str
        containers:
          description: The running containers with GPUs.
          type: list
          elements: dict
          contains:
            id:
              description: The whole ID.
              type: str
            name:
              description: The name.
              type: str
            request:
              description:
                - How the container gets its GPUs. V(cdi) is by CDI name, V(runtime) by NVIDIA's runtime, V(gpus) by
                  C(--gpus), V(devices) by its device nodes.
              type: str
            devices:
              description: The container's device nodes.
              type: list
              elements: str
            lost:
              description: The device nodes that the container cannot open, with the reason.
              type: dict
              sample: {/dev/nvidia0: Operation not permitted}
            error:
              description: Why the container could not be tried; V(null) if it could.
              type: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import commands
from ansible_collections.baremetal.inference.plugins.module_utils.core.gather_subset import ALL, choices, chosen
from ansible_collections.baremetal.inference.plugins.module_utils.hardware import cdi, container_gpus
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import driver, facts

CDI = "cdi"
CONTAINERS = "containers"
ON_REQUEST = (CDI, CONTAINERS)
"""The subsets that are only gathered by their name."""

ARGUMENTS = {
    "gather_subset": {
        "type": "list",
        "elements": "str",
        "default": [ALL],
        "choices": [*choices(facts.PARTS), *ON_REQUEST],
    },
    "nvidia_smi": {"type": "str", "default": "nvidia-smi"},
    "root": {"type": "path", "default": "/"},
    "timeout": {"type": "float", "default": 30},
}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    root, timeout = Path(module.params["root"]), module.params["timeout"]
    if not timeout > 0:
        module.fail_json(msg=f"timeout: {timeout:g}: must be more than 0 seconds")

    def run(command: list[str]) -> commands.Outcome:
        return commands.run(command, timeout)

    requested = module.params["gather_subset"]
    subset = [name for name in requested if name not in ON_REQUEST]
    found = {}
    if subset or not requested:
        parts = chosen(subset, facts.PARTS)
        found = facts.gather(root, run, module.params["nvidia_smi"], parts, timeout)
    if CDI in requested:
        found["cdi"] = cdi.facts(root, driver.read(root).module_version, found.get("gpus", []))
    if CONTAINERS in requested:
        found["container_gpus"] = container_gpus.facts(container_gpus.find(run, root))
    module.exit_json(changed=False, ansible_facts=found)


if __name__ == "__main__":
    main()
