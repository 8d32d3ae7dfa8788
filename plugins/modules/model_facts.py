#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: model_facts
short_description: Read facts of models, from directories or from remote sources
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Reads C(config.json), the index and the headers of the weights, never the weights. A model of 140 GB takes a
    fraction of a second. Changes nothing.
  - Never fails for a broken model. Its C(problems) list what is wrong, and all other facts are still returned.
  - Unknown values are null. Every model always has every key.
  - For O(models), reads sources in a directory on this machine. From a hub, fetches only configurations and headers of
    the weights, by HTTP range, and keeps them in O(cache). An archive cannot be read before it is fetched. Sources in
    a directory on the node are skipped.
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
      - The directories to read on the machine on which the module runs, by a name for each.
      - The fact has exactly these names. It replaces the fact of an earlier call.
    type: dict
  models:
    description:
      - Entries of the model registry by name. The module reads their remote sources and their sources on the
        controller, so delegate the module to V(localhost). Of an entry, only C(model), C(revision), C(checksum) and
        C(adapter) are read.
      - An entry with C(adapter) is a LoRA adapter, with the facts C(rank), C(base), C(layers), C(shapes) and
        C(problems).
    type: dict
  hub_endpoint:
    description: The hub, or a mirror of the hub, for O(models).
    type: str
    default: https://huggingface.co
  hub_token:
    description: A token for models behind a licence.
    type: str
    default: ""
  cache:
    description:
      - A directory for the fetched files of O(models), required with O(models). A commit never changes, so each file is
        fetched only once.
    type: path
seealso:
  - module: baremetal.inference.model
  - module: baremetal.inference.engine_plan
"""

EXAMPLES = r"""
- name: Read two models
  baremetal.inference.model_facts:
    directories:
      tiny-a: /mnt/models/tiny-a/ab12cd34ef56
      qwen3-8b: /srv/models/Qwen3-8B

- name: Fail for a broken or incomplete model
  ansible.builtin.assert:
    that: item.value.problems | length == 0
    fail_msg: "{{ item.key }}: {{ item.value.problems }}"
  loop: "{{ ansible_facts.model_facts | dict2items }}"
  loop_control:
    label: "{{ item.key }}"

- name: Read the facts of models that the node must fetch
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
  returned: if O(directories) is set
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
          description: Key-value heads of a layer.
          type: int
        head_size:
          description: Size of a head. With MLA, the values that the engine keeps of a token.
          type: int
        hidden_size:
          description: Size of the hidden state.
          type: int
        intermediate_size:
          description: Inner size of the dense feed-forward layers.
          type: int
        vocabulary_size:
          description: Tokens of the vocabulary.
          type: int
        max_positions:
          description: Number of positions in C(config.json).
          type: int
        max_length:
          description: The longest request that the engine can take, in tokens, with rope scaling and the limit of
            Sentence Transformers.
          type: int
        default_length:
          description: >-
            The longest request in tokens if C(max-model-len) is not set. For longrope, less than C(max_length).
          type: int
        rope:
          description: Rope scaling; null if the configuration has none.
          type: dict
          contains:
            type:
              description: The kind, such as V(llama3), V(yarn), V(linear), V(dynamic) or V(longrope).
              type: str
            factor:
              description: The factor.
              type: float
            original_max_positions:
              description: Number of positions without scaling.
              type: int
        sliding_window:
          description: Tokens in the sliding window of layers; null if there is none, or it is not used.
          type: int
        attention:
          description: Number of layers by what they keep of a request; null if unknown.
          type: dict
          contains:
            full_layers:
              description: Layers that keep every token.
              type: int
            sliding_layers:
              description: Layers that keep the sliding window.
              type: int
            state_layers:
              description: Layers that keep a state of constant size. A layer that also keeps tokens counts in both.
              type: int
            other_layers:
              description: Layers that keep something of unknown size.
              type: int
        full_heads:
          description: Heads in the cache of layers that keep every token; null if they are C(kv_heads) of C(head_size).
          type: dict
          contains:
            count:
              description: The number of heads.
              type: int
            size:
              description: The size of each head.
              type: int
        sliding_heads:
          description: Heads in the cache of layers with a sliding window; null as for C(full_heads).
          type: dict
          contains:
            count:
              description: The number of heads.
              type: int
            size:
              description: The size of each head.
              type: int
        state:
          description: The state that one layer keeps of a request in place of tokens, in values; null if no layer has a
            state, or its form is unknown.
          type: dict
          contains:
            convolution:
              description: Values of the convolution.
              type: int
            recurrence:
              description: Values of the recurrence.
              type: int
            dtype:
              description: The dtype of the recurrence; null for the engine's default.
              type: str
        mla:
          description: Multi-head latent attention; null if the model has none.
          type: dict
          contains:
            kv_lora_rank:
              description: Size of the latent vector that is kept for a token.
              type: int
            qk_rope_head_dim:
              description: Size of the key with positions that is kept for a token.
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
          description: Mixture of experts; null if the model has none.
          type: dict
          contains:
            count:
              description: Experts of a layer.
              type: int
            per_token:
              description: Experts that process a token.
              type: int
            intermediate_size:
              description: Inner size of an expert.
              type: int
            shared_intermediate_size:
              description: Inner size of all shared experts together, which process every token.
              type: int
            layers:
              description: Layers that have experts.
              type: int
        dtype:
          description: The dtype of computations, from the configuration, or else from the weights.
          type: str
          sample: bfloat16
        quantization:
          description: The quantization of the weights; null if they are not quantized.
          type: dict
          contains:
            method:
              description: The engine's name of the method; empty if the configuration has none.
              type: str
              sample: fp8
            bits:
              description: Bits per weight.
              type: int
            group_size:
              description: Weights that share a scale.
              type: int
            block:
              description: Rows and columns of a block that shares a scale.
              type: list
              elements: int
        tied_embeddings:
          description: Whether the head shares the weights of the embedding; null if unknown.
          type: bool
        modalities:
          description: The inputs of the model other than text.
          type: list
          elements: str
          sample: [vision]
        tower_parameters:
          description: Parameters of the parts for images and sounds; 0 if there are none, null if a size is unknown.
          type: int
        labels:
          description: The number of classes of a classifier; null if the configuration has none.
          type: int
        weights:
          description: The weights as the engine loads them; null if there are no files to read.
          type: dict
          contains:
            bytes:
              description: Bytes of the tensors that are loaded, each counted once.
              type: int
            parameters:
              description: Number of weights. Packed quantized weights count unpacked, and scales do not count.
              type: int
            by_dtype:
              description: Bytes by the dtype of the files.
              type: dict
              sample: {BF16: 16060522496}
            unused_bytes:
              description: Bytes in the files that are not loaded, such as layers for speculative decoding.
              type: int
            measured:
              description: Whether files were read. Always true for this module.
              type: bool
            parts:
              description: Bytes by the way in which they are split over GPUs.
              type: dict
              contains:
                embedding:
                  description: The embedding.
                  type: int
                head:
                  description: The head; 0 if it shares the weights of the embedding.
                  type: int
                layers:
                  description: Each layer of the language part.
                  type: list
                  elements: int
                replicated:
                  description: Bytes of all layers that each tensor-parallel rank holds completely.
                  type: int
                kv_projections:
                  description: Bytes of all layers that can only be split by KV heads.
                  type: int
                experts:
                  description: Bytes of all layers that belong to experts.
                  type: int
                rest:
                  description: Bytes outside of the layers, with the parts for images and sounds.
                  type: int
        shards:
          description: The files with the weights.
          type: list
          elements: str
        missing_shards:
          description: Files that the index names but that are missing.
          type: list
          elements: str
        cut_shards:
          description: Files that are shorter than their header requires.
          type: list
          elements: str
        tokenizer:
          description: The file with the tokenizer; null if there is none.
          type: str
          sample: tokenizer.json
        chat_template:
          description: The file with the chat template; null if there is none.
          type: str
          sample: chat_template.jinja
        remote_code:
          description: Files that refer to Python code of the model.
          type: list
          elements: str
          sample: [config.json]
        pooled:
          description: Whether C(modules.json) of Sentence Transformers defines how vectors are pooled. Such a model is
            served for its vectors.
          type: bool
        revision:
          description: The revision in the store's manifest, which comes from the hashes of all files; null if there is
            no manifest. The files are not hashed again.
          type: str
          sample: ab12cd34ef56
        problems:
          description: The problems of the model.
          type: list
          elements: dict
          contains:
            file:
              description: The file, relative to the directory; empty for the directory itself.
              type: str
              sample: model-00003-of-00004.safetensors
            message:
              description: What is wrong, and what to do.
              type: str
              sample: "is cut: expected 5,000 bytes, found 4,100 (900 missing); fetch it again"
facts:
  description: >-
    The facts of each entry in O(models) whose source can be read, with the keys of RV(ansible_facts.model_facts).
  returned: if O(models) is set
  type: dict
unknown:
  description: Why sources of O(models) cannot be read, by the entry's name.
  returned: if O(models) is set
  type: dict
  sample:
    qwen3-8b: an archive cannot be read before it is fetched
problems:
  description: The reasons of RV(unknown) as error messages, each with what to do.
  returned: if O(models) is set
  type: list
  elements: str
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import Problem
from ansible_collections.baremetal.inference.plugins.module_utils.models import adapter_facts
from ansible_collections.baremetal.inference.plugins.module_utils.models.adapter_facts import AdapterFacts
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts, gather
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.adapters import is_adapter
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
    """The facts of models in directories of this machine. Fails for a directory that is no path."""
    directories = module.params["directories"]
    wrong = [f"{name}: {path!r}" for name, path in directories.items() if not isinstance(path, str) or not path]
    if wrong:
        module.fail_json(msg=f"directories: must be paths: {', '.join(wrong)}")
    return {name: gather(Path(path)).to_dict() for name, path in directories.items()}


def of_source(source: Source, cache: Path, hub: Hub, adapter: bool) -> ModelFacts | AdapterFacts:
    """The facts of a model or adapter. Raises TransferError if the source cannot be read, and OSError."""
    read = adapter_facts.gather if adapter else gather
    if source.origin == CONTROLLER:
        return read(source.path)
    if source.remote is None or source.remote.kind == ARCHIVE:
        raise TransferError("an archive cannot be read before it is fetched")
    return read(hub_headers.skeleton(cache, source.remote, hub))


def of_models(values: dict[str, Any]) -> dict[str, Any]:
    """The return values of the option `models`."""
    hub = Hub(values["hub_endpoint"], values["hub_token"])
    # Problems are ignored here: the module model reports unusable sources.
    sources, _problems = load_sources(values["models"])
    facts, unknown = {}, {}
    for name, source in sources.items():
        if source.origin == NODE:
            continue
        try:
            facts[name] = of_source(source, Path(values["cache"]), hub, is_adapter(values["models"][name])).to_dict()
        except (TransferError, OSError) as error:
            unknown[name] = str(error)
    problems = [
        Problem(
            f"models.{name}",
            f"cannot check that the model fits before it is fetched: {reason}. Check by hand that it fits, then set "
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
