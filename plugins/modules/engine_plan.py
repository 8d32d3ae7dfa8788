#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: engine_plan
short_description: Check what the engines of a node must run, and plan whether it fits, before anything changes
version_added: 0.1.0
description:
  - Checks the instances and the registry, the GPUs that instances ask for, what every container shares, the addresses
    and ports that engines would listen on, and what engines that serve are reached by. If O(strict) is set, also the
    image, and the system prompts of models on the node.
  - The registry's engine flags are checked by the catalogue of the engine's version, or by the nearest that there is.
  - Plans every present instance without a mistake of its own, if O(fit) is set. A plan holds the exact command, the
    memory that it takes of the GPUs, what would change against what runs now, and every problem. Models are read where
    their files are on the node, in the store or at a source of theirs. Of other models, O(facts) may tell, or else
    nothing is known but their flags.
  - Reads only, and asks no other machine.
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  strict:
    description:
      - Whether to fail with every mistake at once, and to warn of what works but is deprecated, or is not known for
        sure. Otherwise both are returned alone.
      - A plan that does not fit is never a failure.
    type: bool
    default: false
  fit:
    description: Whether to plan every instance. Otherwise only the input is checked.
    type: bool
    default: true
  facts:
    description:
      - What is known of models that are not on the node yet, by the name of the entry that has the weights, as
        M(baremetal.inference.model_facts) returns it.
    type: dict
    default: {}
  coming:
    description:
      - The revision of each model that is still to be published, or once more because its files are damaged, by the
        name of the entry that has the weights, as M(baremetal.inference.model) returns it. Of these, nothing
        is read in the store.
    type: dict
    default: {}
  gpus:
    description:
      - The node's GPUs, as the fact C(gpus) of M(baremetal.inference.gpu_facts). Every GPU that an instance asks for
        must be one of them, and free. Before the driver works, only their number counts.
      - If omitted, the node is asked where an instance runs on GPUs.
    type: list
    elements: dict
  image_gib:
    description:
      - Free space in GiB that pulling the image needs, for the check of the disk. If omitted, the disk is not checked.
    type: int
  engine_cuda:
    description:
      - The version of CUDA that O(image) is built with, such as V(12.9). A plan compares it with driver and GPUs.
      - If empty, the environment of the image tells it, where the node has the image.
    type: str
    default: ""
  docker_data_root:
    description: Where Docker will keep its images; a Docker that runs already is asked instead.
    type: path
    default: /var/lib/docker
  cdi_problem:
    description: Why containers of this node cannot ask for GPUs by CDI name. Empty where they can.
    type: str
    default: ""
  agent:
    description:
      - The node's agent, to check where it would listen, and whether it is as it must be. With it, the module also
        compares the command inferctl and the engines' units.
    type: dict
    suboptions:
      address:
        description: The address that it listens on.
        type: str
        required: true
      port:
        description: The port that it listens on.
        type: int
        required: true
      swap:
        description: What the node must know to swap an engine alone, as in M(baremetal.inference.node_agent).
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
- name: Check instances, registry, ports and disk
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
    - Whether everything fits and nothing is wrong; null where no check has failed, and not everything is known.
  returned: success
  type: bool
text:
  description: The plan as a table for people; empty without O(fit).
  returned: success
  type: str
problems:
  description: Mistakes in instances, registry, settings and the node, which are no single plan's.
  returned: always
  type: list
  elements: dict
  contains: &problem
    check:
      description: What was checked.
      type: str
      sample: inventory
    key:
      description: The variable, flag or fact that it failed for.
      type: str
      sample: "models.qwen3-8b: dtypee"
    value:
      description: What was found.
      type: raw
    message:
      description: What is wrong with it, and what to do.
      type: str
    fits:
      description: What would pass the check. Each item is enough by itself.
      type: list
      elements: dict
      sample: [{"tensor-parallel-size": 4}]
warned:
  description: What works, but not as its author may think, such as deprecated flags.
  returned: success
  type: list
  elements: str
orphans:
  description: Instances found on the node that are not declared as present.
  returned: success
  type: list
  elements: str
image_space:
  description:
    - Space in GiB that the image will take, by the directory that it goes to. Empty where the node has the image, or
      the disk was not checked.
  returned: success
  type: dict
agent_due:
  description:
    - Whether the units of agent and metrics, or their state, differ from what they must be. V(false) without O(agent).
  returned: success
  type: bool
tool_due:
  description: Whether the command inferctl or its library differs from this collection's. V(false) without O(agent).
  returned: success
  type: bool
services_due:
  description:
    - Whether the engines' units, or their state, differ from what they must be, or an engine must be waited for.
      V(false) without O(agent).
  returned: success
  type: bool
starts:
  description: The instances that do not run, and that a run would start. Empty without O(agent).
  returned: success
  type: list
  elements: str
engine_version:
  description: The version of vLLM in the image. Empty where that is not known.
  returned: success
  type: str
  sample: 0.32.0
catalogue_version:
  description: The version of vLLM whose flags the registry was checked by.
  returned: success
  type: str
  sample: 0.32.0
plans:
  description: The plan of each present instance without a mistake of its own; none without O(fit).
  returned: success
  type: list
  elements: dict
  contains:
    ok:
      description: Whether it fits; null where nothing speaks against it, and not everything is known.
      type: bool
    instance:
      description: The instance.
      type: str
    model:
      description: The registry's entry.
      type: str
    revision:
      description: The revision of its weights; null where only their source tells it.
      type: str
    argv:
      description: The exact command, inside the container.
      type: list
      elements: str
    gpus:
      description: Its GPUs, by index or UUID.
      type: list
      elements: str
    devices:
      description: What it computes on.
      type: list
      elements: dict
      contains:
        name:
          description: The product.
          type: str
        memory_mib:
          description: Memory in MiB, without what the driver keeps; null where unknown.
          type: int
        compute_capability:
          description: Compute capability; null where unknown, and of processors.
          type: str
    estimate:
      description: Memory of the device that has the most to hold; null where unknown.
      type: dict
      contains:
        budget_gib:
          description: What the engine may take, in GiB.
          type: float
        weights_gib:
          description: Weights, in GiB.
          type: float
        overhead_gib:
          description: What is computed with, in GiB.
          type: float
        kv_cache_gib:
          description: What is left for the KV cache, in GiB.
          type: float
        kv_cache_tokens:
          description: Tokens that fit into it, as requests of full length.
          type: int
        max_model_len:
          description: The longest request, in tokens.
          type: int
        max_concurrency:
          description: Requests of full length that fit at once.
          type: float
        spare_gib:
          description: What is left beyond one of them, in GiB; less than nothing if it does not fit.
          type: float
    change:
      description: What becomes of what runs now.
      type: dict
      contains:
        action:
          description: >-
            V(none); V(start) where the instance does not run, by C(baremetal.inference.site); V(update) where another
            release serves.
          type: str
        active:
          description: The release whose unit is installed; null before the first.
          type: int
        desired:
          description:
            - The release that would run; null where it is not staged yet. The one that is pinned, where a rollback or a
              model that was set for once stands in the place of what the inventory asks for.
          type: int
        served:
          description: Whether that release has served on this node before.
          type: bool
        differences:
          description: Lines of the unit that go (-) and come (+), and names of environment variables that differ.
          type: list
          elements: str
    problems:
      description: Every reason why it would not start.
      type: list
      elements: dict
      contains: *problem
    unknown:
      description: What could not be checked, and might be such a reason.
      type: list
      elements: str
    notes:
      description: What an operator should know all the same.
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
