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
  - Finds the GPUs on the PCI bus, which needs no driver, and adds what the driver's files, C(nvidia-smi) and the
    kernel's log tell. The sources are matched by PCI address. Changes nothing.
  - Never fails for a driver, a tool or a GPU that is broken or hangs. Then RV(ansible_facts.gpu_driver.ok) is false,
    RV(ansible_facts.gpu_driver.error) says why, and everything that could be found out is there all the same.
  - What is not known is null. Every key of a GPU is always there.
  - On request, the module also reports which devices containers can ask for by the names of the Container Device
    Interface (CDI), and which running containers can no longer open their GPUs.
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
      - What to ask, besides the PCI bus and the driver's files, which are always read.
      - V(nvidia_smi) is C(nvidia-smi -q -x), and C(nvidia-smi -L) where a GPU has MIG devices; V(nvlink) is
        C(nvidia-smi nvlink -s); V(topology) is C(nvidia-smi topo -m); V(xids) is the kernel's log.
      - V(all) is these four, V(min) nothing. An exclamation mark leaves one out, of V(all) where nothing else is given.
      - V(cdi) and V(containers) are not part of V(all); name them to gather them. Without any of the other names, the
        module returns no facts about the GPUs themselves.
      - V(cdi) reads the CDI specifications in C(/etc/cdi) and C(/var/run/cdi), and compares those of the kind
        C(nvidia.com/gpu) with the loaded driver and with the files and devices of the node. A specification for an
        earlier driver makes containers fail at their start, or gives them libraries that do not fit the kernel module.
        Together with V(nvidia_smi), RV(ansible_facts.cdi.refresh_reason) also reports GPUs and MIG slices that came or
        went. Specifications in YAML need C(python3-yaml) on the node; without it, RV(ansible_facts.cdi.specs[].error)
        says so.
      - V(containers) finds the running containers that asked for NVIDIA GPUs, in whatever way, and opens their device
        nodes from inside, without asking the driver. A container that was started with C(--gpus) loses its GPUs at the
        next C(systemctl daemon-reload), often that of an C(apt) run. The container goes on running, and its processes
        report only C(Failed to initialize NVML) or a CUDA error.
      - A fact that is left out is not returned, so that an earlier one stays.
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
    description: The program to run, a name to find in the search path or a path.
    type: str
    default: nvidia-smi
  root:
    description:
      - Directory to read C(/sys), C(/proc), C(/var/lib/dpkg), the CDI specifications and the kernel's log below.
      - The kernel's log is C(dev/kmsg) below it where that is a plain file, else C(var/log/kern.log). With V(/) it is
        the live C(/dev/kmsg).
    type: path
    default: /
  timeout:
    description:
      - Seconds for each command. One that does not end is killed with its children; if it hangs in the kernel, it is
        left behind a second later. After that no other command is run.
      - Without persistence mode the tool starts the driver anew for each call, which takes seconds for each GPU.
    type: float
    default: 30
"""

EXAMPLES = r"""
- name: See what the node has
  baremetal.inference.gpu_facts:

- name: Refuse to go on with a broken driver
  ansible.builtin.assert:
    that: ansible_facts.gpu_driver.ok
    fail_msg: "{{ ansible_facts.gpu_driver.error.kind }}: {{ ansible_facts.gpu_driver.error.message }}"

- name: Count the GPUs on the bus, without running any command
  baremetal.inference.gpu_facts:
    gather_subset: [min]

- name: Look at health alone, and do not wait long
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
        - The GPUs, by index; those without an index after the others, by PCI address.
      returned: unless V(cdi) and V(containers) alone are asked for
      type: list
      elements: dict
      contains:
        index:
          description: The number that the tool and CUDA give it. Null before the driver is there, and where the tool
            left a GPU out.
          type: int
        uuid:
          description: Its name that never changes.
          type: str
          sample: GPU-5f0c1c51-9a53-4a4c-8d6e-2b7f4f1d9e10
        serial:
          description: Serial number of the board.
          type: str
        minor_number:
          description: The N of C(/dev/nvidiaN); not always the index.
          type: int
        name:
          description: The product's name as the tool prints it.
          type: str
          sample: NVIDIA H100 80GB HBM3
        product:
          description: The short name in this collection's table of products, null for a product that is not in it.
          type: str
          sample: H100-80GB
        architecture:
          description: Kepler, Maxwell, Pascal, Volta, Turing, Ampere, Ada Lovelace, Hopper, Blackwell or what is newer.
          type: str
        compute_capability:
          description: Of the table of products, for the tool's report does not have it. A text, to be compared by
            C(version).
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
          description: The NUMA node it hangs on; null where there is one node only, or the firmware does not tell.
          type: int
        driver:
          description: The kernel driver that is bound, such as V(nvidia), V(nouveau) or V(vfio-pci).
          type: str
        excluded:
          description: Whether an operator keeps it from the driver, by a driver for virtual machines such as
            V(vfio-pci), or, told once the module is loaded, by its parameter C(NVreg_ExcludedGpus). CUDA does not
            count it.
          type: bool
        lost:
          description: Whether it has fallen off the bus. Its registers read as ones, or the tool says so.
          type: bool
        reported:
          description: Whether the tool's report has it.
          type: bool
        pcie:
          description: The PCIe link.
          type: dict
          contains:
            gen:
              description: Generation now; lower while the GPU saves power.
              type: int
            width:
              description: Lanes now.
              type: int
            gen_max:
              description: Generation at most.
              type: int
            width_max:
              description: Lanes at most.
              type: int
        memory_total_mib:
          description: Memory in MiB, null where the tool does not report the GPU.
          type: int
        memory_reserved_mib:
          description: Memory that the driver keeps for itself, in MiB.
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
          description: The same after the next reset.
          type: str
        mig_devices:
          description: The slices of the GPU.
          type: list
          elements: dict
          contains:
            index:
              description: Number among the GPU's slices.
              type: int
            uuid:
              description: What CUDA and the container runtime call it.
              type: str
            profile:
              description: Its size, such as V(3g.40gb).
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
          description: Error correction. Counts are of bits before Turing, of SRAM and DRAM together since.
          type: dict
          contains:
            current:
              description: V(enabled), V(disabled), or null for a GPU without it.
              type: str
            pending:
              description: The same after the next reset.
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
              description: Whether SRAM has had more errors than NVIDIA takes for normal; the GPU is to be exchanged.
              type: bool
            channel_repair_pending:
              description: Whether a reset would repair a memory channel.
              type: bool
            tpc_repair_pending:
              description: Whether a reset would repair a processing cluster.
              type: bool
            unrepairable_memory:
              description: Whether memory is broken beyond repair.
              type: bool
        retired_pages:
          description: Pages of memory out of use; before Ampere.
          type: dict
          contains:
            single_bit:
              description: Pages with several single bit errors.
              type: int
            double_bit:
              description: Pages with a double bit error.
              type: int
            pending:
              description: Whether more will be retired at the next reset.
              type: bool
        remapped_rows:
          description: Rows of memory replaced by spare ones; since Ampere.
          type: dict
          contains:
            correctable:
              description: Rows with correctable errors.
              type: int
            uncorrectable:
              description: Rows with uncorrectable errors.
              type: int
            pending:
              description: Whether more will be replaced at the next reset.
              type: bool
            failure:
              description: Whether no spare row was left; the GPU is to be exchanged.
              type: bool
        recovery_action:
          description: What the driver asks for, such as V(None), V(Reset), V(Reboot), V(Drain P2P) or
            V(Drain and Reset). Null before 570.
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
          description: Power limit that was asked for, in W; the one in force may be lower. Null before 535.
          type: float
        power_limit_default_w:
          description: Power limit as delivered, in W.
          type: float
        power_limit_min_w:
          description: The least power limit that it takes, in W.
          type: float
        power_limit_max_w:
          description: The greatest power limit that it takes, in W.
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
              description: Graphics clock at most, in MHz.
              type: int
            sm_max_mhz:
              description: Clock of the multiprocessors at most, in MHz.
              type: int
            memory_max_mhz:
              description: Clock of the memory at most, in MHz.
              type: int
        throttle_reasons:
          description: Why the clocks are not at their most, as NVML names it. V(gpu_idle) and
            V(applications_clocks_setting) are no fault; V(hw_slowdown), V(hw_thermal_slowdown) and
            V(hw_power_brake_slowdown) are.
          type: list
          elements: str
          sample: [sw_power_cap]
        utilization:
          description: Shares of the last sample period.
          type: dict
          contains:
            gpu_percent:
              description: In which the GPU computed.
              type: int
            memory_percent:
              description: In which memory was read or written.
              type: int
        fabric:
          description: Registration with the fabric of NVSwitch; all null where there is none. CUDA starts only once the
            state is C(Completed) and the status is C(Success).
          type: dict
          contains:
            state:
              description: V(Completed), V(In Progress) or V(Not Started).
              type: str
            status:
              description: How it ended.
              type: str
            clique_id:
              description: GPUs of one clique reach one another.
              type: int
            cluster_uuid:
              description: The NVLink domain.
              type: str
            health:
              description: Summary of its health.
              type: str
        nvlink:
          description: The NVLinks; null where the tool does not tell, and where V(nvlink) was not asked for.
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
              description: What the tool says instead of a list.
              type: str
        processes:
          description: Processes on the GPU; null where the tool cannot list them.
          type: list
          elements: dict
          contains:
            pid:
              description: Its number.
              type: int
            type:
              description: V(C) for compute, V(G) for graphics, V(C+G) for both.
              type: str
            name:
              description: Its program.
              type: str
            memory_used_mib:
              description: Memory of the GPU that it holds, in MiB.
              type: int
            gpu_instance_id:
              description: Number of the GPU instance that it runs on.
              type: int
            compute_instance_id:
              description: Number of the compute instance that it runs on.
              type: int
        vbios_version:
          description: Version of the video BIOS.
          type: str
        gsp_firmware_version:
          description: Version of the firmware of the GPU's system processor.
          type: str
        unreadable:
          description: Values that the tool tried to read and could not, a sign of a broken GPU.
          type: list
          elements: dict
          contains:
            element:
              description: Path of the element in the tool's report.
              type: str
              sample: fan_speed
            text:
              description: What stands there.
              type: str
              sample: ERR!
    nvswitches:
      description: PCI addresses of the NVSwitches. From NVLink 5 on (HGX B200), they are not on the host's bus.
      returned: unless V(cdi) and V(containers) alone are asked for
      type: list
      elements: str
      sample: ["0000:05:00.0"]
    nvswitch_managers:
      description:
        - PCI addresses of the InfiniBand functions by which the host manages NVSwitches that are not on its bus. They
          are no NICs for traffic.
      returned: unless V(cdi) and V(containers) alone are asked for
      type: list
      elements: str
      sample: []
    gpu_driver:
      description: The driver and its tool.
      returned: unless V(cdi) and V(containers) alone are asked for
      type: dict
      contains:
        ok:
          description: Whether the tool answered and every GPU with it. Null where it was not asked.
          type: bool
        error:
          description: What went wrong first, or null.
          type: dict
          contains:
            kind:
              description:
                - Of the tool - V(not_installed), V(not_runnable), V(timeout), V(endless_output), V(malformed_output),
                  V(bad_argument), V(no_permission), V(failed).
                - Of the driver - V(driver_not_loaded), V(driver_library_mismatch), V(library_not_found),
                  V(function_not_found), V(nvml_unknown_error), V(nvml_init_failed), V(interrupt_problem).
                - Of the GPUs - V(no_devices), V(gpu_lost), V(gpu_missing) for one that is bound to the driver and not
                  listed, V(gpu_requires_reset), V(gpu_handle_error), V(inforom_corrupted), V(power_cable).
              type: str
            message:
              description: The tool's words.
              type: str
            pci_bus_id:
              description: PCI address of the GPU that they name.
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
          description: Version of the kernel module that is loaded; null where none is.
          type: str
        module_flavor:
          description: V(open) or V(proprietary).
          type: str
        package:
          description: The installed package that the kernel module is built from; null where there is none.
          type: dict
          contains:
            name:
              description: Its name.
              type: str
              sample: nvidia-open-kernel-dkms
            version:
              description: Its version.
              type: str
            flavor:
              description: V(open) or V(proprietary).
              type: str
        library_version:
          description: Version of the installed NVML library.
          type: str
        matches_package:
          description: Whether the loaded module has the version and flavour of the package. False after an upgrade that
            no reboot followed. Null where either is unknown.
          type: bool
    gpu_topology:
      description: What lies between the GPUs, and between GPUs and NICs; null where the tool does not tell.
      returned: when V(topology) is asked for
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
              description: PCI address; null where the report was not asked for.
              type: str
            cpu_affinity:
              description: CPUs that are near.
              type: str
              sample: 0-51,104-155
            numa_affinity:
              description: NUMA nodes that are near.
              type: str
            gpu_numa_id:
              description: NUMA node that is the GPU's own memory.
              type: str
            nearest_nics:
              description: The RDMA devices at the least distance; the column's name where the device is not told.
              type: list
              elements: str
              sample: [mlx5_0]
        nics:
          description: The NICs.
          type: list
          elements: dict
          contains:
            name:
              description: Name of the column.
              type: str
              sample: NIC0
            device:
              description: The RDMA device; null where the legend is missing.
              type: str
              sample: mlx5_0
        links:
          description: What lies between each pair, by the names of the columns. NV18 is 18 NVLinks; PIX, PXB, PHB, NODE
            and SYS are ways over PCIe, the nearest first.
          type: dict
          sample: {GPU0: {GPU1: NV18, NIC0: PIX}}
        all_nvlink:
          description: Whether all GPUs reach one another by NVLink; null with one GPU alone.
          type: bool
    gpu_xids:
      description: Errors of the driver that have a number, since boot, in their order; null where the kernel's log
        cannot be read. The live log forgets its oldest lines.
      returned: when V(xids) is asked for
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
          description: Seconds since boot; null where the log has no time stamps.
          type: float
        text:
          description: The message.
          type: str
    gpu_kernel_errors:
      description: Failures that the driver reports without a number, since boot; null where the kernel's log cannot be
        read.
      returned: when V(xids) is asked for
      type: list
      elements: dict
      contains:
        pci_bus_id:
          description: PCI address of the GPU; null where the message does not name it.
          type: str
        kind:
          description: V(fallen_off_bus), V(init_failed), V(needs_open_module), or V(legacy_gpu) for one that needs an
            older branch of the driver.
          type: str
        time_s:
          description: Seconds since boot; null where the log has no time stamps.
          type: float
        text:
          description: The line that tells it.
          type: str
    cdi:
      description: The specifications of the Container Device Interface.
      returned: when V(cdi) is asked for
      type: dict
      contains:
        devices:
          description: The qualified names that a container can ask for.
          type: list
          elements: str
          sample: [nvidia.com/gpu=0, nvidia.com/gpu=all]
        conflicts:
          description: Devices that no container can ask for, because two files of one directory claim them.
          type: list
          elements: dict
          contains:
            device:
              description: Its qualified name.
              type: str
            paths:
              description: The files.
              type: list
              elements: str
        driver_version:
          description: The version of the loaded driver, V(null) where none is loaded.
          type: str
        refresh_reason:
          description:
            - Why C(nvidia-cdi-refresh.service) has to write C(/var/run/cdi/nvidia.yaml) anew.
            - V(null) where it need not.
          type: str
        specs:
          description: The files, in the order in which they are looked up. Of a device in both directories, the later
            counts.
          type: list
          elements: dict
          contains:
            path:
              description: The file.
              type: str
            kind:
              description: What it offers, such as V(nvidia.com/gpu). V(null) where it cannot be read.
              type: str
            cdi_version:
              description: The version of the specification's form, V(null) where it does not tell.
              type: str
            devices:
              description: The devices' names, without the kind.
              type: list
              elements: str
            driver_versions:
              description: The versions of the NVIDIA driver whose libraries it names.
              type: list
              elements: str
            missing_paths:
              description: Files and device nodes of the host that it names, and that do not exist.
              type: list
              elements: str
            renumbered:
              description: Device nodes that it names by numbers that they do not have.
              type: list
              elements: str
            stale:
              description:
                - Why it must go. V(null) where it may stay, as all of other kinds, and that of C(nvidia-cdi-refresh).
                - Stale are specifications of the kind C(nvidia.com/gpu) for another driver than the loaded one, that
                  name files or devices that do not exist, that conflict with another file, and those called
                  C(nvidia*) beside C(/var/run/cdi/nvidia.yaml), which nothing keeps up to date.
              type: str
            error:
              description: Why it cannot be read, V(null) where it can.
              type: str
    container_gpus:
      description: The containers that asked for GPUs.
      returned: when V(containers) is asked for
      type: dict
      contains:
        error:
          description: Why the containers are unknown, such as that Docker does not answer. V(null) where Docker did.
          type: str
        lost:
          description: The names of the containers that cannot open a device of their GPUs.
          type: list
          elements: str
        containers:
          description: The running containers that asked for GPUs.
          type: list
          elements: dict
          contains:
            id:
              description: Its whole id.
              type: str
            name:
              description: Its name.
              type: str
            request:
              description:
                - How it asked. V(cdi) by CDI name, V(runtime) of NVIDIA's runtime, V(gpus) with C(--gpus), V(devices)
                  by naming device nodes.
              type: str
            devices:
              description: The device nodes that it has.
              type: list
              elements: str
            lost:
              description: Those that it cannot open, with the reason.
              type: dict
              sample: {/dev/nvidia0: Operation not permitted}
            error:
              description: Why it could not be tried, V(null) where it could.
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
"""What is gathered only where it is named."""

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
