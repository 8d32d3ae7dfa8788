#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: backup_restore
short_description: Restore a snapshot to a node, or compare them
version_added: 0.1.0
description:
  - Fetches a snapshot into a private directory, compares it with the node, and puts what differs in its place, each
    file in one step, with mode and owner. Owners are matched by name, for a new machine may have other numbers.
  - Nothing is deleted. What is replaced lies in RV(aside) until the next restore that replaces something has
    succeeded; what only the node has, stays. Where a file cannot be written, everything is put back.
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  snapshot:
    description: The snapshot, by the first characters of its id; V(latest) for the last one.
    type: str
    required: true
  host:
    description: Whose snapshot; the node's own, if empty.
    type: str
    default: ""
  paths:
    description: What is restored, as absolute paths with shell patterns; all that is saved, if empty.
    type: list
    elements: str
    default: []
  target:
    description: Where the one path is restored to, a directory or a new name; in its own place, if empty.
    type: str
    default: ""
  drill:
    description: Only compare. Nothing is changed.
    type: bool
    default: false
  serves:
    description:
      - Whether engines are to be started with what is restored. Nothing is restored then unless all that they need is
        on the node, but for images.
    type: bool
    default: false
  models:
    description:
      - The registry of today, as the inventory has it. By it, models are fetched that the snapshot's own does not have,
        such as one that was served for once.
    type: dict
    default: {}
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details:
      - Of files that not everybody may read, only that they differ.
"""

EXAMPLES = r"""
- name: Restore what the node serves
  baremetal.inference.backup_restore:
    snapshot: latest
    paths: [/etc/inference, /var/lib/inference, /etc/systemd/system/vllm@*.service]

- name: Compare the last backup with the node
  baremetal.inference.backup_restore:
    snapshot: latest
    drill: true
"""

RETURN = r"""
snapshot:
  description: The snapshot that was meant, with C(id), C(time), C(host) and C(machine).
  returned: success
  type: dict
files:
  description: How many files, links and directories of the snapshot were compared.
  returned: success
  type: int
differences:
  description: Where the node was not as the snapshot.
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: The path on the node.
      type: str
    differs:
      description: V(missing), V(kind), or some of V(content), V(target), V(mode) and V(owner).
      type: list
      elements: str
only_here:
  description: What only the node has. It stays.
  returned: success
  type: list
  elements: str
instances:
  description: The instances whose unit, environment or active release was restored.
  returned: success
  type: list
  elements: str
served:
  description: What each instance served when the snapshot was made.
  returned: success
  type: list
  elements: dict
  contains:
    instance:
      description: The instance.
      type: str
    release:
      description: The number of its release.
      type: int
    model:
      description: The model's name in the registry.
      type: str
    revision:
      description: The model's revision in the store.
      type: str
    path:
      description: Where the engine reads the model.
      type: str
    image:
      description: The engine's image.
      type: str
absent_models:
  description:
    - Entries of the registry of that time, or else of O(models), by name, of the models that are served and not on the
      node, with their bases. By them, the models can be fetched again.
  returned: success
  type: dict
absent_instances:
  description: The instances that served these, as the inventory would declare them.
  returned: success
  type: list
  elements: dict
aside:
  description: Where that lies which was replaced; empty where nothing was.
  returned: success
  type: str
recorded:
  description: The versions that the node had, C(debian), C(kernel) and C(nvidia_driver).
  returned: success
  type: dict
"""

import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.backup import (
    jobs,
    record,
    restic,
    restore,
    serving,
    staging,
)
from ansible_collections.baremetal.inference.plugins.module_utils.backup.places import Places
from ansible_collections.baremetal.inference.plugins.module_utils.backup.settings import Settings


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "snapshot": {"type": "str", "required": True},
            "host": {"type": "str", "default": ""},
            "paths": {"type": "list", "elements": "str", "default": []},
            "target": {"type": "str", "default": ""},
            "drill": {"type": "bool", "default": False},
            "serves": {"type": "bool", "default": False},
            "models": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    places, params = Places(), module.params
    found = problems(params)
    if found:
        module.fail_json(msg="Nothing was changed. " + "; ".join(found))
    try:
        settings, target = jobs.open_node(places)
        with jobs.alone(places):
            result = run(places, settings, target, params, module.check_mode)
    except (jobs.NotSetUp, restic.ResticError, restore.RestoreError, ValueError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


def problems(params: dict[str, Any]) -> list[str]:
    """Every mistake of the input."""
    found = [f"{path!r} is no absolute path without .." for path in params["paths"] if _crooked(path)]
    if params["target"] and (len(params["paths"]) != 1 or _crooked(params["target"])):
        found.append("target must be an absolute path, and there must be one path to go there")
    if params["target"] and params["drill"]:
        found.append("a drill writes nothing: it takes no target")
    return found


def _crooked(path: str) -> bool:
    return not path.startswith("/") or ".." in path.split("/") or not path.strip("/")


def run(
    places: Places, settings: Settings, target: restic.Restic, params: dict[str, Any], check: bool
) -> dict[str, Any]:
    """Compare, and restore unless it is a drill. Raises what the parts raise."""
    host = params["host"] or settings.host
    snapshot = restore.choose(target.snapshots(host), params["snapshot"], host)
    with restore.fetched(places, target, str(snapshot["id"])) as saved:
        recorded = record.read(saved)
        owner = record.owner_here(recorded)
        served, models = serving.served(saved), {**params["models"], **serving.registry(saved)}
        absent = serving.absent(served, places.root)
        if params["serves"] and not check:
            lacking = serving.problems(served, places.root, models, record.numbers_here(recorded))
            if lacking:
                raise restore.RestoreError("Nothing was restored: " + "; ".join(lacking))
        if params["target"]:
            plan = restore.plan_to(saved, params["paths"][0], places.root / params["target"].strip("/"), owner)
        else:
            patterns = params["paths"] or settings.paths
            plan = restore.plan(saved, places.root, patterns, [*staging.MOMENTARY, *settings.exclude], owner)
        result = {
            "changed": bool(plan.differences) and not params["drill"],
            "snapshot": restore.summary(snapshot),
            "files": len(plan.saved),
            "differences": plan.shown(),
            "only_here": [str(places.root / path) for path in plan.only_here],
            "instances": [] if params["target"] else restore.instances(plan.differences),
            "served": [_shown(one) for one in served],
            "absent_models": serving.entries(absent, models),
            "absent_instances": [_instance(one) for one in absent if one.model in models],
            "aside": "",
            "recorded": {key: recorded.get(key, "") for key in ("debian", "kernel", "nvidia_driver")},
            "diff": plan.diff(),
        }
        if result["changed"] and not check:
            aside = Path(places.aside / time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
            restore.lay_over(plan, aside)
            if aside.exists():
                restore.keep_only(aside)
                result["aside"] = str(aside)
    return result


def _shown(one: serving.Served) -> dict[str, Any]:
    keys = ("instance", "release", "model", "revision", "path", "image")
    return {key: getattr(one, key) for key in keys}


def _instance(one: serving.Served) -> dict[str, Any]:
    return {"name": one.instance, "model": one.model, "port": one.port, "accelerator": one.accelerator}


if __name__ == "__main__":
    main()
