#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: engine_release
short_description: Stage what the engines of a node shall run
version_added: 0.1.0
description:
  - Renders a release (unit, container command and environment) of every declared instance and keeps it on the node
    under C(/var/lib/inference/releases/NAME/N), unless a release that runs the same is kept already.
  - Nothing is started, stopped or restarted. An instance that serves another release than the desired one is reported
    as pending.
  - A kept release that is damaged is warned of and left out; state files that are damaged are written anew.
  - Desired state is written to C(/etc/inference), and each instance gets the directory of its compile cache.
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  gpus:
    description:
      - The node's GPUs, as the fact C(gpus) of M(baremetal.inference.gpu_facts). Those that an instance only counts
        are chosen among them. Before the driver works, only their number counts.
      - If omitted, the node is asked where an instance runs on GPUs.
    type: list
    elements: dict
  places:
    description:
      - Where the store keeps each model, by the registry's name, with the keys C(path) and C(revision). An entry with a
        system prompt is looked up by its own name, as M(baremetal.inference.model_variants) returns it.
    type: dict
    required: true
  desired:
    description:
      - Whether this is what the inventory asks for. Otherwise releases are only kept, to be switched to once.
    type: bool
    default: true
extends_documentation_fragment:
  - baremetal.inference.engine
  - baremetal.inference.registry
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details:
      - Secrets are left out.
"""

EXAMPLES = r"""
- name: Stage the releases of this node
  baremetal.inference.engine_release:
    instances: "{{ instances }}"
    models: "{{ models }}"
    places: "{{ model_store_places }}"
    image: registry.example.com/vllm@sha256:0f4e5c…
    user: inference
    settings:
      address: 127.0.0.1
      start_timeout: 1800
"""

RETURN = r"""
due:
  description: Whether anything was to be staged or written, also where the task itself must not report a change.
  returned: success
  type: bool
releases:
  description: The desired release of every instance that is declared as present.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The instance.
      type: str
    model:
      description: The model of the desired release.
      type: str
    model_path:
      description: Where its files are, or will be.
      type: str
    release:
      description: The number of the desired release.
      type: int
    active:
      description: The release whose unit is installed; none before the first start.
      type: int
    state:
      description: What systemd says of the unit, such as C(active), C(activating), C(failed) or C(inactive).
      type: str
    pending:
      description: Whether another release serves than the desired one, or the one that is pinned in its place.
      type: bool
    wanted:
      description: The release that shall run, the desired one or the one that is pinned in its place.
      type: int
    pin:
      description: Which release is pinned in the place of the desired one, since when and why; empty for none.
      type: str
    differences:
      description: What differs between the release that serves and the desired one.
      type: list
      elements: str
orphans:
  description: Instances found on the node that the inventory does not declare as present.
  returned: success
  type: list
  elements: str
bridges:
  description: Engines that stood in for an instance during an update that was cut off.
  returned: success
  type: list
  elements: str
"""

import os
import pwd
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError, Problem, nearest
from ansible_collections.baremetal.inference.plugins.module_utils.engine import bridges, changes, image_version, plans
from ansible_collections.baremetal.inference.plugins.module_utils.engine.declared import Declared
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import Instance, want_gpus
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import (
    SCHEMA,
    Rendered,
    Settings,
    render,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.settings import ARGUMENTS, read_settings
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import pins, releases
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.entries import Entry
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

CACHE_MODE = 0o750


def settings_for(module: AnsibleModule) -> Settings:
    """The containers' settings. Raises InputError where the user is not on the node."""
    values = module.params
    try:
        user = pwd.getpwnam(values["user"])
        ids = user.pw_uid, user.pw_gid
    except KeyError:
        if not module.check_mode:
            message = "is no user of this node: create it, or name another one"
            raise InputError([Problem("engine_release", message, "user", values["user"])]) from None
        # A fresh node in check mode: the user would be created before.
        ids = 0, 0
    return read_settings(values["settings"], *ids, values["environment"], values["secret_environment"])


def stored_models(places: dict[str, Any], wanted: set[str]) -> dict[str, StoredModel]:
    """Where the wanted models lie. Raises InputError with every one that the store does not have."""
    problems = [
        Problem("engine_release", f"is not among the store's models: {nearest(name, places)}", "model", name)
        for name in sorted(wanted - set(places))
    ]
    if problems:
        raise InputError(problems)
    return {name: StoredModel(places[name]["path"], places[name]["revision"]) for name in wanted}


class Stage:
    """Stages the instances of a node one by one, and collects what changed."""

    def __init__(self, module: AnsibleModule, paths: Paths) -> None:
        self.module = module
        self.paths = paths
        self.changed = False
        self.before: list[str] = []
        self.after: list[str] = []

    def instance(
        self,
        instance: Instance,
        entry: Entry,
        engine: list[str],
        stored: StoredModel,
        settings: Settings,
    ) -> dict[str, Any]:
        """Stage one instance, with the engine's arguments of its registry entry, and say how it stands."""
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

        def rendered(number: int) -> Rendered:
            image = self.module.params["image"]
            return render(instance, engine, stored, image, settings, flags=entry.flags, number=number, created=created)

        identity = rendered(0).release.id
        active = releases.active_number(self.paths, instance.name)
        staged, written = releases.stage(
            self.paths, instance.name, identity, rendered, self.module.warn, check=self.module.check_mode
        )
        number = staged.release.number
        if written:
            self._diff(staged, active)
        desired = {
            "schema": SCHEMA,
            "name": instance.name,
            "model": instance.model,
            "port": instance.port,
            "bridge_port": instance.bridge_port,
            "gpus": list(instance.gpus),
            "accelerator": instance.accelerator,
            "release": number,
        }
        if self.module.params["desired"]:
            self.write(self.paths.instance(instance.name), desired)
        self.cache_directory(Path(settings.cache_path) / instance.name, settings)
        self.changed |= written
        state = systemd.active_state(self.paths.unit(instance.name).name)
        pin = pins.in_force(self.paths, instance.name, number)
        wanted = pin.release if pin else number
        pending = active is not None and active != wanted and state in systemd.RUNNING
        return {
            "name": instance.name,
            "model": instance.model,
            "model_path": staged.release.model_path,
            "release": number,
            "active": active,
            "state": state,
            "pending": pending,
            "wanted": wanted,
            "pin": str(pin) if pin else "",
            "differences": self._differences(staged, active) if pending and active is not None else [],
        }

    def cache_directory(self, path: Path, settings: Settings) -> None:
        """Have the instance's compile cache: it outlives containers, and only the engine's user enters it."""
        wanted = (settings.uid, settings.gid, CACHE_MODE)
        if path.is_dir():
            found = path.stat()
            if (found.st_uid, found.st_gid, found.st_mode & 0o7777) == wanted:
                return
        self.changed = True
        if not self.module.check_mode:
            path.mkdir(parents=True, exist_ok=True)
            os.chown(path, settings.uid, settings.gid)
            path.chmod(CACHE_MODE)

    def write(self, path: Path, value: Any) -> None:
        """Write a state file, or note that it would change. A damaged one is different."""
        text = files.to_json(value)
        if files.same(path, text):
            return
        self.changed = True
        if not self.module.check_mode:
            files.write(path, text)

    def _diff(self, new: Rendered, active: int | None) -> None:
        if active is not None:
            self.before += changes.kept(self.paths, new.release.instance, active).unit.splitlines()
        self.after += new.unit.splitlines()

    def _differences(self, new: Rendered, active: int) -> list[str]:
        """What differs between the active release and the new one."""
        old = changes.kept(self.paths, new.release.instance, active)
        return changes.differences(old, changes.Texts(new.unit, new.environment))


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **ARGUMENTS,
            "gpus": {"type": "list", "elements": "dict"},
            "places": {"type": "dict", "required": True},
            "desired": {"type": "bool", "default": True},
        },
        supports_check_mode=True,
    )
    paths = Paths()
    stage = Stage(module, paths)
    given, image, docker = module.params, module.params["image"], module.get_bin_path("docker")
    version = image_version.find(given["engine_version"], image, paths.registry, docker, module.run_command)
    gpus = given["gpus"]
    if gpus is None and want_gpus(given["instances"]):
        gpus = plans.Hardware(paths.root).gpus
    declared = Declared.read(given["models"], given["instances"], version, gpus)
    result = []
    try:
        declared.require()
        stored = stored_models(given["places"], {entry.served_as for entry in declared.served})
        settings = settings_for(module)
        for instance in declared.instances:
            entry = declared.entries[instance.model]
            engine = declared.arguments(entry)
            result.append(stage.instance(instance, entry, engine, stored[entry.served_as], settings))
        desired = {
            "schema": SCHEMA,
            "engine": image_version.kept_as(image, version, given["engine_version"]),
            "models": declared.needed,
        }
        if given["desired"]:
            stage.write(paths.registry, desired)
    except (InputError, releases.ReleaseError, systemd.SystemdError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    orphans = sorted(set(bridges.instances(paths)) - {instance.name for instance in declared.instances})
    diff = {"before": "\n".join(stage.before) + "\n", "after": "\n".join(stage.after) + "\n"}
    module.exit_json(
        changed=stage.changed,
        due=stage.changed,
        releases=result,
        orphans=orphans,
        bridges=bridges.unattended(paths, datetime.now(UTC)),
        diff=diff if stage.after else {"before": "", "after": ""},
    )


if __name__ == "__main__":
    main()
