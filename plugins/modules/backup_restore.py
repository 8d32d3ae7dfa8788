#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: backup_restore
short_description: Restore a snapshot to a node, or compare the snapshot with the node
version_added: 0.1.0
description:
  - Fetches a snapshot into a private directory, compares it with the node, and replaces each file that differs
    atomically, with mode and owner. Owners are matched by name, because a new machine may have other numbers.
  - Nothing is deleted. Replaced files are kept in RV(aside) until a later restore has replaced files successfully.
    Files that only the node has stay. If a file cannot be written, all files are put back.
  - If files cannot be put back, or a restore is cut off, the replaced files stay in a directory with C(-unfinished) at
    the end of its name until a person removes this directory. Each later run warns of the directory.
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  snapshot:
    description: The first characters of the snapshot's ID, at least four; V(latest) for the last snapshot.
    type: str
    required: true
  host:
    description: The host name of the snapshot. If empty, O(baremetal.inference.backup#module:host) of the node.
    type: str
    default: ""
  paths:
    description:
      - The absolute paths to restore, with shell patterns. If empty, the paths that
        O(baremetal.inference.backup#module:paths) has set on the node. Other paths of the snapshot are not restored
        then.
    type: list
    elements: str
    default: []
  target:
    description:
      - Where to restore the only path of O(paths). In an existing directory, the path keeps its name. Any other target
        is the new name. If empty, the path is restored at its own place.
    type: str
    default: ""
  drill:
    description: Only compare, and change nothing.
    type: bool
    default: false
  serves:
    description:
      - Whether engines will be started from the restored files. If V(true), the module restores nothing unless the node
        has everything that the engines need, except images. Releases get an address of this machine, and the key of
        gangs stays as on this machine, also in a comparison (O(drill)).
    type: bool
    default: false
  models:
    description:
      - The current model registry of the inventory, for served models that the snapshot's registry does not have, for
        example after an update with C(set).
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
      - For a file that not every user may read, the diff shows only that the file differs.
"""

EXAMPLES = r"""
- name: Restore configuration, releases and units of the engines
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
  description: The chosen snapshot, with C(id), C(time), C(host) and C(machine).
  returned: success
  type: dict
files:
  description: The number of files, links and directories that were compared.
  returned: success
  type: int
differences:
  description: The paths that differ between snapshot and node.
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: The path on the node.
      type: str
    differs:
      description: V(missing), V(kind), or any of V(content), V(target), V(mode) and V(owner).
      type: list
      elements: str
only_here:
  description: Paths that only the node has. They stay.
  returned: success
  type: list
  elements: str
instances:
  description: The instances whose unit, environment or active release differs; empty with O(target).
  returned: success
  type: list
  elements: str
served:
  description: The release of each instance at the time of the snapshot.
  returned: success
  type: list
  elements: dict
  contains:
    instance:
      description: The instance.
      type: str
    release:
      description: The number of the release.
      type: int
    model:
      description: The model's name in the model registry.
      type: str
    revision:
      description: The model's revision in the store.
      type: str
    path:
      description: The directory from which the engine reads the model.
      type: str
    image:
      description: The engine's image.
      type: str
moved:
  description:
    - Releases of the snapshot that listened on an address which this machine does not have. They are restored with an
      address of this machine. Only with O(serves).
  returned: success
  type: list
  elements: str
shared:
  description:
    - Files that this node shares with other nodes, and that differ from the snapshot. They stay as they are. The only
      such file is the key of gangs. Only with O(serves).
  returned: success
  type: list
  elements: str
absent_models:
  description:
    - Registry entries by name, with their bases, of served models that the node does not have. With these entries, the
      role model_store can fetch the models. The entries come from the snapshot's registry, or else from O(models).
  returned: success
  type: dict
absent_instances:
  description: The instances of RV(absent_models), in the form of the inventory.
  returned: success
  type: list
  elements: dict
aside:
  description: The directory with the replaced files; empty if no file was replaced.
  returned: success
  type: str
recorded:
  description: The node's versions at the time of the snapshot, C(debian), C(kernel) and C(nvidia_driver).
  returned: success
  type: dict
"""

import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.backup import (
    addresses,
    gang_key,
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
        for path in restore.unfinished(places.aside):
            module.warn(
                f"{path} has files that a restore replaced. The restore did not finish, so these files may be the only"
                " copy. Compare them with the files of the node, and remove the directory"
            )
    except (jobs.NotSetUp, restic.ResticError, restore.RestoreError, ValueError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


def problems(params: dict[str, Any]) -> list[str]:
    """All mistakes of the input."""
    rule = "must be an absolute path below /, without .."
    found = [f"paths has {path!r}: {rule}" for path in params["paths"] if _crooked(path)]
    if params["target"] and (len(params["paths"]) != 1 or _crooked(params["target"])):
        found.append(f"target is {params['target']!r}: {rule}, for exactly one of paths")
    if params["target"] and params["drill"]:
        found.append("target and drill are both set: a drill writes nothing, so leave target out")
    return found


def _crooked(path: str) -> bool:
    return not path.startswith("/") or ".." in path.split("/") or not path.strip("/")


def run(
    places: Places, settings: Settings, target: restic.Restic, params: dict[str, Any], check: bool
) -> dict[str, Any]:
    """Compare, and restore unless `check` or the option `drill` is set.

    Raises ResticError, RestoreError, ValueError and OSError.
    """
    host = params["host"] or settings.host
    snapshot = restore.choose(target.snapshots(host), params["snapshot"], host)
    with restore.fetched(places, target, str(snapshot["id"])) as saved:
        recorded = record.read(saved)
        owner = record.owner_here(recorded)
        moves, lacking = addresses.move(saved, places.root) if params["serves"] else ([], [])
        shared = gang_key.keep(saved, places.root) if params["serves"] else []
        served, models = serving.served(saved), {**params["models"], **serving.registry(saved)}
        absent = serving.absent(served, places.root)
        if params["serves"] and not (check or params["drill"]):
            lacking += serving.problems(served, places.root, models, record.numbers_here(recorded))
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
            "moved": [one.words for one in moves],
            "shared": shared,
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
