#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: engine_plan
short_description: Check what the engines of a node shall be, before anything changes
version_added: 0.1.0
description:
  - Checks the instances and the registry, the ports that engines would listen on, and the disk that the image needs.
  - Fails with every mistake at once. Reads only.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  instances:
    description: The instances of this node.
    type: list
    elements: dict
    required: true
  models:
    description: The model registry.
    type: dict
    required: true
  address:
    description: The address that engines listen on.
    type: str
    default: 127.0.0.1
  image:
    description: The engine's image, by digest.
    type: str
    required: true
  image_gib:
    description: Free space in GiB that pulling the image needs.
    type: int
    required: true
  docker_data_root:
    description: Where Docker keeps its images.
    type: path
    default: /var/lib/docker
attributes:
  check_mode:
    description: Can run in check mode and return changed status prediction without modifying the target.
    support: full
  diff_mode:
    description: Returns details on what has changed.
    support: none
"""

EXAMPLES = r"""
- name: Check instances, registry, ports and disk
  baremetal.inference.engine_plan:
    instances: "{{ instances }}"
    models: "{{ models }}"
    image: "{{ engine_image }}"
    image_gib: 30
"""

RETURN = r"""
problems:
  description: Every mistake found, as a line for the operator.
  returned: failure
  type: list
  elements: str
"""

import ipaddress
import shutil
import socket
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.node import identity, releases, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.paths import Paths, unit_name
from ansible_collections.baremetal.inference.plugins.module_utils.problems import InputError, Problem
from ansible_collections.baremetal.inference.plugins.module_utils.registry import Instance, load_instances

GIB = 2**30


def address_problems(address: str) -> list[Problem]:
    """An address that no engine of this node can listen on."""
    try:
        family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((address, 0))
    except ValueError:
        return [Problem("engines", "must be an IP address of the node (inference_address)", "address", address)]
    except OSError as error:
        message = f"is no address of this node ({error.strerror}): correct inference_address"
        return [Problem("engines", message, "address", address)]
    return []


def port_problems(paths: Paths, instances: list[Instance], address: str) -> list[Problem]:
    """Ports that somebody else listens on already."""
    problems = []
    ours = {
        releases.load(paths, name, number).port
        for name in releases.names(paths)
        if (number := releases.active_number(paths, name)) is not None
        and systemd.active_state(unit_name(name)) in systemd.RUNNING
    }
    for instance in instances:
        if instance.port in ours:
            continue
        owners = identity.ownership(instance.port, address, init_pid=None)
        if owners.strangers or owners.unknown:
            who = ", ".join(map(str, owners.strangers)) or "a process that cannot be seen from here"
            message = f"is taken by {who}: stop that, or give the instance another port"
            problems.append(Problem(f"instance {instance.name}", message, "port", instance.port))
    return problems


def disk_problems(module: AnsibleModule) -> list[Problem]:
    """Too little space for the image, unless the node has it already."""
    docker = module.get_bin_path("docker")
    if docker and module.run_command([docker, "image", "inspect", module.params["image"]])[0] == 0:
        return []
    root = Path(module.params["docker_data_root"])
    existing = next(path for path in (root, *root.parents) if path.exists())
    free = shutil.disk_usage(existing).free / GIB
    needed = module.params["image_gib"]
    if free >= needed:
        return []
    message = (
        f"has {free:.1f} GiB free, the image needs {needed} GiB (vllm_image_gib): free space below {existing}, "
        "or move docker_data_root to a larger disk"
    )
    return [Problem("disk", message, str(root))]


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "instances": {"type": "list", "elements": "dict", "required": True},
            "models": {"type": "dict", "required": True},
            "address": {"type": "str", "default": "127.0.0.1"},
            "image": {"type": "str", "required": True},
            "image_gib": {"type": "int", "required": True},
            "docker_data_root": {"type": "path", "default": "/var/lib/docker"},
        },
        supports_check_mode=True,
    )
    problems = disk_problems(module)
    try:
        instances = load_instances(module.params["instances"], module.params["models"])
        present = [instance for instance in instances if instance.state == "present"]
        wrong_address = address_problems(module.params["address"])
        problems += wrong_address or port_problems(Paths(), present, module.params["address"])
    except InputError as error:
        problems = error.problems + problems
    except (releases.ReleaseError, ValueError) as error:
        module.fail_json(msg=str(error))
    if problems:
        lines = [str(problem) for problem in problems]
        module.fail_json(
            msg="Nothing was changed. To correct:\n" + "\n".join(f"- {line}" for line in lines), problems=lines
        )
    module.exit_json(changed=False)


if __name__ == "__main__":
    main()
