#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: model_remote_facts
short_description: Gather facts of models before they are on a node
version_added: 0.1.0
description:
  - Tells what models are that a node does not have yet, so that it can be planned whether they fit. Of a hub's model,
    the configurations and the headers of the weights are fetched, by HTTP range, and kept in a cache. Of a model in a
    directory on this machine, they are read.
  - What an archive holds, nobody can tell before it is fetched. A path on the node is the node's to read.
  - Runs on the controller; delegate it to V(localhost). Changes nothing but its own cache.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  models:
    description: Entries of the model registry by name. Only their keys C(model), C(revision) and C(checksum) are read.
    type: dict
    required: true
  hub_endpoint:
    description: The hub, or a mirror of it.
    type: str
    default: https://huggingface.co
  hub_token:
    description: A token for models that not everybody may have.
    type: str
    default: ""
  cache:
    description: A directory that keeps what was fetched. A commit never changes, so it is asked for once.
    type: path
    required: true
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - The cache is written in check mode, too.
  diff_mode:
    support: none
seealso:
  - module: baremetal.inference.model_facts
  - module: baremetal.inference.engine_estimate
"""

EXAMPLES = r"""
- name: See what the models are that have still to be fetched
  baremetal.inference.model_remote_facts:
    models: "{{ models }}"
    cache: ~/.cache/baremetal-inference/plans
  delegate_to: localhost
  become: false
  register: remote
"""

RETURN = r"""
facts:
  description: The facts of each model that something tells of, with the keys of M(baremetal.inference.model_facts).
  returned: success
  type: dict
unknown:
  description: Why nothing is known of the others, by name.
  returned: success
  type: dict
  sample:
    qwen3-8b: an archive tells nothing before it is fetched
problems:
  description: The same as refusals, each with what to do.
  returned: success
  type: list
  elements: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import Problem
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts, gather
from ansible_collections.baremetal.inference.plugins.module_utils.store import plan_cache
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.hub import Hub
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.remote import ARCHIVE
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.transfer import TransferError
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import (
    CONTROLLER,
    NODE,
    Source,
    load_sources,
)


def look(source: Source, cache: Path, hub: Hub) -> ModelFacts:
    """The facts of a model. Raises TransferError where nothing tells them, and OSError."""
    if source.origin == CONTROLLER:
        return gather(source.path)
    if source.remote is None or source.remote.kind == ARCHIVE:
        raise TransferError("an archive tells nothing before it is fetched")
    return gather(plan_cache.skeleton(cache, source.remote, hub))


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "models": {"type": "dict", "required": True},
            "hub_endpoint": {"type": "str", "default": "https://huggingface.co"},
            "hub_token": {"type": "str", "default": "", "no_log": True},
            "cache": {"type": "path", "required": True},
        },
        supports_check_mode=True,
    )
    values = module.params
    hub = Hub(values["hub_endpoint"], values["hub_token"])
    # An entry whose source cannot be used is reported by the store, once.
    sources, _problems = load_sources(values["models"])
    facts, unknown = {}, {}
    for name, source in sources.items():
        if source.origin == NODE:
            continue
        try:
            facts[name] = look(source, Path(values["cache"]), hub).to_dict()
        except (TransferError, OSError) as error:
            unknown[name] = str(error)
    problems = [
        Problem(
            f"models.{name}",
            f"nobody can tell whether it fits before it is fetched: {reason}. Make sure of it yourself, and set "
            "model_store_allow_unplanned: true",
        )
        for name, reason in unknown.items()
    ]
    module.exit_json(changed=False, facts=facts, unknown=unknown, problems=[str(problem) for problem in problems])


if __name__ == "__main__":
    main()
