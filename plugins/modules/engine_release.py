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
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  instances:
    description: The instances of this node.
    type: list
    elements: dict
    required: true
  models:
    description: The model registry.
    type: dict
    required: true
  catalog:
    description:
      - Where the store keeps each model, by the registry's name, with the keys C(path) and C(revision).
    type: dict
    required: true
  image:
    description: The engine's image, by digest.
    type: str
    required: true
  user:
    description: The user that engines run as.
    type: str
    required: true
  environment:
    description: Environment variables for every engine.
    type: dict
    default: {}
  secret_environment:
    description: The same for values that must never be shown, such as C(VLLM_API_KEY).
    type: dict
    default: {}
  settings:
    description: What every container of the node shares; sizes as Docker writes them, times in seconds.
    type: dict
    default: {}
    suboptions:
      address:
        description: The address that engines listen on.
        type: str
      store_path:
        description: The root of the model store.
        type: str
      cache_path:
        description: The directory of the compile caches; each instance has its own below.
        type: str
      start_timeout:
        description: Time in seconds that an engine may take to load and answer.
        type: int
      drain_timeout:
        description: Time in seconds that an engine gives running requests when it is stopped.
        type: int
      shm_size:
        description: Size of C(/dev/shm) in the container.
        type: str
      memory:
        description: Memory limit of the container; empty for none.
        type: str
      pids_limit:
        description: Processes and threads that the container may have.
        type: int
      ulimits:
        description: Resource limits by name.
        type: dict
      cap_add:
        description: Capabilities that the container keeps.
        type: list
        elements: str
extends_documentation_fragment:
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
    catalog: "{{ model_store_catalog }}"
    image: registry.example.com/vllm@sha256:0f4e5c…
    user: inference
    settings:
      address: 127.0.0.1
      start_timeout: 1800
"""

RETURN = r"""
releases:
  description: The desired release of every instance that is declared as present.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The instance.
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
      description: Whether another release than the desired one serves.
      type: bool
    differences:
      description: What differs between the release that serves and the desired one.
      type: list
      elements: str
orphans:
  description: Instances found on the node that the inventory does not declare as present.
  returned: success
  type: list
  elements: str
"""

import difflib
import os
import pwd
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.node import files, releases, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.problems import InputError, Problem, nearest
from ansible_collections.baremetal.inference.plugins.module_utils.registry import Instance, load_instances
from ansible_collections.baremetal.inference.plugins.module_utils.release import (
    SCHEMA,
    Rendered,
    Settings,
    StoredModel,
    render,
)

CACHE_MODE = 0o750


def settings_for(module: AnsibleModule) -> Settings:
    """The containers' settings. Raises InputError where the user is not on the node."""
    given = {key: value for key, value in module.params["settings"].items() if value is not None}
    try:
        user = pwd.getpwnam(module.params["user"])
        given.update(uid=user.pw_uid, gid=user.pw_gid)
    except KeyError:
        if not module.check_mode:
            message = "is no user of this node: create it, or name another one"
            raise InputError([Problem("engine_release", message, "user", module.params["user"])]) from None
        # A fresh node in check mode: the user would be created before.
        given.update(uid=0, gid=0)
    if "ulimits" in given:
        given["ulimits"] = {name: str(value) for name, value in given["ulimits"].items()}
    environment = {**module.params["environment"], **module.params["secret_environment"]}
    return Settings(**given, environment={str(key): str(value) for key, value in environment.items()})


def stored_models(catalog: dict[str, Any], wanted: set[str]) -> dict[str, StoredModel]:
    """Where the wanted models lie. Raises InputError with every one that the store does not have."""
    problems = [
        Problem("engine_release", f"is not in the store's catalog: {nearest(name, catalog)}", "model", name)
        for name in sorted(wanted - set(catalog))
    ]
    if problems:
        raise InputError(problems)
    return {name: StoredModel(catalog[name]["path"], catalog[name]["revision"]) for name in wanted}


class Stage:
    """Stages the instances of a node one by one, and collects what changed."""

    def __init__(self, module: AnsibleModule, paths: Paths) -> None:
        self.module = module
        self.paths = paths
        self.changed = False
        self.before: list[str] = []
        self.after: list[str] = []

    def instance(self, instance: Instance, stored: StoredModel, settings: Settings) -> dict[str, Any]:
        """Stage one instance and say how it stands."""
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

        def rendered(number: int) -> Rendered:
            entry = self.module.params["models"][instance.model]
            image = self.module.params["image"]
            return render(instance, entry, stored, image, settings, number=number, created=created)

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
            "gpus": list(instance.gpus),
            "accelerator": instance.accelerator,
            "release": number,
        }
        self.write(self.paths.instance(instance.name), desired)
        self.cache_directory(Path(settings.cache_path) / instance.name, settings)
        self.changed |= written
        state = systemd.active_state(self.paths.unit(instance.name).name)
        pending = active is not None and active != number and state in systemd.RUNNING
        return {
            "name": instance.name,
            "release": number,
            "active": active,
            "state": state,
            "pending": pending,
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
            self.before += self._lines(new, active, new.release.unit)
        self.after += new.unit.splitlines()

    def _lines(self, new: Rendered, active: int, file: str) -> list[str]:
        """The lines of the active release's file; none where it is damaged, for only people are told by them."""
        try:
            text = (self.paths.release(new.release.instance, active) / file).read_text(encoding="utf-8")
        except (OSError, ValueError):
            return []
        return text.splitlines()

    def _differences(self, new: Rendered, active: int) -> list[str]:
        """The differing lines of the two units, and the environment variables whose value differs."""
        old_unit = self._lines(new, active, new.release.unit)
        old_environment = dict(line.partition("=")[::2] for line in self._lines(new, active, releases.ENV_FILE))
        new_environment = dict(line.partition("=")[::2] for line in new.environment.splitlines())
        lines = [
            line.rstrip(" \\")
            for line in difflib.ndiff(old_unit, new.unit.splitlines())
            if line[:1] in "+-" and "release" not in line
        ]
        keys = sorted(
            key for key in {*old_environment, *new_environment} if old_environment.get(key) != new_environment.get(key)
        )
        return lines + [f"environment: {key}" for key in keys]


def main() -> None:
    setting = {item.name for item in fields(Settings)} - {"uid", "gid", "environment"}
    types = {"start_timeout": "int", "drain_timeout": "int", "pids_limit": "int", "ulimits": "dict", "cap_add": "list"}
    options: dict[str, dict[str, Any]] = {key: {"type": types.get(key, "str")} for key in setting}
    options["cap_add"]["elements"] = "str"
    module = AnsibleModule(
        argument_spec={
            "instances": {"type": "list", "elements": "dict", "required": True},
            "models": {"type": "dict", "required": True},
            "catalog": {"type": "dict", "required": True},
            "image": {"type": "str", "required": True},
            "user": {"type": "str", "required": True},
            "environment": {"type": "dict", "default": {}},
            "secret_environment": {"type": "dict", "default": {}, "no_log": True},
            "settings": {"type": "dict", "default": {}, "options": options},
        },
        supports_check_mode=True,
    )
    paths = Paths()
    stage = Stage(module, paths)
    result = []
    try:
        instances = load_instances(module.params["instances"], module.params["models"])
        present = [instance for instance in instances if instance.state == "present"]
        stored = stored_models(module.params["catalog"], {instance.model for instance in present})
        settings = settings_for(module)
        for instance in present:
            result.append(stage.instance(instance, stored[instance.model], settings))
        used = {name: module.params["models"][name] for name in sorted(stored)}
        stage.write(paths.registry, {"schema": SCHEMA, "models": used})
    except (InputError, releases.ReleaseError, systemd.SystemdError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    orphans = sorted(set(releases.names(paths)) - {instance.name for instance in present})
    diff = {"before": "\n".join(stage.before) + "\n", "after": "\n".join(stage.after) + "\n"}
    module.exit_json(
        changed=stage.changed,
        releases=result,
        orphans=orphans,
        diff=diff if stage.after else {"before": "", "after": ""},
    )


if __name__ == "__main__":
    main()
