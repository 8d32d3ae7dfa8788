#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: model_removal
short_description: Remove models from the store of a node that does not serve them any more
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Removes every revision of models, with their fast copies, that no kept release, unit or container needs. Other than
    M(baremetal.inference.model_clean), it does so with the newest as well.
  - What the store has not published itself stays. Where it cannot tell what is needed, and where the store lies on a
    file system that other nodes may have, too, it fails and removes nothing.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  store:
    description: The root of the store.
    type: path
    required: true
  fast_path:
    description: The root of the fast copies; empty for none.
    type: str
    default: ""
  models:
    description: The models, by their names in the store.
    type: list
    elements: str
    default: []
  everything:
    description: All models, what was on its way, and the directories, as far as nothing else is in them.
    type: bool
    default: false
  leaving:
    description: Instances whose releases need nothing any more, for in a run outside check mode they are gone by now.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Remove a model that nobody serves
  baremetal.inference.model_removal:
    store: /mnt/models
    models: [qwen3-8b]
"""

RETURN = r"""
freed_gib:
  description: How much space is freed, or would be in check mode, in GiB.
  returned: success
  type: float
removed:
  description: The directories that went, or would in check mode.
  returned: success
  type: list
  elements: str
kept:
  description: What stayed of the models, and who needs it.
  returned: success
  type: list
  elements: str
"""

import json
import shutil
from collections.abc import Collection
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths, container_name
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.core.sizes import GIB
from ansible_collections.baremetal.inference.plugins.module_utils.debian.block_devices import read_mounts
from ansible_collections.baremetal.inference.plugins.module_utils.store import clean, references
from ansible_collections.baremetal.inference.plugins.module_utils.store.clean import Cleaning
from ansible_collections.baremetal.inference.plugins.module_utils.store.fast import COPIES, FastStore
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import INCOMING


def empty(path: Path) -> bool:
    """Whether a directory is there that holds nothing."""
    return path.is_dir() and not path.is_symlink() and not any(path.iterdir())


def tidy(root: Path, *, everything: bool) -> None:
    """Remove the directories of models that have no revision any more, and all of ours if nothing else is left."""
    if everything:
        for own in (root / INCOMING, root / COPIES):
            shutil.rmtree(own, ignore_errors=True)
    for path in root.iterdir() if root.is_dir() else ():
        if empty(path):
            path.rmdir()
    if everything and empty(root) and not root.is_mount():
        root.rmdir()


def without_containers(text: str, instances: Collection[str]) -> str:
    """What Docker tells of all containers but those of some instances. Raises ValueError."""
    gone = {f"/{container_name(name)}" for name in instances}
    found = json.loads(text) if text and gone else []
    return json.dumps([one for one in found if one.get("Name") not in gone]) if found else text


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "store": {"type": "path", "required": True},
            "fast_path": {"type": "str", "default": ""},
            "models": {"type": "list", "elements": "str", "default": []},
            "everything": {"type": "bool", "default": False},
            "leaving": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    values, paths = module.params, Paths()
    store = Path(values["store"])
    roots = [store, *([Path(values["fast_path"])] if values["fast_path"] else [])]
    fast = FastStore(roots[1], store, HashCache()) if len(roots) > 1 else None
    cleaning = Cleaning(store, fast)
    chosen = None if values["everything"] else values["models"]
    try:
        clean.check(store.resolve(), 1, read_mounts(paths.root / "proc"))
        text = references.containers(module.run_command, module.get_bin_path("docker"))
        text = without_containers(text, values["leaving"])
        cleaning.plan(0, references.of_node(paths, text, values["leaving"]), text, chosen)
        if not module.check_mode:
            cleaning.apply()
            for root in roots:
                tidy(root, everything=values["everything"] and not cleaning.kept)
    except (InputError, ValueError, OSError) as error:
        module.fail_json(msg=f"Models of the store {store} cannot be removed: {error}")
    removed = [str(item.path) for item in cleaning.freed]
    module.exit_json(
        changed=bool(removed),
        freed_gib=round(sum(item.bytes for item in cleaning.freed) / GIB, 3),
        removed=removed,
        kept=[f"{item.path}: {item.why}" for item in cleaning.kept],
        diff={"before": "".join(f"{path}\n" for path in removed), "after": ""},
    )


if __name__ == "__main__":
    main()
