#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: cdi_facts
short_description: Report which devices containers can ask for by CDI name, and which containers lost their GPUs
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - The subset V(specs) reads the specifications of the Container Device Interface (CDI) in C(/etc/cdi) and
    C(/var/run/cdi), and holds those of the kind C(nvidia.com/gpu) against the loaded driver and the files and devices
    of the node. A specification that outlived its driver makes containers fail at their start, or gives them
    libraries that do not fit the kernel module. Specifications in YAML need C(python3-yaml) on the node; without it,
    RV(ansible_facts.cdi.specs[].error) says so.
  - The subset V(containers) finds the running containers that asked for NVIDIA GPUs, in whatever way, and opens their
    device nodes from inside, without asking the driver anything. A container that was started with C(--gpus) loses
    its GPUs at the next C(systemctl daemon-reload), often that of an C(apt) run. The container goes on running, and
    all that its processes get to hear is C(Failed to initialize NVML) or a CUDA error.
  - Changes nothing, and never fails for a specification that is broken or a container that cannot be tried.
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
      - What to gather. V(all) is everything, V(min) nothing. An exclamation mark leaves one out, of V(all) where
        nothing else is given.
      - A fact that is left out is not returned, so that an earlier one stays.
    type: list
    elements: str
    choices: [all, min, specs, '!specs', containers, '!containers']
    default: [specs]
  gpus:
    description:
      - For V(specs), the node's GPUs, as the fact C(gpus) of M(baremetal.inference.gpu_facts) with its subset
        C(nvidia_smi). Then RV(ansible_facts.cdi.refresh_reason) also tells of GPUs and MIG slices that came or went.
    type: list
    elements: dict
    default: []
  timeout:
    description: For V(containers), the seconds that each command of Docker gets.
    type: float
    default: 30
  root:
    description: For V(specs), the directory to read everything below.
    type: path
    default: /
"""

EXAMPLES = r"""
- name: Report what containers can ask for
  baremetal.inference.cdi_facts:

- name: Write the specification anew where it is no longer true
  ansible.builtin.systemd_service:
    name: nvidia-cdi-refresh.service
    state: restarted
  when: ansible_facts['cdi'].refresh_reason is not none

- name: Try the GPUs of all containers
  baremetal.inference.cdi_facts:
    gather_subset: [containers]

- name: Fail where a container has lost its GPUs
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
    cdi:
      description: The specifications.
      returned: when O(gather_subset) has V(specs)
      type: dict
      contains:
        devices:
          description: The qualified names that a container can ask for.
          type: list
          elements: str
          sample: [nvidia.com/gpu=0, nvidia.com/gpu=all]
        conflicts:
          description: Devices that nobody can ask for, because two files of one directory claim them.
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
      returned: when O(gather_subset) has V(containers)
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

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import commands
from ansible_collections.baremetal.inference.plugins.module_utils.core.gather_subset import choices, chosen
from ansible_collections.baremetal.inference.plugins.module_utils.hardware import cdi
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.container_gpus import Found, look
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import driver

SPECS, CONTAINERS = PARTS = ("specs", "containers")


def facts(root: Path, gpus: list[dict[str, Any]]) -> dict[str, Any]:
    """The fact `cdi`, below a root."""
    reality = cdi.reality(driver.read(root).module_version, gpus)
    specs = cdi.read(root)
    findings = cdi.judge(root, specs, reality)
    return {
        "devices": cdi.devices(specs),
        "conflicts": [{"device": device, "paths": paths} for device, paths in cdi.conflicts(specs).items()],
        "driver_version": reality.driver_version,
        "refresh_reason": cdi.refresh_reason(findings, reality) or None,
        "specs": [
            {
                "path": finding.spec.path,
                "kind": finding.spec.kind or None,
                "cdi_version": finding.spec.version or None,
                "devices": list(finding.spec.devices),
                "driver_versions": list(finding.spec.driver_versions),
                "missing_paths": list(finding.missing),
                "renumbered": list(finding.renumbered),
                "stale": finding.stale or None,
                "error": finding.spec.error or None,
            }
            for finding in findings
        ],
    }


def container_facts(found: Found) -> dict[str, Any]:
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
    module = AnsibleModule(
        argument_spec={
            "gather_subset": {"type": "list", "elements": "str", "choices": choices(PARTS), "default": [SPECS]},
            "gpus": {"type": "list", "elements": "dict", "default": []},
            "timeout": {"type": "float", "default": 30},
            "root": {"type": "path", "default": "/"},
        },
        supports_check_mode=True,
    )
    params, timeout = module.params, module.params["timeout"]
    if not timeout > 0:
        module.fail_json(msg=f"timeout: {timeout:g}: must be more than 0 seconds")
    parts = chosen(params["gather_subset"], PARTS)
    found = {}
    if SPECS in parts:
        found["cdi"] = facts(Path(params["root"]), params["gpus"])
    if CONTAINERS in parts:
        found["container_gpus"] = container_facts(look(lambda command: commands.run(command, timeout)))
    module.exit_json(changed=False, ansible_facts=found)


if __name__ == "__main__":
    main()
