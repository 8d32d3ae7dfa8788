#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_facts
short_description: Read facts about RDMA devices, InfiniBand and RoCE
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Reads devices and ports from sysfs, each attribute by itself, because drivers refuse some attributes. The programs
    C(rdma), C(ibv_devinfo) and C(ip) add further facts.
  - Works without these programs, without RDMA, and without a driver for the network controllers, and reports what is
    missing. If a program fails or hangs, the module does not fail. The facts of this program are then V(null), and
    RV(ansible_facts.rdma_tools) has the reason. For C(dcb), RV(ansible_facts.rdma_devices[].ports[].dcb.errors) has
    the reason, and for dma-buf RV(ansible_facts.rdma_dma_buf_error).
  - Unknown facts, and facts that O(gather_subset) leaves out of a device, are V(null).
  - Changes nothing. C(rdma) would load a kernel module, so the programs run only if the kernel already has RDMA, or if
    an option names them.
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
      - What to read, in addition to devices and ports, which are always read.
      - V(gids) reads the GID tables and recommends an index. V(counters) reads the error counters. V(addresses) runs
        C(ip). V(tools) runs C(rdma) and C(ibv_devinfo). V(gpus) finds the nearest GPUs and GPUDirect. V(nics) finds
        controllers without an RDMA device. V(settings) reads PFC, ETS and DSCP by C(dcb), the PCIe settings, the IOMMU,
        and which program configures each network device. V(dma_buf) asks each device for dma-buf by libibverbs.
      - V(all) is everything, V(min) nothing. An exclamation mark leaves a subset out. If the list has only
        such items, all remaining subsets of V(all) are read.
      - Facts that are not read are not returned, so that earlier facts stay. Values of a device or port that are not
        read are V(null).
    type: list
    elements: str
    choices:
      - all
      - min
      - gids
      - '!gids'
      - counters
      - '!counters'
      - addresses
      - '!addresses'
      - tools
      - '!tools'
      - gpus
      - '!gpus'
      - nics
      - '!nics'
      - settings
      - '!settings'
      - dma_buf
      - '!dma_buf'
    default: [all]
  root:
    description:
      - The root directory with C(sys) and C(proc). Programs always show the running system.
    type: path
    default: /
  rdma:
    description:
      - The program C(rdma) of iproute2.
      - By default, searched in E(PATH), and run only if there is RDMA below O(root).
    type: str
  ibv_devinfo:
    description:
      - The program C(ibv_devinfo) of ibverbs-utils, the only source of the MTUs of ports.
      - By default, searched in E(PATH), and run only if O(root) is V(/) and there is RDMA.
    type: str
  ip:
    description:
      - The program C(ip) of iproute2, for the addresses of network devices.
      - By default, searched in E(PATH), and run only if O(root) is V(/) and there is RDMA.
    type: str
  dcb:
    description:
      - The program C(dcb) of iproute2, for the settings of lossless Ethernet.
      - By default, searched in E(PATH), and run only if O(root) is V(/) and there is RDMA.
    type: str
  timeout:
    description: Time limit of each program, in seconds.
    type: float
    default: 10
"""

EXAMPLES = r"""
- name: Read all facts about RDMA
  baremetal.inference.rdma_facts:

- name: Check that every port is up
  ansible.builtin.assert:
    that: item.1.state == 'ACTIVE'
    fail_msg: "{{ item.0.name }}/{{ item.1.port }} is {{ item.1.state }} ({{ item.1.physical_state }})"
  loop: "{{ ansible_facts['rdma_devices'] | subelements('ports') }}"
  loop_control:
    label: "{{ item.0.name }}"

- name: Read devices, and the facts that NCCL needs
  baremetal.inference.rdma_facts:
    gather_subset: [gids, gpus]

- name: Leave the counters out, and wait at most 3 s for each program
  baremetal.inference.rdma_facts:
    gather_subset: ['!counters']
    timeout: 3
"""

RETURN = r"""
ansible_facts:
  description: The facts.
  returned: always
  type: dict
  contains:
    rdma_devices:
      description: The RDMA devices by name. Empty without any.
      returned: always
      type: list
      elements: dict
      contains:
        name:
          description: The device's name.
          type: str
          returned: always
          sample: mlx5_0
        node_type:
          description: V(CA) for InfiniBand and RoCE, V(RNIC) for iWARP.
          type: str
          returned: always
          sample: CA
        driver:
          description: The kernel driver that is bound to the PCI device. V(null) for a software device.
          type: str
          returned: always
          sample: mlx5_core
        firmware:
          description: The version of the firmware.
          type: str
          returned: always
          sample: 28.41.1000
        node_guid:
          description: The GUID.
          type: str
          returned: always
          sample: 5e25:7303:00d1:2a40
        pci_address:
          description: The PCI address. V(null) for a software device.
          type: str
          returned: always
          sample: "0000:1a:00.0"
        numa_node:
          description: The NUMA node.
          type: int
          returned: always
          sample: 0
        nearest_gpus:
          description: PCI addresses of the NVIDIA GPUs at the smallest distance from the device.
          type: list
          elements: str
          returned: always
          sample: ["0000:1b:00.0"]
        nearest_gpu_distance:
          description:
            - The connection between the device and its nearest GPUs. V(PIX) is at most one PCIe switch, V(PXB) several
              switches, V(PHB) the root complex of a CPU. V(NODE) is several root complexes of one NUMA node, V(SYS)
              several NUMA nodes.
            - It comes from the PCI tree of sysfs. If sysfs has no tree, only NUMA nodes are compared, for V(NODE) or
              V(SYS).
          type: str
          returned: always
          sample: PIX
        gpu_distances:
          description: The distance of each NVIDIA GPU, by its PCI address, as a value of C(nearest_gpu_distance).
          type: dict
          returned: always
          sample:
            "0000:1b:00.0": PIX
        pcie:
          description: Settings of the PCI function. V(null) for a software device, and without V(settings).
          type: dict
          returned: always
          contains:
            gen:
              description: The generation of the link now.
              type: int
              returned: always
              sample: 5
            width:
              description: The lanes of the link now.
              type: int
              returned: always
              sample: 16
            gen_max:
              description: The highest generation of the function.
              type: int
              returned: always
              sample: 5
            width_max:
              description: The most lanes of the function.
              type: int
              returned: always
              sample: 16
            max_read_request:
              description: Bytes that the function requests at once. Only root can read this.
              type: int
              returned: always
              sample: 512
            max_payload:
              description: Bytes of data in a packet. Only root can read this.
              type: int
              returned: always
              sample: 256
            relaxed_ordering:
              description: Whether the function may use relaxed ordering. Only root can read this.
              type: bool
              returned: always
              sample: true
            acs_bridges:
              description: PCIe bridges that, by ACS, send packets between functions through the CPU. The module looks
                at the bridges above this function, and above each GPU that has only PCIe switches between itself and
                this function.
              type: list
              elements: str
              returned: always
              sample: ["0000:11:00.0"]
            iommu:
              description: The type of the IOMMU group. V(null) without an IOMMU.
              type: str
              returned: always
              sample: identity
        dma_buf:
          description: Whether the driver takes memory of GPUs as dma-buf. V(null) if unknown.
          type: bool
          returned: always
          sample: true
        ports:
          description: The ports.
          type: list
          elements: dict
          returned: always
          contains:
            port:
              description: The number of the port, from 1.
              type: int
              returned: always
              sample: 1
            state:
              description: V(DOWN), V(INIT), V(ARMED), V(ACTIVE) or V(ACTIVE_DEFER).
              type: str
              returned: always
              sample: ACTIVE
            physical_state:
              description: The physical state in sysfs, such as V(LinkUp), V(Disabled), V(Polling) or V(Sleep).
              type: str
              returned: always
              sample: LinkUp
            link_layer:
              description: V(InfiniBand) or V(Ethernet).
              type: str
              returned: always
              sample: Ethernet
            rate_gbps:
              description: The rate over all lanes in Gb/s. For a port that is down, the rate that it would have.
              type: float
              returned: always
              sample: 400.0
            rate_text:
              description: The rate as the kernel writes it, with lanes and speed.
              type: str
              returned: always
              sample: 400 Gb/sec (4X NDR)
            lid:
              description: LID. V(65535) if no subnet manager has assigned a LID; without meaning on Ethernet.
              type: int
              returned: always
              sample: 12
            sm_lid:
              description: The LID of the subnet manager. V(0) if there is none.
              type: int
              returned: always
              sample: 1
            netdev:
              description: The network device of the port.
              type: str
              returned: always
              sample: ens1f0np0
            netdev_mtu:
              description: The network device's MTU in bytes.
              type: int
              returned: always
              sample: 9000
            netdev_addresses:
              description: The network device's addresses with the length of their prefix.
              type: list
              elements: str
              returned: always
              sample: [192.0.2.7/24]
            netdev_mac:
              description: The network device's permanent address.
              type: str
              returned: always
              sample: 02:00:00:00:00:07
            netdev_mtu_max:
              description: The network device's highest MTU in bytes; V(0) without a limit.
              type: int
              returned: always
              sample: 9978
            partition_keys:
              description: The keys of the port's InfiniBand partitions. V(null) on Ethernet, and without V(settings).
              type: list
              elements: str
              returned: always
              sample: ["0xffff", "0x8001"]
            netdev_managers:
              description: The programs that configure the network device. V(null) without V(settings).
              type: list
              elements: dict
              returned: always
              contains:
                name:
                  description: V(ifupdown), V(networkd) or V(networkmanager).
                  type: str
                  returned: always
                  sample: networkd
                file:
                  description: The file that names the network device.
                  type: str
                  returned: always
                  sample: /etc/systemd/network/20-rail.network
                mtu:
                  description: The MTU in that file. V(null) if the file does not set any.
                  type: int
                  returned: always
                  sample: 9000
            dcb:
              description:
                - Settings of lossless Ethernet, by C(dcb). V(null) if the network device has none, on InfiniBand, and
                  without V(settings).
              type: dict
              returned: always
              contains:
                pfc:
                  description: The lossless priorities.
                  type: list
                  elements: int
                  returned: always
                  sample: [3]
                pfc_delay:
                  description: The delay of the link in bits; the length of the cable in metres for mlx5.
                  type: int
                  returned: always
                  sample: 0
                ets:
                  description: How traffic classes share the link.
                  type: dict
                  returned: always
                  contains:
                    willing:
                      description: Whether the switch may overwrite the values by DCBX.
                      type: bool
                      returned: always
                      sample: false
                    bandwidth:
                      description: Percent of each traffic class.
                      type: list
                      elements: int
                      returned: always
                      sample: [50, 0, 0, 50, 0, 0, 0, 0]
                    algorithms:
                      description: V(strict), V(ets), V(cbs) or V(vendor) for each traffic class.
                      type: list
                      elements: str
                      returned: always
                      sample: [ets, strict, strict, ets, strict, strict, strict, strict]
                    classes:
                      description: The traffic class of each priority.
                      type: list
                      elements: int
                      returned: always
                      sample: [0, 0, 0, 3, 0, 0, 6, 0]
                dscp:
                  description: The priority of each DSCP with an entry of its own.
                  type: dict
                  returned: always
                  sample:
                    "26": 3
                    "48": 6
                modes:
                  description: The modes of DCBX.
                  type: list
                  elements: str
                  returned: always
                  sample: [host, ieee]
                errors:
                  description: Errors of C(dcb), except that the driver lacks a part.
                  type: list
                  elements: str
                  returned: always
                  sample: []
            congestion:
              description:
                - Settings of congestion control. V(null) if the driver shows none, and without V(settings).
              type: dict
              returned: always
              contains:
                cnp_dscp:
                  description: The DSCP of congestion packets.
                  type: int
                  returned: always
                  sample: 48
                cnp_priority:
                  description: The priority of congestion packets.
                  type: int
                  returned: always
                  sample: 6
                ecn:
                  description: The priorities for which marks count. V(null) if the driver does not show them.
                  type: list
                  elements: int
                  returned: always
                  sample: [3]
                directory:
                  description: The directory with the settings.
                  type: str
                  returned: always
                  sample: /sys/kernel/debug/mlx5/0000:1a:00.0/cc_params
                kind:
                  description: V(debugfs) or V(ofed).
                  type: str
                  returned: always
                  sample: debugfs
            rdma_cm_mode:
              description: The RoCE version of connections by rdma_cm. V(null) if it was not set.
              type: str
              returned: always
              sample: RoCE v2
            rdma_cm_tos:
              description: The type of service of connections by rdma_cm. V(null) if it was not set.
              type: int
              returned: always
              sample: 106
            mtu_active:
              description: Bytes of payload in an RDMA packet. Needs C(ibv_devinfo).
              type: int
              returned: always
              sample: 4096
            mtu_max:
              description: The highest possible value of RV(ansible_facts.rdma_devices[].ports[].mtu_active).
              type: int
              returned: always
              sample: 4096
            gids:
              description: The GIDs in use.
              type: list
              elements: dict
              returned: always
              contains:
                index:
                  description: Index in the GID table.
                  type: int
                  returned: always
                  sample: 3
                gid:
                  description: The GID.
                  type: str
                  returned: always
                  sample: "0000:0000:0000:0000:0000:ffff:c000:0207"
                type:
                  description: V(IB), V(RoCE v1) or V(RoCE v2). V(null) for iWARP, and if the kernel shows no type.
                  type: str
                  returned: always
                  sample: RoCE v2
                netdev:
                  description: The network device that the GID belongs to.
                  type: str
                  returned: always
                  sample: ens1f0np0
            recommended_gid_index:
              description:
                - The index of a RoCE v2 GID with IPv4, for C(NCCL_IB_GID_INDEX). V(null) if there is no such GID, and
                  on InfiniBand. The index may change at every boot.
              type: int
              returned: always
              sample: 3
            recommended_gid_reason:
              description: Why this index is recommended, or why no index is.
              type: str
              returned: always
              sample: RoCE v2 with IPv4 192.0.2.7 of ens1f0np0
            counters:
              description:
                - Counters of errors, discards, retries and congestion, by the names of kernel and driver. They count
                  since the driver was loaded. A counter that the hardware does not have is V(null).
              type: dict
              returned: always
              sample:
                link_downed: 0
                symbol_error: 0
                VL15_dropped: null
    rdma_gpudirect:
      description: Whether RDMA devices can reach the memory of NVIDIA GPUs.
      returned: if V(gpus) is gathered
      type: dict
      contains:
        peermem:
          description: Whether the kernel module for GPUDirect RDMA is loaded.
          type: bool
          returned: always
          sample: false
        peermem_module:
          description: The name of the kernel module.
          type: str
          returned: always
          sample: nvidia_peermem
        dma_buf:
          description:
            - Whether kernel and NVIDIA driver support GPUDirect RDMA by dma-buf. The driver of the RDMA device must
              support dma-buf as well (RV(ansible_facts.rdma_devices[].dma_buf)).
          type: bool
          returned: always
          sample: true
        dma_buf_reason:
          description: Why dma-buf works, does not work, or is unknown.
          type: str
          returned: always
          sample: kernel 6.12.48+deb13-amd64 and the open NVIDIA kernel module
    rdma_dma_buf_error:
      description: Why libibverbs gave no answer about dma-buf. V(null) if it answered, and if there was nothing to ask.
      returned: if V(dma_buf) is gathered
      type: str
      sample: "libibverbs.so.1: cannot open shared object file: No such file or directory"
    rdma_iommu:
      description: The IOMMU of the machine.
      returned: if V(settings) is gathered
      type: dict
      contains:
        groups:
          description: The number of groups. V(0) if the IOMMU is off.
          type: int
          returned: always
          sample: 96
        passthrough:
          description: Whether the kernel's command line asks for C(iommu=pt).
          type: bool
          returned: always
          sample: true
        given_away:
          description: PCI functions that a virtual machine or a program has.
          type: list
          elements: str
          returned: always
          sample: []
    rdma_nics_without_driver:
      description:
        - RDMA-capable network controllers without an RDMA device, except controllers that are given to a virtual
          machine or to a program.
      returned: if V(nics) is gathered
      type: list
      elements: dict
      contains:
        pci_address:
          description: The PCI address.
          type: str
          returned: always
          sample: "0000:5e:00.0"
        vendor_id:
          description: PCI vendor.
          type: str
          returned: always
          sample: "0x15b3"
        device_id:
          description: PCI device.
          type: str
          returned: always
          sample: "0x1021"
        driver:
          description: The kernel driver that is bound to the controller; V(null) for none.
          type: str
          returned: always
          sample: mlx5_core
        numa_node:
          description: The NUMA node.
          type: int
          returned: always
          sample: 1
        reason:
          description: What is missing.
          type: str
          returned: always
          sample: no kernel driver is bound to it
    rdma_tools:
      description: Whether C(rdma), C(ibv_devinfo) and C(ip) answered, or why they did not.
      returned: always
      type: dict
      contains:
        rdma:
          description: The program C(rdma).
          type: dict
          returned: always
          contains: &status
            ok:
              description: Whether the program answered. V(null) if the program was not run.
              type: bool
              returned: always
              sample: false
            error:
              description: Why the program did not answer. V(null) without an error.
              type: dict
              returned: always
              contains:
                kind:
                  description:
                    - V(not_installed), V(not_runnable), V(timeout), V(endless_output), V(no_rdma_subsystem),
                      V(no_devices), V(malformed_output) or V(failed).
                  type: str
                  returned: always
                  sample: timeout
                message:
                  description: The error as a text.
                  type: str
                  returned: always
                  sample: rdma did not end within 10 s
        ibv_devinfo:
          description: The program C(ibv_devinfo).
          type: dict
          returned: always
          contains: *status
        ip:
          description: The program C(ip).
          type: dict
          returned: always
          contains: *status
"""

import sys
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import commands
from ansible_collections.baremetal.inference.plugins.module_utils.core.gather_subset import ALL, choices, chosen
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma import facts

ARGUMENTS = {
    "gather_subset": {"type": "list", "elements": "str", "choices": choices(facts.PARTS), "default": [ALL]},
    "root": {"type": "path", "default": "/"},
    "rdma": {"type": "str"},
    "ibv_devinfo": {"type": "str"},
    "ip": {"type": "str"},
    "dcb": {"type": "str"},
    "timeout": {"type": "float", "default": 10},
}


def programs(
    rdma: str | None, ibv_devinfo: str | None, ip: str | None, root: Path, dcb: str | None = None
) -> facts.Programs:
    """The programs to run: those of the options, or else the usual ones.

    None of the usual programs runs without RDMA below `root`, because `rdma` would load a kernel module. If `root` is
    not /, only `rdma` of the usual programs runs.
    """
    there = facts.has_rdma(root)
    here = there and root.resolve() == Path("/")
    return facts.Programs(
        rdma=rdma or ("rdma" if there else None),
        ibv_devinfo=ibv_devinfo or ("ibv_devinfo" if here else None),
        ip=ip or ("ip" if here else None),
        dcb=dcb or ("dcb" if here else None),
        python=sys.executable if here else None,
    )


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    params = module.params
    timeout = params["timeout"]
    if not timeout > 0:
        module.fail_json(msg=f"timeout is {timeout:g}; allowed are seconds above 0")
    root = Path(params["root"])
    parts = chosen(params["gather_subset"], facts.PARTS)
    allowed = programs(params["rdma"], params["ibv_devinfo"], params["ip"], root, params["dcb"])
    gathered = facts.gather(root, parts, allowed, lambda command: commands.run(command, timeout))
    module.exit_json(changed=False, ansible_facts=gathered)


if __name__ == "__main__":
    main()
