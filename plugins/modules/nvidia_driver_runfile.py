#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: nvidia_driver_runfile
short_description: Install or remove a driver by NVIDIA's installer (.run)
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Checks checksum, version and architecture of NVIDIA's installer, and runs it. First uninstalls a driver of another
    version or flavour, or one that is not registered with DKMS.
  - Builds the kernel module by DKMS for every kernel in C(/boot) that has headers, because the installer builds it only
    for the running kernel. The subset V(kernel_check) of M(baremetal.inference.nvidia_driver_facts) checks that each
    kernel has the module.
  - If the installer fails, the message has the errors of C(/var/log/nvidia-installer.log).
  - Does not check whether the removed driver is in use. M(baremetal.inference.nvidia_driver_facts) reports this.
  - Internal to this collection; its options may change without notice.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - The file need not exist yet, unless O(state=verified).
  diff_mode:
    support: none
options:
  state:
    description:
      - V(present) installs the driver, V(absent) removes a driver of the installer.
      - V(verified) only checks the file, on any machine.
    type: str
    choices: [present, absent, verified]
    default: present
  path:
    description:
      - The file of the installer, required unless O(state=absent). The installer unpacks itself into the file's
        directory. Only root should be able to write there.
    type: path
  checksum:
    description: The checksum of the file, as sha256:… Required unless O(state=absent).
    type: str
  version:
    description: The driver's version, such as V(580.105.08). Required unless O(state=absent).
    type: str
  flavor:
    description: The kernel module's flavour in O(arguments). A driver with the other flavour is replaced.
    type: str
    choices: [open, proprietary]
    default: open
  arguments:
    description: Arguments for the installer.
    type: list
    elements: str
    default: [--silent, --dkms]
  options:
    description: Further arguments, each used only if the installer supports it. Unknown arguments would make it fail.
    type: list
    elements: str
    default: []
  kernels:
    description: The releases of the kernels to build for, if the machine does not boot from its C(/boot).
    type: list
    elements: str
    default: []
  timeout:
    description: Time limit of the installer, and of each build, in seconds.
    type: int
    default: 1800
"""

EXAMPLES = r"""
- name: Check a file before anything is changed
  baremetal.inference.nvidia_driver_runfile:
    state: verified
    path: /srv/drivers/NVIDIA-Linux-x86_64-580.105.08.run
    checksum: sha256:d9c6e8188672f3eb74dd04cfa69dd58479fa1d0162c8c28c8d17625763293475
    version: 580.105.08
  delegate_to: localhost

- name: Install the driver
  baremetal.inference.nvidia_driver_runfile:
    path: /root/driver/NVIDIA-Linux-x86_64-580.105.08.run
    checksum: sha256:d9c6e8188672f3eb74dd04cfa69dd58479fa1d0162c8c28c8d17625763293475
    version: 580.105.08
    flavor: open
    arguments: [--silent, --dkms, --kernel-module-type=open]
"""

RETURN = r"""
before:
  description: The installer's driver before the call; V(null) for none.
  returned: unless O(state=verified)
  type: dict
  contains:
    version:
      description: The driver's version; V(null) if unknown.
      type: str
    flavor:
      description: V(open) or V(proprietary); V(null) if the running kernel has no module of this driver.
      type: str
    registered:
      description: Whether the driver is registered with DKMS.
      type: bool
kernels:
  description: The kernels for which DKMS has built the module in this call, after the installer's own build.
  returned: O(state=present), outside check mode
  type: list
  elements: str
file:
  description: The file.
  returned: O(state=verified)
  type: dict
  contains:
    sha256:
      description: The file's checksum.
      type: str
    version:
      description: The version of the driver; V(null) if unknown.
      type: str
    machine:
      description: The architecture, such as V(x86_64); V(null) if unknown.
      type: str
    size:
      description: The file's size in bytes.
      type: int
"""

import platform
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import run
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import installer, runfile
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.facts import Reader

LOOK_SECONDS = 60

ARGUMENTS = {
    "state": {"type": "str", "choices": ["present", "absent", "verified"], "default": "present"},
    "path": {"type": "path"},
    "checksum": {"type": "str"},
    "version": {"type": "str"},
    "flavor": {"type": "str", "choices": ["open", "proprietary"], "default": "open"},
    "arguments": {"type": "list", "elements": "str", "default": ["--silent", "--dkms"]},
    "options": {"type": "list", "elements": "str", "default": []},
    "kernels": {"type": "list", "elements": "str", "default": []},
    "timeout": {"type": "int", "default": 1800},
}


def verify(params: dict[str, Any], machine: str = "") -> installer.Checked:
    """Check the file. Raises InstallerError with all problems, and OSError."""
    path = Path(params["path"])
    found = installer.check(path)
    problems = installer.problems(path, found, params["checksum"], params["version"], machine)
    if problems:
        raise installer.InstallerError("; ".join(problems))
    return found


def apply(
    params: dict[str, Any], host: installer.Installer, check_mode: bool, running: str, machine: str
) -> dict[str, Any]:
    """Install or remove the driver, except in check mode. Returns the module's result.

    Raises InstallerError and OSError.
    """
    before = host.installed(running)
    present = params["state"] == "present"
    same = before is not None and before.is_driver(params["version"], params["flavor"]) if present else before is None
    result: dict[str, Any] = {"changed": not same, "before": asdict(before) if before else None}
    if check_mode:
        # Any other driver is replaced, which is a change whatever kernels have modules.
        waiting = host.waiting(params["version"], params["kernels"]) if present and same else []
        return {**result, "changed": not same or bool(waiting)}
    if not same:
        if present:
            # Before the old driver is removed.
            verify(params, machine)
        host.uninstall()
    if present:
        if not same:
            host.install(Path(params["path"]), params["arguments"], params["options"])
            after = host.installed(running)
            if after is None or after.version != params["version"]:
                found = after.version if after else "no driver"
                raise installer.InstallerError(
                    f"NVIDIA's installer reports success, but has installed {found} instead of {params['version']}:"
                    f" read /{runfile.LOGS[0]}"
                )
        result["kernels"] = host.build(params["version"], params["kernels"])
        result["changed"] = not same or bool(result["kernels"])
    return result


def main() -> None:
    needed = ["path", "checksum", "version"]
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        required_if=[("state", "present", needed), ("state", "verified", needed)],
        supports_check_mode=True,
    )
    params = module.params
    try:
        if params["state"] == "verified":
            result: dict[str, Any] = {"changed": False, "file": asdict(verify(params))}
        else:
            host = installer.Installer(Reader(Path("/"), run, LOOK_SECONDS), params["timeout"])
            result = apply(params, host, module.check_mode, platform.release(), platform.machine())
    except (installer.InstallerError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
