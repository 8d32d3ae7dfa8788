#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: nvidia_driver_gate
short_description: Fail unless every kernel that could be booted next has the NVIDIA driver's module
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - A module that DKMS could not build, for want of headers or because the build broke, is otherwise found out at the
    next boot, by engines without GPUs.
  - Every kernel with an image in C(/boot) must have its module in the state installed, and DKMS must have nothing to
    remark on it. All kernels that have not are reported at once, each with what to do.
  - Changes nothing.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  version:
    description: The driver's version, without the revision of a package, such as V(580.105.08). Empty takes any.
    type: str
    default: ""
  flavor:
    description:
      - The kernel module's flavour; V(any) takes both. NVIDIA's own packages build both under one name, so that
        theirs passes as either.
    type: str
    choices: [any, open, proprietary]
    default: any
  kernels:
    description:
      - The releases of the kernels, for a machine that boots from elsewhere than its own C(/boot). Where none is named,
        those in C(/boot).
    type: list
    elements: str
    default: []
  timeout:
    description: Seconds for C(dkms status), which compares files of every kernel.
    type: int
    default: 60
"""

EXAMPLES = r"""
- name: Be sure of the driver before any reboot
  baremetal.inference.nvidia_driver_gate:
    version: 580.105.08
"""

RETURN = r"""
kernels:
  description: The kernels that were looked at.
  returned: always
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
  returned: always
  type: list
  elements: str
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import run
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import dkms, gate
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.facts import Reader
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.kernels import Kernel

ARGUMENTS = {
    "version": {"type": "str", "default": ""},
    "flavor": {"type": "str", "choices": ["any", "open", "proprietary"], "default": "any"},
    "kernels": {"type": "list", "elements": "str", "default": []},
    "timeout": {"type": "int", "default": 60},
}


def look(kernels: list[Kernel], modules: list[dkms.Module], wanted: gate.Wanted) -> dict[str, Any]:
    """The module's result."""
    candidates = wanted.among(modules)
    ready = [(kernel, gate.ready(kernel, candidates)) for kernel in kernels]
    return {
        "kernels": [
            {
                "release": kernel.release,
                "headers": kernel.headers,
                "module": f"{module.name}/{module.version}" if module else None,
            }
            for kernel, module in ready
        ],
        "problems": [str(problem) for problem in gate.problems(kernels, modules, wanted)],
    }


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    reader = Reader(Path("/"), run, module.params["timeout"])
    flavor = module.params["flavor"]
    wanted = gate.Wanted(module.params["version"], "" if flavor == "any" else flavor)
    modules = reader.dkms_modules()
    result = look(reader.installed_kernels(module.params["kernels"]), modules, wanted)
    if reader.warnings:
        module.fail_json(msg=f"Nothing is known of the kernels: {'; '.join(reader.warnings)}", **result)
    if result["problems"]:
        advice = "Do not reboot this node: a kernel could come up without the NVIDIA driver."
        module.fail_json(msg="\n- ".join([advice, *result["problems"]]), **result)
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
