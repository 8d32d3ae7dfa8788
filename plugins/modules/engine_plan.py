#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: engine_plan
short_description: Check the declared instances of a node, and plan whether they fit, before anything changes
version_added: 0.1.0
description:
  - Checks instances and model registry, declared GPUs, shared settings of containers, addresses and ports of engines,
    and endpoints of serving engines. With O(strict), also checks the image, the form of the models' sources, and the
    system prompts, golden prompts and affinity keys of models on the node.
  - Checks the flags of all models against the catalogue of the engine's version, or of the nearest known version.
  - With O(fit), plans every present instance without a mistake. A plan has the exact command, the estimated GPU
    memory, the changes to the running release, and every problem.
  - Reads a model's configuration from the store or from a source on the node. For other models, the plan uses O(facts),
    or else only their flags.
  - Changes nothing, and connects to no other machine.
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  strict:
    description:
      - Whether to fail with all mistakes at once, and to warn of deprecated or uncertain input. Otherwise, mistakes and
        warnings are only returned.
      - The module never fails for a plan that does not fit.
    type: bool
    default: false
  fit:
    description: Whether to plan every instance. Otherwise, only the input is checked.
    type: bool
    default: true
  facts:
    description:
      - Facts of models that are not on the node yet, by the model registry entry with the weights, as
        M(baremetal.inference.model_facts) returns them.
    type: dict
    default: {}
  coming:
    description:
      - The revisions of models that this run will publish, by the model registry entry with the weights, as
        M(baremetal.inference.model) returns them. A published revision with damaged files is published again. The files
        of these revisions in the store are not read.
    type: dict
    default: {}
  gpus:
    description:
      - The node's GPUs, as the fact C(gpus) of M(baremetal.inference.gpu_facts). Every GPU of an instance must be one
        of them, and free. Before the driver works, only their number is checked.
      - If omitted, and if an instance needs GPUs, the module reads the node's GPUs.
    type: list
    elements: dict
  image_gib:
    description:
      - The free space in GiB that the pull of one image needs, for the disk check. If omitted, the disk is not checked.
    type: int
  engine_cuda:
    description:
      - The CUDA version of O(image), such as V(12.9). A plan compares it with driver and GPUs.
      - If the node has the image, the environment of the image counts instead. If neither has a version, the tag of the
        image counts, such as C(v0.33.0-cu129).
    type: str
    default: ""
  docker_data_root:
    description: The directory of Docker's images. A running Docker's own answer overrides it.
    type: path
    default: /var/lib/docker
  cdi_problem:
    description:
      - Why containers of this node cannot get GPUs by CDI name, from Docker or from NVIDIA's runtime. Empty if they
        can.
    type: str
    default: ""
  agent:
    description:
      - The node's agent. If set, the module checks the agent's address and port, and compares the agent, the command
        inferctl and the engines' units with the node.
    type: dict
    suboptions:
      address:
        description: The address that the agent listens on.
        type: str
        required: true
      port:
        description: The port that the agent listens on.
        type: int
        required: true
      swap:
        description: The settings for swaps that the node runs by itself, as in M(baremetal.inference.node_agent).
        type: dict
        default: {}
extends_documentation_fragment:
  - baremetal.inference.engine
  - baremetal.inference.registry
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
seealso:
  - module: baremetal.inference.engine_release
"""

EXAMPLES = r"""
- name: Check instances, models, ports and disk
  baremetal.inference.engine_plan:
    strict: true
    fit: false
    instances: "{{ instances }}"
    models: "{{ models }}"
    image: "{{ engine_image }}"
    engine_version: 0.32.0
    image_gib: 30
    user: inference
    settings: "{{ settings }}"

- name: Plan the engines of this node
  baremetal.inference.engine_plan:
    instances: "{{ instances }}"
    models: "{{ models }}"
    image: registry.example.com/vllm@sha256:0f4e5c…
    user: inference
    settings:
      store_path: /mnt/models
  register: plan

- name: Report the plan
  ansible.builtin.debug:
    msg: "{{ plan.text }}"
"""

RETURN = r"""
ok:
  description:
    - Whether everything fits and there is no mistake. Null if no check has failed, but not everything is known, or
      O(fit) is false.
  returned: success
  type: bool
text:
  description: The plan as a table for operators; empty without O(fit).
  returned: success
  type: str
problems:
  description: Mistakes in instances, model registry, settings and node that do not belong to a single plan.
  returned: success, and if O(strict) fails because of mistakes
  type: list
  elements: dict
  contains: &problem
    check:
      description: What was checked.
      type: str
      sample: inventory
    key:
      description: The variable, flag or fact for which the check failed.
      type: str
      sample: "models.qwen3-8b: dtypee"
    value:
      description: The found value.
      type: raw
    message:
      description: What is wrong, and what to do.
      type: str
    fits:
      description: Values that would pass the check. Each item alone is enough.
      type: list
      elements: dict
      sample: [{"tensor-parallel-size": 4}]
warned:
  description: Input that works, but perhaps not as intended, such as deprecated flags.
  returned: success
  type: list
  elements: str
orphans:
  description: Instances found on the node that are not declared as present.
  returned: success
  type: list
  elements: str
gangs:
  description:
    - This node's part of each of its instances over several nodes, for P(baremetal.inference.gang_differences#filter).
      Empty without O(fit).
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The instance.
      type: str
    node:
      description: The name of this node.
      type: str
    rank:
      description: The rank of this node; the node with rank 0 leads.
      type: int
    shared:
      description: What all nodes of the instance must have alike. Values of environment variables are hashed.
      type: dict
    devices:
      description: The names of the devices that the engine computes on here.
      type: list
      elements: str
    network:
      description: The network interface with the node's address, and its RDMA.
      type: dict
image_space:
  description:
    - The space in GiB that missing images will take, by directory. Empty if no image is missing, if too little is
      free, or if the disk was not checked.
  returned: success
  type: dict
agent_due:
  description:
    - Whether the units of agent and metrics, or their state, differ from the input. V(false) without O(agent).
  returned: success
  type: bool
tool_due:
  description: Whether the command inferctl or its library differs from this collection's. V(false) without O(agent).
  returned: success
  type: bool
services_due:
  description:
    - Whether the engines' units, or their state, differ from the input, or an engine is still loading. V(false) without
      O(agent).
  returned: success
  type: bool
starts:
  description: The instances that do not run, and that a run would start. Empty without O(agent).
  returned: success
  type: list
  elements: str
engine_version:
  description: The version of vLLM in the image; empty if unknown.
  returned: success
  type: str
  sample: 0.32.0
catalogue_version:
  description: The version of vLLM whose catalogue the model registry was checked against.
  returned: success
  type: str
  sample: 0.32.0
plans:
  description: The plan of each present instance without a mistake; empty without O(fit).
  returned: success
  type: list
  elements: dict
  contains:
    ok:
      description: Whether the instance fits. Null if no check has failed, but not everything is known.
      type: bool
    instance:
      description: The instance.
      type: str
    nodes:
      description: The number of nodes of the instance.
      type: int
    rank:
      description: The rank of this node among them.
      type: int
    model:
      description: The entry of the model registry.
      type: str
    revision:
      description: The revision of the weights; null if unknown.
      type: str
    argv:
      description: The exact command inside the container.
      type: list
      elements: str
    gpus:
      description: The GPUs, by index or UUID.
      type: list
      elements: str
    devices:
      description: The devices that the engine computes on.
      type: list
      elements: dict
      contains:
        name:
          description: The product.
          type: str
        memory_mib:
          description: Memory in MiB, without the memory that the driver reserves; null if unknown.
          type: int
        compute_capability:
          description: Compute capability; null if unknown, and for CPUs.
          type: str
    estimate:
      description: The memory estimate of the device with the most data; null if unknown.
      type: dict
      contains:
        budget_gib:
          description: The memory that the engine may take, in GiB.
          type: float
        weights_gib:
          description: The weights, in GiB.
          type: float
        draft_gib:
          description: Weights of the draft model, in GiB; 0 where there is none.
          type: float
        adapters_gib:
          description: What is reserved for LoRA adapters, in GiB; 0 where there are none.
          type: float
        overhead_gib:
          description: The memory for computations, in GiB.
          type: float
        kv_cache_gib:
          description: The remaining memory for the KV cache, in GiB.
          type: float
        kv_cache_tokens:
          description: The tokens that fit into the KV cache, for requests of full length.
          type: int
        max_model_len:
          description: The longest request, in tokens.
          type: int
        max_concurrency:
          description: The number of requests of full length that fit at once.
          type: float
        spare_gib:
          description: The memory beyond one request of full length, in GiB. Negative if the model does not fit.
          type: float
    change:
      description: The change to the running release.
      type: dict
      contains:
        action:
          description: >-
            V(none); V(start) if the instance does not run: C(baremetal.inference.site) starts it; V(update) if another
            release serves.
          type: str
        active:
          description: The active release; null before the first start.
          type: int
        desired:
          description:
            - The release that would run; null if it is not staged yet. If a release is pinned, by a rollback or by
              C(set) of an update, the pinned release.
          type: int
        served:
          description: Whether this release has served on this node before.
          type: bool
        differences:
          description: Removed (-) and added (+) lines of the unit, and names of environment variables that differ.
          type: list
          elements: str
    problems:
      description: All reasons why the engine would not start.
      type: list
      elements: dict
      contains: *problem
    unknown:
      description: What could not be checked, and might keep the engine from starting.
      type: list
      elements: str
    notes:
      description: Further remarks for the operator.
      type: list
      elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import defaults, node_call
from ansible_collections.baremetal.inference.plugins.module_utils.engine.arguments import ARGUMENTS

AGENT: dict[str, Any] = {
    "address": {"type": "str", "required": True},
    "port": {"type": "int", "required": True},
    "swap": {"type": "dict", "default": {}},
}


SPECIFICATION = {
    "argument_spec": {
        **ARGUMENTS,
        "strict": {"type": "bool", "default": False},
        "fit": {"type": "bool", "default": True},
        "facts": {"type": "dict", "default": {}},
        "coming": {"type": "dict", "default": {}},
        "gpus": {"type": "list", "elements": "dict"},
        "engine_cuda": {"type": "str", "default": ""},
        "image_gib": {"type": "int"},
        "docker_data_root": {"type": "path", "default": defaults.DOCKER_DATA_ROOT},
        "cdi_problem": {"type": "str", "default": ""},
        "agent": {"type": "dict", "options": AGENT},
    },
    "supports_check_mode": True,
}


def main() -> None:
    node_call.refuse(AnsibleModule(**SPECIFICATION))


if __name__ == "__main__":
    main()
