#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: container_gpu_facts
short_description: Tell which running containers have lost their GPUs
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - A container that was started with C(--gpus) loses its GPUs at the next C(systemctl daemon-reload), often that of an
    C(apt) run. It goes on running, and all that its processes get to hear is C(Failed to initialize NVML) or a CUDA
    error.
  - Finds the running containers that asked for NVIDIA GPUs, in whatever way, and opens their device nodes from inside,
    without asking the driver anything. Changes nothing, and never fails for a container that cannot be tried.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  timeout:
    description: Seconds for each command of Docker.
    type: float
    default: 30
"""

EXAMPLES = r"""
- name: Try the GPUs of all containers
  baremetal.inference.container_gpu_facts:

- name: Fail where a container has lost its own
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
    container_gpus:
      description: The containers that asked for GPUs.
      type: dict
      contains:
        error:
          description: Why nobody could tell, such as that Docker does not answer. V(null) where it did.
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

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import commands
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.container_gpus import Found, look


def facts(found: Found) -> dict[str, Any]:
    """The fact `container_gpus`."""
    return {
        "error": found.error or None,
        "lost": [container.name for container in found.containers if container.lost],
        "containers": [
            {
                "id": container.id,
                "name": container.name,
                "request": container.request,
                "devices": container.nodes,
                "lost": container.lost,
                "error": container.error or None,
            }
            for container in found.containers
        ],
    }


def main() -> None:
    module = AnsibleModule(argument_spec={"timeout": {"type": "float", "default": 30}}, supports_check_mode=True)
    timeout = module.params["timeout"]
    if not timeout > 0:
        module.fail_json(msg=f"timeout: {timeout:g}: must be more than 0 seconds")
    found = look(lambda command: commands.run(command, timeout))
    module.exit_json(changed=False, ansible_facts={"container_gpus": facts(found)})


if __name__ == "__main__":
    main()
