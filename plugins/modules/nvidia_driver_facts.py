#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: nvidia_driver_facts
short_description: What is known of a node's NVIDIA driver, before it is installed and after
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Tells which packages of a driver are installed, for which kernels its module is built, which module is loaded, who
    uses it, and whether Secure Boot would let it in.
  - Changes nothing, loads nothing, and runs C(dpkg-query), C(dkms), C(modinfo) and C(mokutil) where they are there. Run
    it as root. Others do not see whose processes use the driver.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  timeout:
    description: Seconds that each program gets. C(dkms status) compares files of every kernel, and takes the longest.
    type: int
    default: 60
  firmware_root:
    description: The directory below which the firmware's variables are read, in C(sys/firmware/efi/efivars).
    type: path
    default: /
"""

EXAMPLES = r"""
- name: Look at the driver
  baremetal.inference.nvidia_driver_facts:

- name: Refuse to swap a driver in use
  ansible.builtin.assert:
    that: ansible_facts['nvidia_driver'].held_by | length == 0
    fail_msg: "In use by {{ ansible_facts['nvidia_driver'].held_by | join(', ') }}: drain the node first."
"""

RETURN = r"""
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
              description: Who signed that module, V(null) for nobody.
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
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import run
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.facts import Reader


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "timeout": {"type": "int", "default": 60},
            "firmware_root": {"type": "path", "default": "/"},
        },
        supports_check_mode=True,
    )
    reader = Reader(Path("/"), run, module.params["timeout"], Path(module.params["firmware_root"]))
    facts = reader.facts()
    for warning in reader.warnings:
        module.warn(warning)
    module.exit_json(changed=False, ansible_facts={"nvidia_driver": facts})


if __name__ == "__main__":
    main()
