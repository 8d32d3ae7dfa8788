#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: cuda_check
short_description: Ask the NVIDIA driver itself whether CUDA works
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Initialises CUDA through C(libcuda.so.1), as every engine does first, and counts the GPUs. C(nvidia-smi) may be fine
    where this is not, when C(nvidia-uvm) is not loaded or the fabric of the NVSwitches is not up.
  - Runs in a process of its own with a time limit, so that a driver that hangs or crashes is an answer, not the end of
    the play. Needs no package but the driver's libraries.
  - Without O(devices), reports only, and never fails.
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
  devices:
    description: How many GPUs, or MIG slices, CUDA must find. The module fails where it does not.
    type: int
  timeout:
    description: Seconds. A machine with eight GPUs and without persistence mode takes some ten.
    type: int
    default: 60
  library:
    description: The library to load.
    type: str
    default: libcuda.so.1
"""

EXAMPLES = r"""
- name: Be sure that CUDA works on all GPUs
  baremetal.inference.cuda_check:
    devices: "{{ ansible_facts['gpus'] | length }}"
"""

RETURN = r"""
ok:
  description: Whether CUDA could be initialised.
  returned: always
  type: bool
code:
  description: CUDA's own code, V(0) for success; V(null) where it gave none.
  returned: always
  type: int
  sample: 802
name:
  description: The name of the code.
  returned: always
  type: str
  sample: CUDA_ERROR_SYSTEM_NOT_READY
devices:
  description: How many GPUs, or MIG slices, CUDA can use; V(null) where it did not say.
  returned: always
  type: int
cuda_version:
  description: The highest version of CUDA that the driver supports; V(null) where it did not say.
  returned: always
  type: str
  sample: "13.0"
message:
  description: What is wrong, and what to do. Empty where nothing is.
  returned: always
  type: str
"""

from dataclasses import asdict

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.driver import cuda


def shortfall(found: cuda.Check, devices: int | None) -> str:
    """Why the GPUs that were asked for are not there, empty where they are, or where none were asked for."""
    if devices is None or (found.ok and found.devices == devices):
        return ""
    if not found.ok:
        return found.message
    return (
        f"CUDA finds {found.devices} GPUs instead of {devices}: look for lost ones with lspci -d 10de: and dmesg, "
        "and for CUDA_VISIBLE_DEVICES"
    )


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "devices": {"type": "int"},
            "timeout": {"type": "int", "default": 60},
            "library": {"type": "str", "default": cuda.LIBRARY},
        },
        supports_check_mode=True,
    )
    found = cuda.check(module.params["library"], module.params["timeout"])
    problem = shortfall(found, module.params["devices"])
    if problem:
        module.fail_json(msg=problem, **asdict(found))
    module.exit_json(changed=False, **asdict(found))


if __name__ == "__main__":
    main()
