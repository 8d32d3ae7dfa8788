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
  - Checks the instances and the registry, the GPUs that instances ask for, what every container shares, the addresses
    and ports that engines would listen on, what engines that serve are reached by, and the disk that the image needs.
  - The registry's engine flags are checked by the catalogue of the engine's version, or by the nearest that there is.
    What works but is deprecated, or is not known for sure, is warned of.
  - Fails with every mistake at once. Reads only.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  gpus:
    description:
      - The node's GPUs, as the fact C(gpus) of M(baremetal.inference.gpu_facts). Every GPU that an instance asks for is
        then one of them, and free. Before the driver works, only their number counts.
    type: list
    elements: dict
  address:
    description: The address that engines listen on.
    type: str
    default: 127.0.0.1
  image:
    description: The engine's image, by digest.
    type: str
    required: true
  engine_version:
    description:
      - The version of vLLM in the image.
      - If empty, the image is asked where the node has it, and its tag else, which may stand before the digest. If
        that does not tell it either, the newest catalogue is taken.
    type: str
    default: ""
  image_gib:
    description: Free space in GiB that pulling the image needs.
    type: int
    required: true
  docker_data_root:
    description: Where Docker will keep its images; a Docker that runs already is asked instead.
    type: path
    default: /var/lib/docker
  cdi_problem:
    description: Why containers of this node cannot ask for GPUs by CDI name. Empty where they can.
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
  gateways:
    description:
      - Whether gateways are in front of the engines. They take addresses and API keys from the inventory at once, so
        that those of an engine that serves must not differ from it. The keys are compared, and never shown.
    type: bool
    default: false
extends_documentation_fragment:
  - baremetal.inference.registry
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
    engine_version: 0.32.0
    image_gib: 30
    gpus: "{{ ansible_facts['gpus'] }}"
    settings: "{{ settings }}"
"""

RETURN = r"""
image_space:
  description: Space in GiB that the image will take, by the directory that it goes to. Empty where the node has it.
  returned: success
  type: dict
engine_version:
  description: The version of vLLM in the image. Empty where nothing tells it.
  returned: success
  type: str
  sample: 0.32.0
catalogue_version:
  description: The version of vLLM whose flags the registry was checked by.
  returned: success
  type: str
  sample: 0.32.0
problems:
  description: Every mistake found, as a line for the operator.
  returned: failure
  type: list
  elements: str
"""

import shutil
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import defaults, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError, Problem
from ansible_collections.baremetal.inference.plugins.module_utils.engine.endpoints import (
    address_problems,
    endpoint_problems,
    running_instances,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.environment import API_KEY
from ansible_collections.baremetal.inference.plugins.module_utils.engine.image_version import find
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import Instance, load_instances
from ansible_collections.baremetal.inference.plugins.module_utils.engine.settings import (
    check_environment,
    check_settings,
)
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags import catalogue
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry import entries

GIB = 2**30


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


def gpu_problems(instances: list[Any], registry: entries.Registry, gpus: list[dict[str, Any]] | None) -> list[Problem]:
    """GPUs that instances without any other mistake ask for, and that this node does not have, or only once."""
    try:
        load_instances(instances, registry, gpus)
    except InputError as error:
        return error.problems
    return []


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
            "gpus": {"type": "list", "elements": "dict"},
            "address": {"type": "str", "default": "127.0.0.1"},
            "image": {"type": "str", "required": True},
            "engine_version": {"type": "str", "default": ""},
            "image_gib": {"type": "int", "required": True},
            "docker_data_root": {"type": "path", "default": defaults.DOCKER_DATA_ROOT},
            "cdi_problem": {"type": "str", "default": ""},
            "settings": {"type": "dict", "required": True},
            "environment": {"type": "dict", "default": {}},
            "secret_environment": {"type": "dict", "default": {}, "no_log": True},
            "gateways": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    values = module.params
    space, problems = image_space(module)
    problems += check_settings(values["settings"])
    problems += check_environment(values["environment"], values["secret_environment"])
    wrong_address = address_problems(values["address"])
    problems += wrong_address
    docker = module.get_bin_path("docker")
    version = find(values["engine_version"], values["image"], Paths().registry, docker, module.run_command)
    flags = catalogue.choose(version)
    registry = entries.read(values["models"], flags)
    for warning in [*filter(None, [flags.note]), *registry.warnings]:
        module.warn(str(warning))
    try:
        instances = load_instances(values["instances"], registry)
        present = [instance for instance in instances if instance.state == "present"]
        problems += gpu_problems(values["instances"], registry, values["gpus"])
        if not wrong_address:
            key = str({**values["environment"], **values["secret_environment"]}.get(API_KEY, ""))
            problems += endpoint_problems(
                present, values["address"], key, running_instances(Paths()), gateways=values["gateways"]
            )
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
    module.exit_json(changed=False, image_space=space, engine_version=version, catalogue_version=flags.version)


if __name__ == "__main__":
    main()
