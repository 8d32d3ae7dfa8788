#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: nvidia_driver_facts
short_description: Report a node's NVIDIA driver, and fail where a kernel or CUDA would not work with it
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - The subset V(driver) reports which packages of a driver are installed, for which kernels its module is built, which
    module is loaded, what uses it, and whether Secure Boot would let it in. It loads nothing, and runs C(dpkg-query),
    C(dkms), C(modinfo) and C(mokutil) where they are installed.
  - The subset V(gate) fails unless every kernel that could be booted next has the driver's module. A module that DKMS
    could not build, for want of headers or because the build broke, is otherwise found out at the next boot, by engines
    without GPUs. Every kernel with an image in C(/boot) must have its module in the state installed, and DKMS must have
    nothing to remark on the module. All kernels without one are reported at once, each with what to do.
  - The subset V(cuda) initialises CUDA through C(libcuda.so.1), as every engine does first, and counts the GPUs.
    C(nvidia-smi) may work where CUDA does not, when C(nvidia-uvm) is not loaded or the fabric of the NVSwitches is
    not up. CUDA runs in a process of its own with a time limit, so that a driver that hangs or crashes is an answer,
    not the end of the play. Without O(devices) and O(fabric_wait), this subset reports only, and never fails.
  - Changes nothing. Run the module as root. Other users do not see whose processes use the driver.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - Initialising CUDA may load kernel modules and create device nodes, as any use of CUDA does, in check mode too.
  diff_mode:
    support: none
options:
  gather_subset:
    description:
      - What to gather. V(all) is everything, V(min) nothing. An exclamation mark leaves one out, of V(all) where
        nothing else is given.
      - A fact that is left out is not returned, so that an earlier one stays.
    type: list
    elements: str
    choices: [all, min, driver, '!driver', gate, '!gate', cuda, '!cuda']
    default: [driver]
  timeout:
    description:
      - Seconds that each program, and CUDA, gets. C(dkms status) compares files of every kernel, and takes the longest.
        For CUDA, a machine with eight GPUs and without persistence mode takes some ten.
    type: int
    default: 60
  firmware_root:
    description: The directory below which the firmware's variables are read, in C(sys/firmware/efi/efivars).
    type: path
    default: /
  version:
    description:
      - For V(gate), the driver's version, without the revision of a package, such as V(580.105.08). Empty takes any.
    type: str
    default: ""
  flavor:
    description:
      - For V(gate), the kernel module's flavour; V(any) takes both. NVIDIA's own packages build both under one name, so
        that theirs passes as either.
    type: str
    choices: [any, open, proprietary]
    default: any
  kernels:
    description:
      - For V(gate), the releases of the kernels, for a machine that boots from elsewhere than its own C(/boot). Where
        none is named, those in C(/boot).
    type: list
    elements: str
    default: []
  devices:
    description: For V(cuda), how many GPUs, or MIG slices, CUDA must find. The module fails where CUDA does not.
    type: int
  fabric_wait:
    description:
      - For V(cuda) on a node with NVSwitches, the seconds in which their fabric must be up. The fabric manager
        registers the GPUs after it has started; until then CUDA answers with code 802, or C(nvidia-smi) with a state
        that is not C(Completed).
      - The module asks until then, and fails where the fabric is not up at the end. V(0) asks once.
    type: int
    default: 0
  library:
    description: For V(cuda), the library to load.
    type: str
    default: libcuda.so.1
  compare:
    description:
      - Holds the node against a plan, and says in RV(due) whether the role C(nvidia_driver) has anything to do.
        Packages, pins, files, units, kernels, signatures and loaded modules are compared. Where all of them are as they
        should be, CUDA is asked for O(devices). A driver that does not work, or a GPU that is lost, makes the role due.
      - O(version) and O(kernels) count as for V(gate). The module fails where the decision has problems, with all of
        them.
      - Internal to this collection; its suboptions may change without notice.
    type: dict
    suboptions:
      decision:
        description: What the filter decided.
        type: dict
        required: true
      driver:
        description: The fact RV(ansible_facts.nvidia_driver) of the node.
        type: dict
        required: true
      advice:
        description: What a refusal ends with.
        type: str
        default: ""
      own_key:
        description: Whether the site has a key or a password of its own for signing, which is compared elsewhere.
        type: bool
        default: false
      pins:
        description: The pins, as M(baremetal.inference.apt_packages) takes them.
        type: list
        elements: dict
        default: []
        suboptions:
          name:
            description: What the packages make up.
            type: str
            required: true
          packages:
            description: The packages to hold, with C(*) as a wildcard.
            type: list
            elements: str
            required: true
          pinned:
            description: Those of them that are pinned.
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
            description: The text, with mode 0644. Any text will do where it is left out.
            type: str
          checksum:
            description: The checksum, as ALGORITHM:DIGEST.
            type: str
            default: ""
          state:
            description: Whether the file is there, or a directory with mode 0755.
            type: str
            choices: [present, absent, directory]
            default: present
      units:
        description: The units that the role enables and, where O(compare.load), starts.
        type: list
        elements: str
        default: []
      boot_units:
        description: The units that the role only enables.
        type: list
        elements: str
        default: []
      load:
        description: Whether the modules must be loaded and the units run, as on a node with GPUs.
        type: bool
        default: false
      ask_cuda:
        description: Whether to ask CUDA.
        type: bool
        default: false
      fabric:
        description: Whether the GPUs must be registered with the fabric of NVSwitches.
        type: bool
        default: false
"""

EXAMPLES = r"""
- name: Gather the facts of the driver
  baremetal.inference.nvidia_driver_facts:

- name: Refuse to swap a driver in use
  ansible.builtin.assert:
    that: ansible_facts['nvidia_driver'].held_by | length == 0
    fail_msg: "In use by {{ ansible_facts['nvidia_driver'].held_by | join(', ') }}: drain the node first."

- name: Fail before a reboot where a kernel would come up without the driver
  baremetal.inference.nvidia_driver_facts:
    gather_subset: [gate]
    version: 580.105.08

- name: Fail unless CUDA works on all GPUs
  baremetal.inference.nvidia_driver_facts:
    gather_subset: [cuda]
    devices: "{{ ansible_facts['gpus'] | rejectattr('excluded') | length }}"

- name: Give the fabric manager of an HGX machine time to register the GPUs
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
  description: Whether anything is not as it should be.
  returned: with O(compare)
  type: bool
reboot_reason:
  description: Why the driver works only after a reboot. Empty where the driver does not wait for a reboot.
  returned: with O(compare)
  type: str
reasons:
  description: What that is, a sentence for each.
  returned: with O(compare)
  type: list
  elements: str
warnings:
  description: Programs that hung or were broken, and files that could not be read.
  returned: when there are any
  type: list
  elements: str
ansible_facts:
  description: The facts. What is not known is V(null).
  returned: always
  type: dict
  contains:
    nvidia_driver:
      description: The driver.
      returned: when O(gather_subset) has V(driver)
      type: dict
      contains:
        debian:
          description: The major version of Debian.
          type: int
          sample: 12
        packages:
          description: The versions of the installed packages that make up a driver, and of the kernels, by name.
          type: dict
          sample: {nvidia-open-kernel-dkms: 535.261.03-1}
        runfile:
          description: The driver that NVIDIA's installer put there, which no package knows of; V(null) for none.
          type: dict
          contains:
            version:
              description: The driver's version, V(null) where it cannot be told.
              type: str
            flavor:
              description: V(open) or V(proprietary), V(null) where the running kernel has no module of it.
              type: str
            registered:
              description: Whether DKMS knows it, and builds it for kernels to come.
              type: bool
        running_kernel:
          description: The release of the running kernel.
          type: str
          sample: 6.1.0-50-amd64
        kernels:
          description: The kernels that could be booted next, those with an image in C(/boot).
          type: list
          elements: dict
          contains:
            release:
              description: The kernel's release.
              type: str
            headers:
              description: Whether modules can be built for it.
              type: bool
            ready:
              description: Whether it has an installed module of the driver, of whatever version.
              type: bool
            signature:
              description: The signature of that module; V(null) where the module is not signed.
              type: dict
              contains:
                signer:
                  description: The name in the certificate, which is the same in all that DKMS makes.
                  type: str
                key:
                  description: The certificate's serial number, to be compared with C(secure_boot.serial).
                  type: str
            outdated_initrd:
              description: Whether its initial RAM disk is older than the file by which the role nvidia_driver keeps
                nouveau away, so that nouveau may be in it.
              type: bool
        dkms:
          description: The driver's modules that DKMS knows.
          type: list
          elements: dict
          contains:
            name:
              description: Its name for DKMS, such as V(nvidia), V(nvidia-current) or V(nvidia-current-open).
              type: str
            version:
              description: The driver's version.
              type: str
            kernel:
              description: The kernel's release, V(null) for one that is built for none.
              type: str
            arch:
              description: The kernel's architecture, V(null) for one that is built for none.
              type: str
            state:
              description: V(added), V(built), V(installed), V(installed-weak) or V(broken).
              type: str
            notes:
              description: What DKMS remarks, such as that the module on disk is not the one that was built.
              type: list
              elements: str
        loaded:
          description: The module that is loaded, V(null) where none is.
          type: dict
          contains:
            version:
              description: The driver's version.
              type: str
            flavor:
              description: V(open) or V(proprietary).
              type: str
        on_disk:
          description: The module that the running kernel would load now, V(null) where there is none.
          type: dict
          contains:
            version:
              description: The driver's version.
              type: str
            flavor:
              description: V(open) or V(proprietary).
              type: str
        difference:
          description: How the loaded module differs from the one on disk, V(null) where it does not.
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
              description: How many use it, other modules included.
              type: int
            holders:
              description: The modules that use it.
              type: list
              elements: str
        processes:
          description: The processes that have one of the driver's devices open.
          type: list
          elements: dict
          contains:
            pid:
              description: The process.
              type: int
            name:
              description: Its name, of 15 characters at most.
              type: str
            devices:
              description: The devices, such as V(/dev/nvidia0).
              type: list
              elements: str
            unit:
              description: The systemd unit it belongs to, or the scope of a login.
              type: str
            container:
              description: The name of its container, or the first digits of its id.
              type: str
        held_by:
          description: Why the driver cannot be unloaded, one sentence for each that uses it. Empty where it can.
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
              description: Whether the firmware has no owner's key yet, and enforces nothing.
              type: bool
            certificate:
              description: The public key that DKMS signs with.
              type: str
              sample: /var/lib/dkms/mok.pub
            serial:
              description: Its serial number in hexadecimal digits, V(null) while there is no such file.
              type: str
            key:
              description: Whether the firmware knows it. V(enrolled), V(pending) until the next boot, or V(missing).
              type: str
            problem:
              description: What a person has to do before the module can be loaded, V(null) for nothing.
              type: str
    nvidia_driver_boot:
      description: The kernels that could be booted next.
      returned: when O(gather_subset) has V(gate)
      type: dict
      contains:
        kernels:
          description: The kernels that were looked at.
          type: list
          elements: dict
          contains:
            release:
              description: The kernel's release.
              type: str
            headers:
              description: Whether modules can be built for it.
              type: bool
            module:
              description: Its module, as NAME/VERSION; V(null) where it has none to trust.
              type: str
        problems:
          description: Each kernel's problem, with what to do. On success there is none.
          type: list
          elements: str
    cuda:
      description: CUDA.
      returned: when O(gather_subset) has V(cuda)
      type: dict
      contains:
        ok:
          description: Whether CUDA could be initialised, and with O(fabric_wait), whether the fabric is up.
          type: bool
        code:
          description: CUDA's own code, V(0) for success; V(null) where it gave none.
          type: int
          sample: 802
        name:
          description: The name of the code.
          type: str
          sample: CUDA_ERROR_SYSTEM_NOT_READY
        devices:
          description: How many GPUs, or MIG slices, CUDA can use; V(null) where it did not say.
          type: int
        cuda_version:
          description: The highest version of CUDA that the driver supports; V(null) where it did not say.
          type: str
          sample: "13.0"
        message:
          description: What is wrong, and what to do. Empty where nothing is.
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
        "choices": choices(("driver", "gate", "cuda")),
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
