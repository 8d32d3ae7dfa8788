# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of modules that render the releases of a node."""

from __future__ import annotations


class ModuleDocFragment:
    """Extended by modules that render releases."""

    DOCUMENTATION = r"""
options:
  image:
    description: The engine's image, by digest.
    type: str
    required: true
  engine_version:
    description:
      - The version of vLLM in the image. The registry's flags are rendered for this version.
      - If empty, the version is read from the node's record, from the image on the node, or from the image's tag.
    type: str
    default: ""
  user:
    description: The user that engines run as.
    type: str
    required: true
  environment:
    description: Environment variables for every engine.
    type: dict
    default: {}
  secret_environment:
    description: Environment variables with secret values, such as C(VLLM_API_KEY). Their values are never shown.
    type: dict
    default: {}
  gangs:
    description:
      - What the members of this node's gangs declare, from the filter P(baremetal.inference.gang_site#filter). Empty if
        the node has no instance over several nodes.
    type: dict
    default: {}
  gang_key:
    description: The key with which the members of gangs prove who they are. Required if the node has a gang.
    type: str
    default: ""
  network:
    description: Networks and settings for the environment of NCCL. Used only if the node has a gang.
    type: dict
    default: {}
    suboptions:
      nodes:
        description:
          - The networks of the members in this run, by node, as M(baremetal.inference.gang_facts) returns them. For
            other members, those of the last run count.
        type: dict
        default: {}
      required:
        description: Whether an engine must fail rather than use TCP. Refused if a member has no rail.
        type: bool
        default: false
      rails_connected:
        description: >-
          Whether a rail of one node reaches all rails of another node. The default is true, unless all rails are RoCE
          and each rail of a node has a subnet of its own.
        type: bool
      variables:
        description: Further variables of NCCL, UCX and Gloo. Variables that must not be set are refused.
        type: dict
        default: {}
  instance_secrets:
    description: Environment variables with secret values of single instances, by the name of the instance.
    type: dict
    default: {}
  flag_files:
    description: The files of the controller that flags name, as the filter C(controller_files) returns them.
    type: dict
    default: {}
  settings:
    description: Settings of every engine's container. Sizes are in Docker's notation, times in seconds.
    type: dict
    default: {}
    suboptions:
      address:
        description: The address that engines listen on.
        type: str
      store_path:
        description: The root of the model store.
        type: str
      fast_path:
        description:
          - The directory of fast copies from M(baremetal.inference.model_fast_copy). Empty if engines read from the
            store.
        type: str
      cache_path:
        description: The directory of the compile caches. Each instance has its own subdirectory.
        type: str
      start_timeout:
        description: Time in seconds that an engine may take to load and answer.
        type: int
      drain_timeout:
        description: Time in seconds that an engine gives requests in flight when it stops.
        type: int
      shm_size:
        description: Size of C(/dev/shm) in the container.
        type: str
      memory:
        description: Memory limit of the container, V("0") for none. If empty, each new release gets a limit of its own.
        type: str
      pids_limit:
        description: Processes and threads that the container may have.
        type: int
      ulimits:
        description: Resource limits by name.
        type: dict
      cap_add:
        description: Capabilities that the container keeps.
        type: list
        elements: str
      gpu_request:
        description: How containers get GPUs, V(cdi) for Docker's own CDI support or V(runtime) for NVIDIA's runtime.
        type: str
  read_only:
    description:
      - Whether engines cannot write to the files of their image. A staged release follows this option until the release
        runs or has served.
    type: bool
    default: true
"""
