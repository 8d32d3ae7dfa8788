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
  - Checks the instances and the registry, what every container shares, the addresses and ports that engines would
    listen on, and the disk that the image needs.
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
    description: Where Docker will keep its images; a Docker that runs already is asked instead.
    type: path
    default: /var/lib/docker
  cdi_problem:
    description: Why the Docker engine of this node cannot hand out GPUs by CDI. Empty where it can.
    type: str
    default: ""
  settings:
    description: What every container of the node shares, as in M(baremetal.inference.engine_release).
    type: dict
    required: true
  environment:
    description: Environment variables for every engine.
    type: dict
    default: {}
  secret_environment:
    description: The same for values that must never be shown.
    type: dict
    default: {}
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
"""

EXAMPLES = r"""
- name: Check instances, registry, ports and disk
  baremetal.inference.engine_plan:
    instances: "{{ instances }}"
    models: "{{ models }}"
    image: "{{ engine_image }}"
    image_gib: 30
    settings: "{{ settings }}"
"""

RETURN = r"""
image_space:
  description: Space in GiB that the image will take, by the directory that it goes to. Empty where the node has it.
  returned: success
  type: dict
problems:
  description: Every mistake found, as a line for the operator.
  returned: failure
  type: list
  elements: str
"""

import contextlib
import ipaddress
import shutil
import socket
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.engine_settings import (
    check_environment,
    check_settings,
)
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


def running_instances(paths: Paths) -> dict[str, int | None]:
    """The instances that run on this node, with their ports; None where the release cannot be read."""
    ports: dict[str, int | None] = {}
    for name in releases.names(paths):
        number = releases.active_number(paths, name)
        if number is None or systemd.active_state(unit_name(name)) not in systemd.RUNNING:
            continue
        ports[name] = None
        with contextlib.suppress(releases.ReleaseError):
            ports[name] = releases.load(paths, name, number).port
    return ports


def port_problems(instances: list[Instance], address: str, running: dict[str, int | None]) -> list[Problem]:
    """Ports of instances that would be started, which somebody has already."""
    problems = []
    declared = {instance.name for instance in instances}
    for instance in instances:
        if instance.name in running:
            # It is not started now: its port changes when its pending release is rolled out.
            continue
        holders = [name for name, port in running.items() if port == instance.port]
        owners = identity.ownership(instance.port, address, init_pid=None)
        if holders:
            gone = "" if holders[0] in declared else ", which the inventory no longer declares"
            message = f"is held by instance {holders[0]}{gone}: stop that one, or take another port"
        elif owners.strangers or owners.unknown:
            who = ", ".join(map(str, owners.strangers)) or "a process that cannot be seen from here"
            message = f"is taken by {who}: stop that, or give the instance another port"
        else:
            continue
        problems.append(Problem(f"instance {instance.name}", message, "port", instance.port))
    return problems


def image_space(module: AnsibleModule) -> tuple[dict[str, int], list[Problem]]:
    """Space in GiB that the image will take, by directory; and too little of it. Nothing where the node has it."""
    root = Path(module.params["docker_data_root"])
    docker = module.get_bin_path("docker")
    if docker:
        if module.run_command([docker, "image", "inspect", module.params["image"]])[0] == 0:
            return {}, []
        code, told, _error = module.run_command([docker, "info", "--format", "{{.DockerRootDir}}"])
        root = Path(told.strip()) if code == 0 and told.startswith("/") else root
    needed = module.params["image_gib"]
    existing = next(path for path in (root, *root.parents) if path.exists())
    free = shutil.disk_usage(existing).free / GIB
    if free >= needed:
        return {str(existing): needed}, []
    message = (
        f"has {free:.1f} GiB free, the image needs {needed} GiB (vllm_image_gib): free space below {existing}, "
        "or move docker_data_root to a larger disk"
    )
    return {}, [Problem("disk", message, str(root))]


def cdi_problems(instances: list[Instance], reason: str) -> list[Problem]:
    """Instances whose GPUs this node's Docker cannot hand out."""
    return [
        Problem(f"instance {instance.name}", f"cannot get its GPUs: {reason}", "gpus", list(instance.gpus))
        for instance in instances
        if instance.gpus
    ]


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "instances": {"type": "list", "elements": "dict", "required": True},
            "models": {"type": "dict", "required": True},
            "address": {"type": "str", "default": "127.0.0.1"},
            "image": {"type": "str", "required": True},
            "image_gib": {"type": "int", "required": True},
            "docker_data_root": {"type": "path", "default": "/var/lib/docker"},
            "cdi_problem": {"type": "str", "default": ""},
            "settings": {"type": "dict", "required": True},
            "environment": {"type": "dict", "default": {}},
            "secret_environment": {"type": "dict", "default": {}, "no_log": True},
        },
        supports_check_mode=True,
    )
    values = module.params
    space, problems = image_space(module)
    problems += check_settings(values["settings"])
    problems += check_environment(values["environment"], values["secret_environment"])
    wrong_address = address_problems(values["address"])
    problems += wrong_address
    try:
        instances = load_instances(values["instances"], values["models"])
        present = [instance for instance in instances if instance.state == "present"]
        if not wrong_address:
            problems += port_problems(present, values["address"], running_instances(Paths()))
        if values["cdi_problem"]:
            problems += cdi_problems(present, values["cdi_problem"])
    except InputError as error:
        problems = error.problems + problems
    except (systemd.SystemdError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    if problems:
        lines = [str(problem) for problem in problems]
        text = "\n".join(f"- {line}" for line in lines)
        module.fail_json(msg=f"Nothing was changed. To correct:\n{text}", problems=lines)
    module.exit_json(changed=False, image_space=space)


if __name__ == "__main__":
    main()
