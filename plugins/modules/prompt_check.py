#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: prompt_check
short_description: Check whether models can carry their system prompts, before anything changes
version_added: 0.1.0
description:
  - Looks at the files of the models that instances serve with a C(system-prompt). Fails with every one whose chats the
    engine writes without a chat template, or that has none, and names the way out.
  - Of a model whose files are not on this machine, nothing is known and nothing is said. Reads only.
  - Whether a template takes the very prompt, M(baremetal.inference.model_variants) tries.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  origin:
    description:
      - Which models to look at, those whose C(model) begins with C(controller:), or all others.
      - The module looks at the machine it runs on. Delegate it to the controller for V(controller).
    type: str
    choices: [controller, node]
    default: node
  store:
    description: The root of the node's store, where models may be published already.
    type: path
extends_documentation_fragment:
  - baremetal.inference.registry
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
seealso:
  - module: baremetal.inference.model_variants
"""

EXAMPLES = r"""
- name: Check the prompts of the models on the controller
  baremetal.inference.prompt_check:
    instances: "{{ instances }}"
    models: "{{ models }}"
    origin: controller
  delegate_to: localhost
  become: false
"""

RETURN = r"""
checked:
  description: The registry's entries whose model was looked at.
  returned: success
  type: list
  elements: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError, Problem
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import served_entries
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags import catalogue
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry import entries
from ansible_collections.baremetal.inference.plugins.module_utils.store import stored, variants
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import CONTROLLER, NODE, PREFIX


def directory(entry: entries.Entry, origin: str, store: Path | None) -> Path | None:
    """Where the files of an entry's model can be read on this machine; None where they cannot, or another has them."""
    from_controller = entry.model.startswith(PREFIX)
    if from_controller != (origin == CONTROLLER):
        return None
    if from_controller:
        return Path(entry.model.removeprefix(PREFIX))
    return stored.find(store or Path("/nonexistent"), entry).files


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "instances": {"type": "list", "elements": "dict", "required": True},
            "models": {"type": "dict", "required": True},
            "origin": {"type": "str", "choices": [CONTROLLER, NODE], "default": NODE},
            "store": {"type": "path"},
        },
        supports_check_mode=True,
    )
    # Mistakes in the registry itself are reported by engine_plan, which knows the engine's version.
    registry = entries.read(module.params["models"], catalogue.choose(""))
    store = Path(module.params["store"]) if module.params["store"] else None
    checked: list[str] = []
    problems: list[Problem] = []
    try:
        for entry in served_entries(module.params["instances"], registry.entries):
            root = directory(entry, module.params["origin"], store) if entry.system_prompt is not None else None
            # One that is missing is reported with the models.
            if root and root.is_dir():
                checked.append(entry.name)
                problems += variants.check_model(entry, root)
    except OSError as error:
        module.fail_json(msg=str(error))
    if problems:
        module.fail_json(msg=f"Nothing was changed. {InputError(problems)}")
    module.exit_json(changed=False, checked=checked)


if __name__ == "__main__":
    main()
