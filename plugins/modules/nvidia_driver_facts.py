#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: nvidia_driver_facts
short_description: Report a node's NVIDIA driver, and fail if a kernel lacks it or CUDA does not work
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - The subset V(driver) reports the driver's packages, the kernels with its module, the loaded module, what uses it,
    and whether Secure Boot would accept it. It loads no module. It runs C(dpkg-query), C(dkms), C(modinfo) and
    C(mokutil) if they are installed.
  - The subset V(kernel_check) fails unless every kernel with an image in C(/boot) has the driver's module. The module
    must be installed, without remarks of DKMS. All kernels without such a module are reported at once, each with what
    to do. Without this check, a failed build would go unnoticed until the next boot, which leaves engines without GPUs.
  - The subset V(cuda) initialises CUDA through C(libcuda.so.1), like every engine, and counts the GPUs. C(nvidia-smi)
    may work although CUDA does not, if C(nvidia-uvm) is not loaded, or the NVSwitch fabric is not up.
  - CUDA runs in a separate process with a time limit, so that the module survives a driver that hangs or crashes.
    Without O(devices) and O(fabric_wait), the subset V(cuda) never fails.
  - Changes nothing. Run the module as root. Other users cannot see which processes use the driver.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - Initialising CUDA may load kernel modules and create device nodes, like any use of CUDA, also in check mode.
  diff_mode:
    support: none
options:
  gather_subset:
    description:
      - What to read. V(all) is everything, V(min) nothing. An exclamation mark leaves a subset out. If the list
        has only such items, all remaining subsets of V(all) are read.
      - Facts that are not read are not returned, so that earlier facts stay.
    type: list
    elements: str
    choices: [all, min, driver, '!driver', kernel_check, '!kernel_check', cuda, '!cuda']
    default: [driver]
  timeout:
    description:
      - The time limit of each program, and of CUDA, in seconds. C(dkms status) compares files of every kernel, and
        takes the longest. CUDA on a machine with eight GPUs and without persistence mode takes about ten seconds.
    type: int
    default: 60
  firmware_root:
    description: The root directory below which the firmware's variables are read, in C(sys/firmware/efi/efivars).
    type: path
    default: /
  version:
    description:
      - For V(kernel_check), the driver's version without the revision of a package, such as V(580.105.08). Empty
        accepts any.
    type: str
    default: ""
  flavor:
    description:
      - For V(kernel_check), the kernel module's flavour. V(any) accepts both. NVIDIA's packages build both under one
        name, so their module is accepted as either.
    type: str
    choices: [any, open, proprietary]
    default: any
  kernels:
    description:
      - For V(kernel_check), the releases of the kernels, for a machine that does not boot from its C(/boot). If empty,
        the kernels in C(/boot).
    type: list
    elements: str
    default: []
  devices:
    description: For V(cuda), the number of GPUs, or MIG devices, that CUDA must find. Otherwise, the module fails.
    type: int
  fabric_wait:
    description:
      - For V(cuda) on a node with NVSwitches, how long to wait for their fabric, in seconds. The fabric manager
        registers the GPUs after its start. Until then, CUDA returns code 802, or C(nvidia-smi) a state other than
        C(Completed).
      - The module fails if the fabric is not up at the end. With V(0), the module does not wait, and fails only by
        O(devices).
    type: int
    default: 0
  library:
    description: For V(cuda), the library to load.
    type: str
    default: libcuda.so.1
  compare:
    description:
      - Compares the node with a plan, and returns in RV(due) whether the role C(nvidia_driver) has anything to do. It
        compares packages, pins, files, units, kernels, signatures and loaded modules. If nothing differs, it checks
        O(devices) by CUDA. A driver that does not work, or a lost GPU, makes the role due.
      - O(version) and O(kernels) are used as for V(kernel_check). If the decision has problems, the module fails with
        all of them.
      - Internal to this collection; its suboptions may change without notice.
    type: dict
    suboptions:
      decision:
        description: The decision of the filter.
        type: dict
        required: true
      driver:
        description: The fact RV(ansible_facts.nvidia_driver) of the node.
        type: dict
        required: true
      advice:
        description: The last sentence of a refusal.
        type: str
        default: ""
      own_key:
        description: Whether the site has its own key or password for signing, which another task compares.
        type: bool
        default: false
      pins:
        description: The pins, as M(baremetal.inference.apt_packages) takes them.
        type: list
        elements: dict
        default: []
        suboptions:
          name:
            description: The name of the set.
            type: str
            required: true
          packages:
            description: The packages to hold, with C(*) as a wildcard.
            type: list
            elements: str
            required: true
          pinned:
            description: The packages of the set that are pinned.
            type: list
            elements: str
            default: []
          version:
            description: The version, with C(*) as a wildcard.
            type: str
            default: ""
      files:
        description: The files that the role writes.
        type: list
        elements: dict
        default: []
        suboptions:
          path:
            description: The file.
            type: path
            required: true
          text:
            description: The expected text, with mode 0644. If omitted, any text is accepted.
            type: str
          checksum:
            description: The expected checksum, as ALGORITHM:DIGEST.
            type: str
            default: ""
          state:
            description: The expected state. V(directory) is a directory with mode 0755.
            type: str
            choices: [present, absent, directory]
            default: present
      units:
        description: The units that the role enables and, if O(compare.load) is set, starts.
        type: list
        elements: str
        default: []
      boot_units:
        description: The units that the role only enables.
        type: list
        elements: str
        default: []
      load:
        description: Whether the modules must be loaded and the units must run, as on a node with GPUs.
        type: bool
        default: false
      ask_cuda:
        description: Whether to check CUDA.
        type: bool
        default: false
      fabric:
        description: Whether the GPUs must be registered with the NVSwitch fabric.
        type: bool
        default: false
"""

EXAMPLES = r"""
- name: Read the facts of the driver
  baremetal.inference.nvidia_driver_facts:

- name: Refuse to replace a driver in use
  ansible.builtin.assert:
    that: ansible_facts['nvidia_driver'].held_by | length == 0
    fail_msg: "In use by {{ ansible_facts['nvidia_driver'].held_by | join(', ') }}: drain the node first."

- name: Fail before a reboot if a kernel lacks the driver
  baremetal.inference.nvidia_driver_facts:
    gather_subset: [kernel_check]
    version: 580.105.08

- name: Fail unless CUDA works on all GPUs
  baremetal.inference.nvidia_driver_facts:
    gather_subset: [cuda]
    devices: "{{ ansible_facts['gpus'] | rejectattr('excluded') | length }}"

- name: Wait until the fabric manager of an HGX machine has registered the GPUs
  baremetal.inference.nvidia_driver_facts:
    gather_subset: [cuda]
    devices: 8
    fabric_wait: 300
"""

RETURN = r"""
plan:
  description: The plan of the decision.
  returned: with O(compare)
  type: dict
due:
  description: Whether anything differs from the plan.
  returned: with O(compare)
  type: bool
reboot_reason:
  description: Why the driver needs a reboot; empty if it does not.
  returned: with O(compare)
  type: str
reasons:
  description: The differences, one sentence each.
  returned: with O(compare)
  type: list
  elements: str
warnings:
  description: Programs that hang or are broken, and files that cannot be read.
  returned: if there are any
  type: list
  elements: str
ansible_facts:
  description: The facts. Unknown values are V(null).
  returned: always
  type: dict
  contains:
    nvidia_driver:
      description: The driver.
      returned: if V(driver) is gathered
      type: dict
      contains:
        debian:
          description: The major version of Debian.
          type: int
          sample: 12
        packages:
          description: The versions of the installed packages of a driver, and of the kernels, by name.
          type: dict
          sample: {nvidia-open-kernel-dkms: 535.261.03-1}
        runfile:
          description: The driver from NVIDIA's installer, which belongs to no package; V(null) for none.
          type: dict
          contains:
            version:
              description: The driver's version; V(null) if unknown.
              type: str
            flavor:
              description: V(open) or V(proprietary); V(null) if the running kernel has no module of this driver.
              type: str
            registered:
              description: Whether the driver is registered with DKMS, which then builds it for new kernels.
              type: bool
        running_kernel:
          description: The release of the running kernel.
          type: str
          sample: 6.1.0-50-amd64
        kernels:
          description: The kernels with an image in C(/boot).
          type: list
          elements: dict
          contains:
            release:
              description: The kernel's release.
              type: str
            headers:
              description: Whether the headers are installed, so that modules can be built.
              type: bool
            ready:
              description: Whether the kernel has an installed module of the driver, in any version.
              type: bool
            signature:
              description: The signature of the module; V(null) if it is not signed.
              type: dict
              contains:
                signer:
                  description: The name in the certificate, which is the same in all certificates of DKMS.
                  type: str
                key:
                  description: The certificate's serial number, to compare with C(secure_boot.serial).
                  type: str
            outdated_initrd:
              description: >-
                Whether the kernel's initial RAM disk is older than the role's file that disables nouveau. Then it may
                contain nouveau.
              type: bool
        dkms:
          description: The driver's modules in DKMS.
          type: list
          elements: dict
          contains:
            name:
              description: The module's name in DKMS, such as V(nvidia), V(nvidia-current) or V(nvidia-current-open).
              type: str
            version:
              description: The driver's version.
              type: str
            kernel:
              description: The kernel's release; V(null) for a module that is built for no kernel.
              type: str
            arch:
              description: The kernel's architecture; V(null) for a module that is built for no kernel.
              type: str
            state:
              description: V(added), V(built), V(installed), V(installed-weak) or V(broken).
              type: str
            notes:
              description: Remarks of DKMS, for example that the module on disk is not the built module.
              type: list
              elements: str
        loaded:
          description: The loaded module; V(null) if none is loaded.
          type: dict
          contains:
            version:
              description: The driver's version.
              type: str
            flavor:
              description: V(open) or V(proprietary).
              type: str
        on_disk:
          description: The module that the running kernel would load now; V(null) if there is none.
          type: dict
          contains:
            version:
              description: The driver's version.
              type: str
            flavor:
              description: V(open) or V(proprietary).
              type: str
        difference:
          description: How the loaded module differs from the module on disk; V(null) if it does not.
          type: str
        modules:
          description: The driver's modules in the kernel.
          type: list
          elements: dict
          contains:
            name:
              description: The module's name in the kernel, such as V(nvidia_uvm).
              type: str
            references:
              description: The number of uses, including those by other modules.
              type: int
            holders:
              description: The modules that use this module.
              type: list
              elements: str
        processes:
          description: The processes that have one of the driver's devices open.
          type: list
          elements: dict
          contains:
            pid:
              description: The process ID.
              type: int
            name:
              description: The process's name, of at most 15 characters.
              type: str
            devices:
              description: The devices, such as V(/dev/nvidia0).
              type: list
              elements: str
            unit:
              description: The process's systemd unit, or the scope of its login.
              type: str
            container:
              description: The name of the process's container, or the first digits of the container's ID.
              type: str
        held_by:
          description: Why the driver cannot be unloaded, one sentence for each user. Empty if it can.
          type: list
          elements: str
        secure_boot:
          description: Secure Boot.
          type: dict
          contains:
            efi:
              description: Whether the machine was started by UEFI.
              type: bool
            enabled:
              description: Whether unsigned modules are refused.
              type: bool
            setup_mode:
              description: Whether the firmware has no platform key yet, and enforces nothing.
              type: bool
            certificate:
              description: The certificate of the key with which DKMS signs.
              type: str
              sample: /var/lib/dkms/mok.pub
            serial:
              description: The certificate's serial number in hexadecimal digits; V(null) if the file does not exist.
              type: str
            key:
              description: >-
                Whether the certificate is enrolled in the firmware. V(enrolled), V(pending) until the next boot, or
                V(missing).
              type: str
            problem:
              description: What a person must do before the module can be loaded; V(null) for nothing.
              type: str
    nvidia_driver_boot:
      description: The result of V(kernel_check).
      returned: if V(kernel_check) is gathered
      type: dict
      contains:
        kernels:
          description: The checked kernels.
          type: list
          elements: dict
          contains:
            release:
              description: The kernel's release.
              type: str
            headers:
              description: Whether the headers are installed, so that modules can be built.
              type: bool
            module:
              description: The kernel's module, as NAME/VERSION; V(null) if the kernel has no valid module.
              type: str
        problems:
          description: The problem of each kernel, with what to do. Empty on success.
          type: list
          elements: str
    cuda:
      description: CUDA.
      returned: if V(cuda) is gathered
      type: dict
      contains:
        ok:
          description: Whether CUDA was initialised. With O(fabric_wait), also whether the fabric is up.
          type: bool
        code:
          description: CUDA's result code, V(0) for success; V(null) without a result.
          type: int
          sample: 802
        name:
          description: The name of the code.
          type: str
          sample: CUDA_ERROR_SYSTEM_NOT_READY
        devices:
          description: The number of GPUs, or MIG devices, that CUDA can use; V(null) if unknown.
          type: int
        cuda_version:
          description: The highest version of CUDA that the driver supports; V(null) if unknown.
          type: str
          sample: "13.0"
        message:
          description: What is wrong, and what to do; empty for nothing.
          type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import differences, node_call
from ansible_collections.baremetal.inference.plugins.module_utils.core.gather_subset import choices
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import cuda

ARGUMENTS = {
    "gather_subset": {
        "type": "list",
        "elements": "str",
        "choices": choices(("driver", "kernel_check", "cuda")),
        "default": ["driver"],
    },
    "timeout": {"type": "int", "default": 60},
    "firmware_root": {"type": "path", "default": "/"},
    "version": {"type": "str", "default": ""},
    "flavor": {"type": "str", "choices": ["any", "open", "proprietary"], "default": "any"},
    "kernels": {"type": "list", "elements": "str", "default": []},
    "devices": {"type": "int"},
    "fabric_wait": {"type": "int", "default": 0},
    "library": {"type": "str", "default": cuda.LIBRARY},
    "compare": {
        "type": "dict",
        "options": {
            "decision": {"type": "dict", "required": True},
            "driver": {"type": "dict", "required": True},
            "advice": {"type": "str", "default": ""},
            "own_key": {"type": "bool", "default": False},
            "pins": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "name": {"type": "str", "required": True},
                    "packages": {"type": "list", "elements": "str", "required": True},
                    "pinned": {"type": "list", "elements": "str", "default": []},
                    "version": {"type": "str", "default": ""},
                },
            },
            "files": differences.FILE_OPTIONS,
            "units": {"type": "list", "elements": "str", "default": []},
            "boot_units": {"type": "list", "elements": "str", "default": []},
            "load": {"type": "bool", "default": False},
            "ask_cuda": {"type": "bool", "default": False},
            "fabric": {"type": "bool", "default": False},
        },
    },
}

SPECIFICATION = {"argument_spec": ARGUMENTS, "supports_check_mode": True}


def main() -> None:
    node_call.refuse(AnsibleModule(**SPECIFICATION))


if __name__ == "__main__":
    main()
