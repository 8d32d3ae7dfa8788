# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The implementation of the module engine_release."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...core import files, systemd
from ...core.call import Call
from ...core.paths import Paths
from ...core.problems import InputError, Problem, nearest
from ...debian import users
from ...engine import bridges, changes, compose, flag_paths, image_version, lora, memory_limit, own_settings, plans
from ...engine.compose import Common
from ...engine.declared import Declared
from ...engine.flag_paths import Copied
from ...engine.gang import node as gang_node
from ...engine.gang import site as gang_site
from ...engine.gang import transport as gang_transport
from ...engine.gang.transport import Transport
from ...engine.instance import Instance
from ...engine.inventory import want_gpus
from ...engine.release import SCHEMA, Release, Rendered, Settings
from ...engine.settings import read_settings
from ...engine.state import pins, releases
from ...hardware import host_memory
from ...models import adapter_facts
from ...models.config.facts import ModelFacts, gather
from ...models.registry.entries import Entry
from ...store.stored_model import StoredModel

CACHE_MODE = 0o750
KEY_MODE = 0o600


def settings_for(module: Call) -> Settings:
    """The containers' settings. Raises InputError if the user is not on the node."""
    values = module.params
    try:
        ids = users.ids(values["user"])
    except KeyError:
        if not module.check_mode:
            message = "is no user of this node: create the user, or name another one"
            raise InputError([Problem("engine_release", message, "user", values["user"])]) from None
        # Check mode on a fresh node: a real run would create the user before.
        ids = 0, 0
    return read_settings(values["settings"], *ids, values["environment"], values["secret_environment"])


def stored_models(places: dict[str, Any], wanted: set[str]) -> dict[str, StoredModel]:
    """Where the wanted models lie. Raises InputError with all models that the store does not have."""
    problems = [
        Problem("engine_release", f"is not among the store's models: {nearest(name, places)}", "model", name)
        for name in sorted(wanted - set(places))
    ]
    if problems:
        raise InputError(problems)
    return {name: StoredModel(places[name]["path"], places[name]["revision"]) for name in sorted(wanted)}


def loras(entry: Entry, declared: Declared, stored: dict[str, StoredModel]) -> list[lora.Lora]:
    """The adapters of an entry. Raises InputError with every adapter that its engine could not serve."""
    found = []
    for adapter in declared.adapters_of(entry.name):
        place, path = stored[adapter.served_as], Path(stored[adapter.served_as].path)
        # In check mode, an adapter may not be on the node yet.
        found.append(lora.Lora(adapter, place, adapter_facts.gather(path) if path.is_dir() else None))
    base = Path(stored[entry.served_as].path)
    if found and (problems := lora.problems(entry, gather(base).config if base.is_dir() else None, found)):
        raise InputError(problems)
    return found


class Stage:
    """Stages the instances of a node one by one, and records whether anything changed."""

    def __init__(self, module: Call, paths: Paths, site: gang_site.Site, transport: Transport) -> None:
        self.module = module
        self.paths = paths
        self.site = site
        self.transport = transport
        self.changed = False
        self.before: list[str] = []
        self.after: list[str] = []

    def instance(self, instance: Instance, common: Common, stored: dict[str, StoredModel]) -> dict[str, Any]:
        """Stage one instance, with the engine's arguments from its model registry entry. Returns the instance's state.

        Raises InputError if its engine could not serve an adapter, find a file, or stay below its memory limit, or if
        the node does not have its user.
        """
        declared, entry = common.declared, common.declared.entries[instance.model]
        drafter, model = declared.draft_of(entry), stored[entry.served_as]
        draft = stored[drafter.store_name] if drafter else None
        gang, _network = gang_node.member(instance, self.site, self.paths.root)
        nodes, here = instance.nodes, self.site.node
        network = self.transport.variables(self.paths, instance.name, nodes, here) if gang else None
        loaded = loras(entry, declared, stored)
        try:
            composed = compose.compose(common, instance, entry, model, loaded, draft, gang, network)
        except KeyError as error:
            raise InputError([compose.user_problem(instance)]) from error
        settings = composed.settings
        files_at = Path(model.path) if Path(model.path).is_dir() else None
        found = flag_paths.problems(f"models.{entry.name}", entry.flags, common.copied, settings, files_at, True)
        if found:
            raise InputError(found)
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        identity = composed.rendered().release.id
        # A release that is staged keeps its limit.
        kept = releases.find(self.paths, instance.name, identity, lambda _damaged: None)
        limit = (
            kept.memory_limit if kept else self.memory_limit(composed, files_at, Path(draft.path) if draft else None)
        )
        read_only = changes.read_only(self.paths, kept, self.module.params["read_only"])

        def rendered(number: int) -> Rendered:
            return composed.rendered(number, created, limit, read_only=read_only)

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
            **self._gang(staged.release),
            **own_settings.to_dict(instance),
        }
        if self.module.params["desired"]:
            self.write(self.paths.instance(instance.name), desired)
            self.remove_outdated_pin(instance.name, number)
        self.cache_directory(Path(settings.cache_path) / instance.name, settings)
        # The role copies the files of flags before it stages. In check mode, a copied file may still be missing: then
        # the role is due.
        self.changed |= written or not all(Path(path).exists() for path in staged.release.mounts)
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
            "staged": not (written and self.module.check_mode and wanted == number),
            "wanted": wanted,
            "pin": str(pin) if pin else "",
            "differences": self._differences(staged, active) if pending and active is not None else [],
        }

    def _gang(self, release: Release) -> dict[str, Any]:
        """The gang in the record of an instance; empty for an instance on one node."""
        if release.gang is None:
            return {}
        nodes = [member.node for member in release.gang.members]
        recorded = self.transport.record(self.paths, release.instance, nodes)
        return {"gang": release.gang.to_dict(), gang_transport.RECORDED: recorded}

    def require_gangs(self, environment: Mapping[str, Any]) -> None:
        """Raise InputError with every mistake of this node about its gangs."""
        given = self.module.params
        instances, key, secrets = given["instances"], given["gang_key"], given["instance_secrets"]
        problems = gang_site.problems(instances, self.site)
        problems += gang_node.problems(instances, self.site, key, environment, secrets, self.paths.root)
        found = gang_transport.check(instances, self.transport, self.paths, environment, secrets, starts=True)
        problems += found.problems
        if problems:
            raise InputError(problems)

    def gang_key(self, instances: Sequence[Instance]) -> None:
        """Write the key of gangs, for root alone; remove the key from a node without a gang."""
        gangs = any(instance.nodes for instance in instances)
        text = f"{self.module.params['gang_key']}\n" if gangs else None
        path = self.paths.gang_key
        if path.exists() if text is None else not files.same(path, text, KEY_MODE):
            self.changed = True
            if not self.module.check_mode:
                files.write(path, text, KEY_MODE)

    def memory_limit(self, composed: compose.Composed, model: Path | None, draft: Path | None) -> str:
        """The memory limit of a new release. Raises InputError if its engine could not stay below the limit."""
        name, settings = composed.instance.name, composed.settings
        total, numa = host_memory.total(self.paths.root), host_memory.smallest_numa_node(self.paths.root)
        facts = gather(model) if model else ModelFacts()
        draft_facts = gather(draft) if draft and draft.is_dir() else None
        held = memory_limit.of(composed.instance, composed.flags, facts, draft_facts, settings, numa)
        where = f"memory of instance {name}" if composed.instance.memory else "vllm_memory"
        if found := memory_limit.misfits(held, settings, total, where):
            raise InputError([Problem(f"instance {name}", each.message, each.key, each.value) for each in found])
        return memory_limit.limit(held, total)

    def cache_directory(self, path: Path, settings: Settings) -> None:
        """Make the instance's compile cache for its user and group. The cache outlives containers."""
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
        """Write a state file; in check mode, only record whether it would change.
        A damaged file counts as different."""
        text = files.to_json(value)
        if files.same(path, text):
            return
        self.changed = True
        if not self.module.check_mode:
            files.write(path, text)

    def remove_outdated_pin(self, name: str, desired: int) -> None:
        """Remove a pin that belongs to an earlier state of the inventory. Otherwise, the pin would apply again when
        that state returns."""
        if pins.outdated(self.paths, name, desired):
            self.changed = True
            if not self.module.check_mode:
                files.write(self.paths.pin(name), None)

    def _diff(self, new: Rendered, active: int | None) -> None:
        if active is not None:
            self.before += changes.kept(self.paths, new.release.instance, active).unit.splitlines()
        self.after += new.unit.splitlines()

    def _differences(self, new: Rendered, active: int) -> list[str]:
        """The differences between the active release and the new one."""
        old = changes.kept(self.paths, new.release.instance, active)
        return changes.differences(old, changes.Texts(new.unit, new.environment))


def run(module: Call) -> None:
    """Answer a call."""
    paths = Paths()
    given, image, docker = module.params, module.params["image"], module.get_bin_path("docker")
    version = image_version.find(given["engine_version"], image, paths.registry, docker, module.run_command)
    gpus = given["gpus"]
    if gpus is None and want_gpus(given["instances"]):
        gpus = plans.Hardware(paths.root).gpus
    own_versions = image_version.of_instances(given["instances"], paths.registry, docker, module.run_command)
    declared = Declared.read(given["models"], given["instances"], version, gpus, own_versions)
    result = []
    stage = Stage(module, paths, gang_site.Site(), Transport())
    try:
        stage.site = gang_site.Site.from_dict(given["gangs"])
        stage.transport = Transport.from_dict(given["network"])
        declared.require()
        stage.require_gangs({**given["environment"], **given["secret_environment"]})
        adapters = [each for entry in declared.served for each in declared.adapters_of(entry.name)]
        drafts = {draft.store_name for entry in declared.served if (draft := declared.draft_of(entry))}
        wanted = {entry.served_as for entry in (*declared.served, *adapters)}
        stored = stored_models(given["places"], wanted | drafts)
        common = Common(
            declared,
            image,
            settings_for(module),
            users.ids_or_root if module.check_mode else users.ids,
            given["instance_secrets"],
            {source: Copied.from_dict(value) for source, value in given["flag_files"].items()},
            given["gang_key"],
        )
        for instance in declared.instances:
            result.append(stage.instance(instance, common, stored))
        desired = {
            "schema": SCHEMA,
            "engine": image_version.kept_as(image, version, given["engine_version"]),
            "models": declared.needed,
        }
        if own_versions:
            desired["own_engines"] = [image_version.kept_as(*each, "") for each in own_versions.items()]
        if given["desired"]:
            stage.write(paths.registry, desired)
            stage.gang_key(declared.instances)
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
