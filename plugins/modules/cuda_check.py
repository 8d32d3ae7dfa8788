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
  - Without O(devices) and O(fabric_wait), reports only, and never fails.
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
  fabric_wait:
    description:
      - For a node with NVSwitches, the seconds in which their fabric must be up. The fabric manager registers the GPUs
        after it has started; until then CUDA answers with code 802, or C(nvidia-smi) with a state that is not
        C(Completed).
      - The module asks until then, and fails where the fabric is not up at the end. V(0) asks once.
    type: int
    default: 0
  library:
    description: The library to load.
    type: str
    default: libcuda.so.1
"""

EXAMPLES = r"""
- name: Be sure that CUDA works on all GPUs
  baremetal.inference.cuda_check:
    devices: "{{ ansible_facts['gpus'] | rejectattr('excluded') | length }}"

- name: Give the fabric manager of an HGX machine time to register the GPUs
  baremetal.inference.cuda_check:
    devices: 8
    fabric_wait: 300
"""

RETURN = r"""
ok:
  description: Whether CUDA could be initialised, and with O(fabric_wait), whether the fabric is up.
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
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import commands
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import cuda, fabric
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import facts


def ask(library: str, timeout: float, fabric_wait: float) -> cuda.Check:
    """CUDA's answer, with the fabric up if that is to be waited for."""
    if not fabric_wait:
        return cuda.check(library, timeout)

    def gpus() -> list[dict[str, Any]]:
        found = facts.gather(
            Path("/"), lambda command: commands.run(command, timeout), "nvidia-smi", (facts.NVIDIA_SMI,), timeout
        )
        return list(found["gpus"])

    return fabric.wait(lambda: cuda.check(library, timeout), gpus, fabric_wait)


def shortfall(found: cuda.Check, devices: int | None, fabric_wait: float = 0) -> str:
    """Why what was asked for is not there, empty where it is, or where nothing was asked for."""
    if not found.ok:
        fabric_down = fabric_wait and found.code in (0, fabric.NOT_READY)
        return found.message if devices is not None or fabric_down else ""
    if devices is None or found.devices == devices:
        return ""
    return (
        f"CUDA finds {found.devices} GPUs instead of {devices}: look for lost ones with lspci -d 10de: and dmesg, "
        "and for CUDA_VISIBLE_DEVICES"
    )


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "devices": {"type": "int"},
            "timeout": {"type": "int", "default": 60},
            "fabric_wait": {"type": "int", "default": 0},
            "library": {"type": "str", "default": cuda.LIBRARY},
        },
        supports_check_mode=True,
    )
    params = module.params
    found = ask(params["library"], params["timeout"], params["fabric_wait"])
    problem = shortfall(found, params["devices"], params["fabric_wait"])
    if problem:
        module.fail_json(msg=problem, **asdict(found))
    module.exit_json(changed=False, **asdict(found))


if __name__ == "__main__":
    main()
