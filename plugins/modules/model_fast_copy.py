#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: model_fast_copy
short_description: Copy models of the store to a faster disk
version_added: 0.1.0
description:
  - Copies published revisions of the store to a faster disk, and verifies the copies by SHA-256. The link
    C(FAST/NAME/REVISION) leads to the complete copy, or else to the store.
  - Engines always use the path of the link, so that a new or removed copy needs no new release. A copy that does not
    fit is a warning, not a failure.
  - Other copies stay until their space is needed. Then the least recently used copy is removed first, but never a copy
    that a kept release, an installed unit or a container uses.
  - If O(fast_path) is on the store's file system, nothing is copied, and all links lead to the store.
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  store:
    description: The root of the store.
    type: path
    required: true
  fast_path:
    description: The root of the copies.
    type: path
    required: true
  places:
    description:
      - The models to copy, in this order, with their places in the store as M(baremetal.inference.model) returns them.
    type: dict
    required: true
  state:
    description:
      - V(planned) only compares. V(present) copies, removes copies, and sets links.
    type: str
    choices: [planned, present]
    default: present
  limit_gib:
    description: The largest size of all copies in GiB; 0 for as much as fits.
    type: float
    default: 0
  reserve_gib:
    description: Space in GiB to keep free on the faster disk.
    type: float
    default: 0
  cache:
    description: A file with checksums, as in M(baremetal.inference.model).
    type: path
  verify:
    description: Read every copy again, without the cache.
    type: bool
    default: false
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - For a model that is not in the store yet, check mode cannot check whether its copy will fit.
  diff_mode:
    support: full
seealso:
  - module: baremetal.inference.model
  - module: baremetal.inference.model_variants
"""

EXAMPLES = r"""
- name: Copy the models of this node to NVMe
  baremetal.inference.model_fast_copy:
    store: /mnt/models
    fast_path: /mnt/nvme/workspace/models
    places: "{{ model_store_places }}"
    limit_gib: 500
"""

RETURN = r"""
due:
  description: Whether the module changed, or would change, anything.
  returned: success
  type: bool
complete:
  description: The links that lead to a complete copy.
  returned: success
  type: list
  elements: str
  sample: [/mnt/nvme/workspace/models/tiny-a/ab12cd34ef56]
copied:
  description: The links whose copy was made, or would be in check mode.
  returned: success
  type: list
  elements: str
dropped:
  description: The links whose copy was removed, or would be in check mode.
  returned: success
  type: list
  elements: str
notes:
  description: Why a model is served from the store, or why no copy is removed. The module also warns of each reason.
  returned: success
  type: list
  elements: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.core.sizes import GIB
from ansible_collections.baremetal.inference.plugins.module_utils.store import references
from ansible_collections.baremetal.inference.plugins.module_utils.store.fast_copy import FastStore, Room
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache, hash_cache
from ansible_collections.baremetal.inference.plugins.module_utils.store.references import Revision
from ansible_collections.baremetal.inference.plugins.module_utils.store.space import same_file_system

PLANNED = "planned"


class Copier:
    """Copies the models of one node."""

    def __init__(self, module: AnsibleModule, cache: HashCache) -> None:
        values = module.params
        self._module = module
        self._store, root = Path(values["store"]), Path(values["fast_path"])
        self._fast = FastStore(root, self._store, cache, values["verify"])
        copies = not same_file_system(root, self._store)
        self._room = Room(round(values["limit_gib"] * GIB), round(values["reserve_gib"] * GIB), copies)

    def bring(self, plans: bool) -> tuple[bool, dict[str, list[str]], list[str]]:
        """Copy missing revisions. Returns whether there were changes, the links by their result, and notes.

        Raises InputError and OSError.
        """
        paths = [Path(stored["path"]) for stored in self._module.params["places"].values()]
        wanted = [(path.parent.name, path.name) for path in paths if path.parent.parent == self._store]
        notes: list[str] = []
        outlook = self._fast.outlook(wanted, self._needed(wanted, notes), self._room)
        notes += outlook.notes
        made = [*outlook.plans, *outlook.unknown]
        due = outlook.changes
        if not plans:
            failed = self._fast.apply(outlook)
            notes += [
                f"{name} {number} has no fast copy and is served from the store: {reason}"
                for (name, number), reason in failed.items()
            ]
            made = [revision for revision in made if revision not in failed]
            due = bool(made or outlook.links or outlook.drops)
        found = {"complete": outlook.complete, "copied": made, "dropped": outlook.drops}
        return due, {key: [str(self._fast.place(each)) for each in found[key]] for key in found}, notes

    def _needed(self, wanted: list[Revision], notes: list[str]) -> dict[Revision, str] | None:
        """The copies that must stay, with the reason; None if unknown."""
        if not set(self._fast.held()) - set(wanted):
            return {}
        try:
            text = references.containers(self._module.run_command, self._module.get_bin_path("docker"))
            return references.with_bases(references.of_node(Paths(), text), self._store)
        except (InputError, OSError) as error:
            notes.append(f"no fast copy is removed, because it is unknown which are needed: {error}")
            return None


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "store": {"type": "path", "required": True},
            "fast_path": {"type": "path", "required": True},
            "places": {"type": "dict", "required": True},
            "state": {"type": "str", "choices": [PLANNED, "present"], "default": "present"},
            "limit_gib": {"type": "float", "default": 0},
            "reserve_gib": {"type": "float", "default": 0},
            "cache": {"type": "path"},
            "verify": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    planned = module.params["state"] == PLANNED
    cache_path = Path(module.params["cache"]) if module.params["cache"] else None
    try:
        with hash_cache(cache_path, read_only=module.check_mode) as cache:
            due, links, notes = Copier(module, cache).bring(module.check_mode or planned)
    except (InputError, ValueError) as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(
            msg=f"{error}: {module.params['fast_path']} must be a directory that can hold symbolic links. Correct "
            "model_store_fast_path, or set it to an empty text: then engines load their models from the store"
        )
    for note in notes:
        module.warn(note)
    before, after = ("".join(f"{path}\n" for path in links[key]) for key in ("dropped", "copied"))
    module.exit_json(
        changed=due and not planned, due=due, notes=notes, diff={"before": before, "after": after}, **links
    )


if __name__ == "__main__":
    main()
