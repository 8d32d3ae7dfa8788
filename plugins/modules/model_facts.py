#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: model_facts
short_description: Gather facts of models, from their directories or before they are on a node
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Reads C(config.json), the index and the headers of the weights, never the weights. A model of 140 GB takes a
    fraction of a second. Changes nothing.
  - Never fails for a model that is broken. What is wrong with it is in its C(problems), and everything else that could
    be found out is there all the same.
  - What is not known is null. Every key is always there.
  - Of O(models) that a node does not have yet, it reads those in a directory on this machine. Of a hub's model it
    fetches the configurations and the headers of the weights, by HTTP range, and keeps them in O(cache). What an
    archive holds cannot be read before it is fetched, and a path on the node is the node's to read.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - O(cache) is written in check mode, too.
  diff_mode:
    support: none
options:
  directories:
    description:
      - The directories to read on the machine that the module runs on, by a name for each.
      - The fact has these names and no others, also of an earlier call.
    type: dict
  models:
    description:
      - Entries of the model registry by name, whose remote sources, and sources on the controller, are read. Delegate
        the module to V(localhost). Only the keys C(model), C(revision) and C(checksum) are read.
    type: dict
  hub_endpoint:
    description: The hub, or a mirror of it, that O(models) are asked of.
    type: str
    default: https://huggingface.co
  hub_token:
    description: A token for models behind a licence.
    type: str
    default: ""
  cache:
    description:
      - A directory that keeps what was fetched of O(models), which need it. A commit never changes, so the hub is asked
        once.
    type: path
seealso:
  - module: baremetal.inference.model
  - module: baremetal.inference.engine_plan
"""

EXAMPLES = r"""
- name: Look at two models
  baremetal.inference.model_facts:
    directories:
      tiny-a: /mnt/models/tiny-a/ab12cd34ef56
      qwen3-8b: /srv/models/Qwen3-8B

- name: Refuse a model that is not whole
  ansible.builtin.assert:
    that: item.value.problems | length == 0
    fail_msg: "{{ item.key }}: {{ item.value.problems }}"
  loop: "{{ ansible_facts.model_facts | dict2items }}"
  loop_control:
    label: "{{ item.key }}"

- name: Gather the facts of models that have to be fetched
  baremetal.inference.model_facts:
    models: "{{ models }}"
    cache: ~/.cache/baremetal-inference/plans
  delegate_to: localhost
  become: false
  register: remote
"""

RETURN = r"""
ansible_facts:
  description: The facts of O(directories).
  returned: when O(directories) is given
  type: dict
  contains:
    model_facts:
      description: The facts of each model, by the name given to its directory.
      type: dict
      contains:
        path:
          description: The directory.
          type: str
        architectures:
          description: Classes that can run the model.
          type: list
          elements: str
          sample: [LlamaForCausalLM]
        model_type:
          description: The type of the language part.
          type: str
          sample: llama
        layers:
          description: Layers of the language part.
          type: int
        attention_heads:
          description: Attention heads of a layer.
          type: int
        kv_heads:
          description: Heads of a layer that have keys and values of their own.
          type: int
        head_size:
          description: Size of a head.
          type: int
        hidden_size:
          description: Size of the hidden state.
          type: int
        intermediate_size:
          description: Inner size of the dense feed-forwards.
          type: int
        vocabulary_size:
          description: Tokens of the vocabulary.
          type: int
        max_positions:
          description: Positions that C(config.json) tells.
          type: int
        max_length:
          description: The longest request that the engine takes, in tokens, with rope scaling and the tokenizer's limit
            counted in.
          type: int
        default_length:
          description: What the engine takes where C(max-model-len) is not set. Less than C(max_length) for longrope.
          type: int
        rope:
          description: How positions are stretched; null where nothing is said.
          type: dict
          contains:
            type:
              description: The kind, such as V(llama3), V(yarn), V(linear), V(dynamic) or V(longrope).
              type: str
            factor:
              description: How far.
              type: float
            original_max_positions:
              description: Positions before that.
              type: int
        sliding_window:
          description: Tokens that layers with a sliding window see; null where there is none, or it is not used.
          type: int
        attention:
          description: How many layers keep what of a request; null where the configuration does not tell.
          type: dict
          contains:
            full_layers:
              description: Layers that keep every token.
              type: int
            sliding_layers:
              description: Layers that keep the sliding window.
              type: int
            state_layers:
              description: Layers that keep a state of one size. A layer that keeps tokens, too, counts for both.
              type: int
            other_layers:
              description: Layers that keep something of which the size is not known.
              type: int
        full_heads:
          description: Heads in the cache of layers that keep every token; null where they are C(kv_heads) of
            C(head_size).
          type: dict
          contains:
            count:
              description: How many.
              type: int
            size:
              description: The size of each.
              type: int
        sliding_heads:
          description: The same for layers with a sliding window.
          type: dict
          contains:
            count:
              description: How many.
              type: int
            size:
              description: The size of each.
              type: int
        state:
          description: What one layer keeps of a request in place of tokens, in values; null where no layer does, or
            the form of the state is not known.
          type: dict
          contains:
            convolution:
              description: Values of the convolution.
              type: int
            recurrence:
              description: Values of the recurrence.
              type: int
            dtype:
              description: The dtype of the recurrence; null for the engine's own.
              type: str
        mla:
          description: Multi-head latent attention; null where the model has none.
          type: dict
          contains:
            kv_lora_rank:
              description: Size of the latent vector that is kept of a token.
              type: int
            qk_rope_head_dim:
              description: Size of the key with positions that is kept beside it.
              type: int
            qk_nope_head_dim:
              description: Size of a head's key without positions.
              type: int
            v_head_dim:
              description: Size of a head's value.
              type: int
            q_lora_rank:
              description: Size of the latent vector of queries.
              type: int
        experts:
          description: Mixture of experts; null where the model has none.
          type: dict
          contains:
            count:
              description: Experts of a layer.
              type: int
            per_token:
              description: Experts that work on a token.
              type: int
            intermediate_size:
              description: Inner size of an expert.
              type: int
            shared_intermediate_size:
              description: Inner size of the experts that work on every token, together.
              type: int
            layers:
              description: Layers that have experts.
              type: int
        dtype:
          description: What the model computes in, as its configuration says, else as its weights are.
          type: str
          sample: bfloat16
        quantization:
          description: How the weights are quantized; null where they are not.
          type: dict
          contains:
            method:
              description: The engine's name for the method; empty where the configuration has none.
              type: str
              sample: fp8
            bits:
              description: Bits of a weight.
              type: int
            group_size:
              description: Weights that share a scale.
              type: int
            block:
              description: Rows and columns of a block that shares a scale.
              type: list
              elements: int
        tied_embeddings:
          description: Whether the head is the embedding; null where the configuration does not say.
          type: bool
        modalities:
          description: What the model takes beside text.
          type: list
          elements: str
          sample: [vision]
        tower_parameters:
          description: Parameters of the parts that see or hear, 0 where there is none; null where one does not tell its
            sizes.
          type: int
        weights:
          description: The weights as the engine holds them; null where there are none to read.
          type: dict
          contains:
            bytes:
              description: Bytes of the tensors that are loaded, each counted once.
              type: int
            parameters:
              description: Weights in them. What quantization packs is unpacked, its scales are not counted.
              type: int
            by_dtype:
              description: Bytes by the dtype of the files.
              type: dict
              sample: {BF16: 16060522496}
            unused_bytes:
              description: Bytes that are in the files and not loaded, such as layers for speculative decoding.
              type: int
            measured:
              description: Whether files were read. Always true here.
              type: bool
            parts:
              description: Bytes by how they are split over GPUs.
              type: dict
              contains:
                embedding:
                  description: The embedding.
                  type: int
                head:
                  description: The head, 0 where it is tied to the embedding.
                  type: int
                layers:
                  description: Each layer of the language part.
                  type: list
                  elements: int
                replicated:
                  description: What of all layers each tensor-parallel rank holds whole.
                  type: int
                kv_projections:
                  description: What of all layers can be split by KV heads alone.
                  type: int
                experts:
                  description: What of all layers belongs to experts.
                  type: int
                rest:
                  description: What is outside of the layers, the parts for images and sounds included.
                  type: int
        shards:
          description: Files that hold the weights.
          type: list
          elements: str
        missing_shards:
          description: Files that the index names and that are not there.
          type: list
          elements: str
        cut_shards:
          description: Files that are shorter than their header says.
          type: list
          elements: str
        tokenizer:
          description: The file that holds the tokenizer; null where there is none.
          type: str
          sample: tokenizer.json
        chat_template:
          description: The file that holds the chat template; null where there is none.
          type: str
          sample: chat_template.jinja
        remote_code:
          description: Files that name Python code of the model's own.
          type: list
          elements: str
          sample: [config.json]
        revision:
          description: The revision that the store's manifest names, made of the hashes of all files; null where there
            is no manifest. The files are not hashed again.
          type: str
          sample: ab12cd34ef56
        problems:
          description: What is wrong with the model.
          type: list
          elements: dict
          contains:
            file:
              description: The file, relative to the directory; empty for the directory itself.
              type: str
              sample: model-00003-of-00004.safetensors
            message:
              description: What is wrong with it, and what to do.
              type: str
              sample: "is cut: expected 5,000 bytes, found 4,100 (900 missing); fetch it again"
facts:
  description: The facts of each of O(models) whose source can be read, with the keys of RV(ansible_facts.model_facts).
  returned: when O(models) is given
  type: dict
unknown:
  description: Why nothing is known of the others, by name.
  returned: when O(models) is given
  type: dict
  sample:
    qwen3-8b: an archive tells nothing before it is fetched
problems:
  description: The same as refusals, each with what to do.
  returned: when O(models) is given
  type: list
  elements: str
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import Problem
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts, gather
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources import hub_headers
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.hub import Hub
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.remote import ARCHIVE
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.source import (
    CONTROLLER,
    NODE,
    Source,
    load_sources,
)
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.transfer import TransferError


def of_directories(module: AnsibleModule) -> dict[str, Any]:
    """The facts of models in directories of this machine."""
    directories = module.params["directories"]
    wrong = [f"{name}: {path!r}" for name, path in directories.items() if not isinstance(path, str) or not path]
    if wrong:
        module.fail_json(msg=f"directories: must be paths: {', '.join(wrong)}")
    return {name: gather(Path(path)).to_dict() for name, path in directories.items()}


def of_source(source: Source, cache: Path, hub: Hub) -> ModelFacts:
    """The facts of a model that no node has yet. Raises TransferError where its source cannot be read, and OSError."""
    if source.origin == CONTROLLER:
        return gather(source.path)
    if source.remote is None or source.remote.kind == ARCHIVE:
        raise TransferError("an archive tells nothing before it is fetched")
    return gather(hub_headers.skeleton(cache, source.remote, hub))


def of_models(values: dict[str, Any]) -> dict[str, Any]:
    """The return values for the option `models`."""
    hub = Hub(values["hub_endpoint"], values["hub_token"])
    # An entry whose source cannot be used is reported by the store, once.
    sources, _problems = load_sources(values["models"])
    facts, unknown = {}, {}
    for name, source in sources.items():
        if source.origin == NODE:
            continue
        try:
            facts[name] = of_source(source, Path(values["cache"]), hub).to_dict()
        except (TransferError, OSError) as error:
            unknown[name] = str(error)
    problems = [
        Problem(
            f"models.{name}",
            f"whether it fits is unknown before it is fetched: {reason}. Check that it fits, and set "
            "model_store_allow_unplanned: true",
        )
        for name, reason in unknown.items()
    ]
    return {"facts": facts, "unknown": unknown, "problems": [str(problem) for problem in problems]}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "directories": {"type": "dict"},
            "models": {"type": "dict"},
            "hub_endpoint": {"type": "str", "default": "https://huggingface.co"},
            "hub_token": {"type": "str", "default": "", "no_log": True},
            "cache": {"type": "path"},
        },
        required_one_of=[("directories", "models")],
        required_by={"models": ("cache",)},
        supports_check_mode=True,
    )
    result: dict[str, Any] = {}
    if module.params["directories"] is not None:
        result["ansible_facts"] = {"model_facts": of_directories(module)}
    if module.params["models"] is not None:
        result |= of_models(module.params)
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
