# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules take that render what the engines of a node run."""

from __future__ import annotations


class ModuleDocFragment:
    """Extended by modules that render."""

    DOCUMENTATION = r"""
options:
  image:
    description: The engine's image, by digest.
    type: str
    required: true
  engine_version:
    description:
      - The version of vLLM in the image, by which the registry's flags are rendered.
      - If empty, the image on the node is asked, unless the node keeps what it has said; else its tag tells it.
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
    description: The same for values that must never be shown, such as C(VLLM_API_KEY).
    type: dict
    default: {}
  settings:
    description: What every container of the node shares; sizes as Docker writes them, times in seconds.
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
          - Where engines find the models of the store, as M(baremetal.inference.model_fast_copy) lays them out. Empty
            for the store itself.
        type: str
      cache_path:
        description: The directory of the compile caches; each instance has its own below.
        type: str
      start_timeout:
        description: Time in seconds that an engine may take to load and answer.
        type: int
      drain_timeout:
        description: Time in seconds that an engine gives running requests when it is stopped.
        type: int
      shm_size:
        description: Size of C(/dev/shm) in the container.
        type: str
      memory:
        description: Memory limit of the container; empty for none.
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
        description: How containers ask for GPUs, V(cdi) of Docker itself or V(runtime) of NVIDIA's runtime.
        type: str
"""
