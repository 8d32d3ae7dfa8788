#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: model_publish
short_description: Publish verified models in the store of a node
version_added: 0.1.0
description:
  - Compares the store with what it shall hold, and says what has to be copied and whether it fits.
  - Verifies what was copied by SHA-256 and publishes each model under C(STORE/NAME/REVISION) by one rename, so that a
    model that is not complete can never be served. Models from a directory on the node are copied as well.
  - A published revision is never modified. One that was damaged is replaced as a whole; its intact files are linked,
    so that only the damaged ones are copied again.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  store:
    description: The root of the store.
    type: path
    required: true
  models:
    description: Entries of the model registry by name. Only their keys C(model), C(revision) and C(checksum) are read.
    type: dict
    required: true
  manifests:
    description:
      - The manifests of the models from the controller, as M(baremetal.inference.model_manifest) returns them.
    type: dict
    default: {}
  state:
    description:
      - V(planned) only compares. It returns problems instead of failing, and publishes nothing.
      - V(published) publishes what is not published yet. What comes from the controller must lie in the incoming
        directory that V(planned) has named.
    type: str
    choices: [planned, published]
    default: published
  other_space:
    description:
      - Space in GiB that others will take on the node, by directory. What lies on the store's file system is not there
        for models.
    type: dict
    default: {}
  reserve_gib:
    description: Space in GiB that stays free on the store's file system.
    type: float
    default: 0
  cache:
    description:
      - A file that keeps checksums by path, size, modification time and inode, so that a second run reads nothing.
      - Without it every file is read. In check mode it is read, but not written.
    type: path
  verify:
    description: Read every published file again, whatever the cache says.
    type: bool
    default: false
  hub_endpoint:
    description: The hub, or a mirror of it, that is asked how large a model is that is still to be fetched from there.
    type: str
    default: https://huggingface.co
  hub_token:
    description: Who asks; empty for nobody in particular.
    type: str
    default: ""
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
seealso:
  - module: baremetal.inference.model_fetch
  - module: baremetal.inference.model_manifest
"""

EXAMPLES = r"""
- name: Compare the store with the models of this node
  baremetal.inference.model_publish:
    store: /mnt/models
    models: "{{ models }}"
    manifests: "{{ controller.manifests }}"
    state: planned
  register: plan

- name: Publish what has arrived
  baremetal.inference.model_publish:
    store: /mnt/models
    models: "{{ models }}"
    manifests: "{{ controller.manifests }}"
"""

RETURN = r"""
catalog:
  description: Where each model lies, or will lie, by name; as revision C(REVISION) where one has to be fetched.
  returned: success
  type: dict
  sample:
    tiny-a:
      path: /mnt/models/tiny-a/ab12cd34ef56
      revision: ab12cd34ef56
      weight_bytes: 1315328
      bytes: 1318123
coming:
  description:
    - The revision of each model that was not in the store yet, or no longer intact, by name; C(REVISION) where it has
      to be fetched.
  returned: success
  type: dict
  sample:
    tiny-a: ab12cd34ef56
transfers:
  description: The models that are not published yet, or no longer intact.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The model.
      type: str
    origin:
      description: Where it comes from, C(controller) or C(node).
      type: str
    source:
      description: Its directory there.
      type: str
    incoming:
      description: The directory on the node that the files have to be copied to.
      type: str
    files:
      description: How many files have to be copied.
      type: int
    bytes:
      description: How many bytes have to be copied.
      type: int
    rsync_opts:
      description: Options that let rsync copy these files and nothing else.
      type: list
      elements: str
    summary:
      description: The same for people.
      type: str
    damage:
      description: What is wrong with the published revision; empty where there is none.
      type: list
      elements: str
copies:
  description: The items of RV(transfers) with files to copy from the controller.
  returned: success
  type: list
  elements: dict
fetches:
  description: The models that have to be fetched from the network first, by M(baremetal.inference.model_fetch).
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The model.
      type: str
    hub:
      description: Whether it comes from a hub, by the client in the engine's image.
      type: bool
    source:
      description: Its URL or its name on the hub.
      type: str
    summary:
      description: The same for people, with the bytes that are needed.
      type: str
remotes:
  description: The models that come from the network, by name.
  returned: success
  type: dict
  contains:
    key:
      description: Names the content, wherever it is fetched from.
      type: str
    revision:
      description: The revision that is published and intact; empty where none is.
      type: str
problems:
  description: Everything that stands in the way, each with what was found and what to do.
  returned: success
  type: list
  elements: str
rsync:
  description: Path of rsync on the node; empty where it is not installed.
  returned: success
  type: str
  sample: /usr/bin/rsync
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError, Problem
from ansible_collections.baremetal.inference.plugins.module_utils.core.sizes import GIB, human
from ansible_collections.baremetal.inference.plugins.module_utils.models.manifest import Manifest
from ansible_collections.baremetal.inference.plugins.module_utils.store import fetch
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache, hash_cache
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.hub import Hub
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.remote import HUB, Remote, fetched
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.transfer import TransferError
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import (
    CONTROLLER,
    NODE,
    Plan,
    Source,
    Store,
    build_manifests,
    check_place,
    check_space,
    load_sources,
    same_file_system,
)
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored import NOT_KNOWN

PUBLISHED = "published"


class Publisher:
    """Plans and publishes the models of one node."""

    def __init__(self, module: AnsibleModule, cache: HashCache) -> None:
        self.module = module
        self.root = Path(module.params["store"])
        self.store = Store(self.root, cache, module.params["verify"])
        self.cache = cache
        self.sources: dict[str, Source] = {}
        self.fetches: list[dict[str, Any]] = []
        """The models to fetch from the network: items of the return value `fetches`."""
        self.remotes: dict[str, dict[str, str]] = {}
        """The return value `remotes`."""

    def plan(self) -> tuple[list[Plan], list[Problem]]:
        """What is there and what is to come, and all problems of all models."""
        params = self.module.params
        self.sources, problems = load_sources(params["models"])
        manifests: dict[str, Manifest] = {}
        local: dict[str, Source] = {}
        missing: dict[str, int] = {}
        there: list[Plan] = []
        for name, source in self.sources.items():
            if source.remote:
                manifest = fetched(self.root / name, source.remote)
                plan = self.store.plan(name, manifest) if manifest else None
                held = plan.manifest.revision if plan and plan.published else ""
                self.remotes[name] = {"key": source.remote.key, "revision": held}
                if plan and held:
                    there.append(plan)
                    continue
                try:
                    missing[name] = self._fetch(name, source.remote)
                except TransferError as error:
                    problems.append(Problem(f"models.{name}", str(error)))
            elif source.origin == NODE:
                misplaced = check_place(self.root, name, source.path)
                problems += misplaced
                if not misplaced:
                    local[name] = source
            elif name in params["manifests"]:
                try:
                    manifests[name] = Manifest.from_dict(params["manifests"][name])
                except ValueError as error:
                    problems.append(Problem(f"manifests.{name}", str(error)))
            elif params["state"] == PUBLISHED:
                problems.append(Problem(f"manifests.{name}", "is missing: the model comes from the controller"))
        found, more = build_manifests(local, params["models"], self.cache)
        problems += more
        plans = [*there, *(self.store.plan(name, manifest) for name, manifest in {**manifests, **found}.items())]
        others = sum(
            float(gib) for path, gib in params["other_space"].items() if same_file_system(self.root, Path(path))
        )
        missing |= {plan.name: plan.missing_bytes for plan in plans}
        problems += check_space(self.root, missing, round((params["reserve_gib"] + others) * GIB))
        return plans, problems

    def _fetch(self, name: str, remote: Remote) -> int:
        """Note that a model has to be fetched. Returns the bytes that this needs. Raises TransferError."""
        if self.module.params["state"] == PUBLISHED and not self.module.check_mode:
            raise TransferError(f"{remote.location} was not fetched: run the role again")
        hub = Hub(self.module.params["hub_endpoint"], self.module.params["hub_token"])
        needed = fetch.needed(remote, fetch.workplace(self.root, name, remote), hub)
        summary = f"{name} from {remote.location}: {human(needed)} to fetch"
        self.fetches.append({"name": name, "hub": remote.kind == HUB, "source": remote.location, "summary": summary})
        return needed

    def publish(self, plans: list[Plan]) -> None:
        """Publish what is not published. Raises InputError with the problems of all models."""
        problems: list[Problem] = []
        for plan in plans:
            source = self.sources[plan.name]
            try:
                self.store.publish(plan, source.path if source.origin == NODE else None)
            except InputError as error:
                problems += error.problems
        if problems:
            raise InputError(problems)

    def transfer(self, plan: Plan) -> dict[str, Any]:
        """One item of the return value `transfers`."""
        source = self.sources[plan.name]
        return {
            "name": plan.name,
            "origin": source.origin,
            "source": str(source.path),
            "incoming": str(plan.incoming),
            "files": len(plan.missing),
            "bytes": plan.missing_bytes,
            "rsync_opts": plan.filters() if source.origin == CONTROLLER else [],
            "summary": plan.summary,
            "damage": list(plan.damage),
        }


def catalog(plans: list[Plan], root: Path, fetches: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The return value `catalog`."""
    unknown = {"revision": NOT_KNOWN, "weight_bytes": 0, "bytes": 0}
    return {item["name"]: {"path": str(root / item["name"] / NOT_KNOWN), **unknown} for item in fetches} | {
        plan.name: {
            "path": str(plan.path),
            "revision": plan.manifest.revision,
            "weight_bytes": plan.manifest.weight_bytes,
            "bytes": plan.manifest.bytes,
        }
        for plan in plans
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "store": {"type": "path", "required": True},
            "models": {"type": "dict", "required": True},
            "manifests": {"type": "dict", "default": {}},
            "state": {"type": "str", "choices": ["planned", PUBLISHED], "default": PUBLISHED},
            "other_space": {"type": "dict", "default": {}},
            "reserve_gib": {"type": "float", "default": 0},
            "hub_endpoint": {"type": "str", "default": "https://huggingface.co"},
            "hub_token": {"type": "str", "default": "", "no_log": True},
            "cache": {"type": "path"},
            "verify": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    cache_path = Path(module.params["cache"]) if module.params["cache"] else None
    publishes = module.params["state"] == PUBLISHED
    try:
        with hash_cache(cache_path, read_only=module.check_mode) as cache:
            publisher = Publisher(module, cache)
            plans, problems = publisher.plan()
            coming = [plan for plan in plans if not plan.published]
            transfers = [publisher.transfer(plan) for plan in coming]
            if publishes and problems:
                raise InputError(problems)
            if publishes and not module.check_mode:
                publisher.publish(coming)
    except InputError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"The store {module.params['store']}: {error}")
    for plan in coming if publishes else []:
        for damage in plan.damage:
            module.warn(f"{damage}; the whole revision is replaced by an intact one")
    places = catalog(plans, publisher.root, publisher.fetches)
    module.exit_json(
        changed=publishes and bool(coming),
        catalog=places,
        coming={item["name"]: places[item["name"]]["revision"] for item in [*transfers, *publisher.fetches]},
        transfers=transfers,
        fetches=publisher.fetches,
        remotes=publisher.remotes,
        copies=[item for item in transfers if item["origin"] == CONTROLLER and item["files"]],
        problems=[str(problem) for problem in problems],
        rsync=module.get_bin_path("rsync") or "",
        diff={"before": "", "after": "".join(f"{plan.path}\n" for plan in coming)},
    )


if __name__ == "__main__":
    main()
