# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The implementation of the module engine_plan."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...core.call import Call
from ...core.paths import Paths
from ...core.problems import Findings, InputError, Problem
from ...core.sizes import GIB
from ...core.systemd import SystemdError
from ...debian import users
from ...engine import (
    agent_service,
    bridges,
    changes,
    compose,
    flag_paths,
    image_cuda,
    image_version,
    input_check,
    lora,
    memory_limit,
    own_settings,
    plan_text,
    plans,
    swap_settings,
)
from ...engine.compose import Common
from ...engine.declared import Declared
from ...engine.endpoints import address_problems, port_problems, running_instances
from ...engine.flag_paths import Copied
from ...engine.gang import compare as gang_compare
from ...engine.gang import node as gang_node
from ...engine.gang import site as gang_site
from ...engine.gang import transport as gang_transport
from ...engine.gang.transport import Transport
from ...engine.instance import Instance
from ...engine.inventory import own_images, present_instances, want_gpus
from ...engine.release import Settings, gang_parts
from ...engine.settings import (
    check_environment,
    check_settings,
    read_settings,
)
from ...engine.state import releases
from ...hardware import host_memory
from ...models import adapter_facts
from ...models.adapter_facts import AdapterFacts
from ...models.config import tasks
from ...models.config.facts import ModelFacts, gather
from ...models.fit.misfit import GOLDEN, Misfit
from ...models.registry import keyless, routing, warm_up
from ...models.registry.entries import Entry
from ...store import stored, variants
from . import engine_service, node_tool


def image_space(module: Call) -> tuple[dict[str, int], list[Problem]]:
    """Either the space in GiB that the missing images need, by directory, or a problem if too little is free. Both are
    empty if the node has all images, or if `image_gib` is not given."""
    if module.params["image_gib"] is None:
        return {}, []
    root = Path(module.params["docker_data_root"])
    docker = module.get_bin_path("docker")
    images = {module.params["image"], *own_images(module.params["instances"])}
    if docker:
        images = {image for image in images if module.run_command([docker, "image", "inspect", image])[0] != 0}
        if not images:
            return {}, []
        code, answer, _error = module.run_command([docker, "info", "--format", "{{.DockerRootDir}}"])
        root = Path(answer.strip()) if code == 0 and answer.startswith("/") else root
    needed = module.params["image_gib"] * len(images)
    existing = next(path for path in (root, *root.parents) if path.exists())
    free = shutil.disk_usage(existing).free / GIB
    if free >= needed:
        return {str(existing): needed}, []
    count = "the image needs" if len(images) == 1 else f"{len(images)} images need"
    message = (
        f"has {free:.1f} GiB free, but {count} {needed} GiB (vllm_image_gib): free space below {existing}, "
        "or move docker_data_root to a larger disk"
    )
    return {}, [Problem("disk", message, str(root))]


def machine_problems(machine: str) -> list[Problem]:
    """A problem if the node's architecture is not supported."""
    if machine == "x86_64":
        return []
    message = (
        "is this node's architecture, but images, drivers and plans of this collection need x86_64 (amd64): remove the"
        " node from the group inference"
    )
    return [Problem("node", message, "machine", machine)]


def cdi_problems(instances: Sequence[Instance], reason: str) -> list[Problem]:
    """A problem for each instance with GPUs, on a node whose Docker cannot give GPUs to a container."""
    return [
        Problem(f"instance {instance.name}", f"cannot get its GPUs: {reason}", "gpus", list(instance.gpus))
        for instance in instances
        if instance.gpus
    ]


def revisions_in_use(paths: Paths, name: str, model: str) -> dict[str, str]:
    """The revisions of model, adapters and draft in the instance's desired release: the model's by the name of its
    entry, the others by name in the store. Empty if that release is missing, cannot be read, or has another model."""
    try:
        number = releases.desired_number(paths, name)
        release = None if number is None else releases.load(paths, name, number)
    except (OSError, ValueError, releases.ReleaseError):
        return {}
    if release is None or release.model != model:
        return {}
    draft = Path(release.draft)
    adapters = {adapter: Path(path).name for adapter, path in release.lora.items()}
    return {**adapters, **({draft.parent.name: draft.name} if release.draft else {}), model: release.revision}


def prompt_problems(entry: Entry, files: Path | None) -> list[Misfit]:
    """Why a model, by its files, cannot get the system prompt of its entry.
    Empty without a system prompt, or without files."""
    if entry.system_prompt is None or files is None:
        return []
    found = variants.check_model(entry, files)
    return [Misfit("system-prompt", problem.where, None, problem.message) for problem in found]


def golden_problems(entries: Sequence[Entry], facts: ModelFacts | None, flags: Mapping[str, Any]) -> list[Misfit]:
    """Golden prompts of a model and its adapters that this node cannot ask."""
    known = tasks.certain(facts, flags) if facts else ()
    return [
        Misfit(GOLDEN, f"models.{entry.name}", prompt, message)
        for entry in entries
        for prompt, message in input_check.wrong_golden(entry, known)
    ]


def warm_up_problems(entry: Entry, facts: ModelFacts | None) -> list[Misfit]:
    """Warm-up prompts of a kind that the model does not answer. Empty if the tasks are not certain."""
    known = tasks.certain(facts, entry.flags) if facts else ()
    return [
        Misfit(warm_up.KEY, f"models.{entry.name}", None, message)
        for message in warm_up.without_chats(entry.warm_up, known)
    ]


def routing_problems(models: Mapping[str, Any], entry: Entry, facts: ModelFacts | None) -> list[Misfit]:
    """An affinity key that no request to the model has. Empty if the model's tasks are not certain."""
    message = keyless.mistake(models, entry.name, tasks.certain(facts, entry.flags)) if facts else ""
    return [Misfit("routing", f"models.{entry.name}: {routing.KEY}", None, message)] if message else []


class Planner:
    """Plans the instances of a node one by one."""

    def __init__(self, module: Call, paths: Paths, common: Common, site: gang_site.Site, transport: Transport) -> None:
        self._module = module
        self._paths = paths
        self._common = common
        self._declared = common.declared
        self._settings = common.settings
        self._site = site
        self._transport = transport
        self.gangs: list[dict[str, Any]] = []
        """This node's part of each of its gangs, for the comparison of members."""
        self._docker = module.get_bin_path("docker")
        self._total = host_memory.total(paths.root)
        self._numa = host_memory.smallest_numa_node(paths.root)
        self._cuda: dict[str, str] = {}
        self._gathered: dict[Path, ModelFacts] = {}

    def all(self, hardware: plans.Hardware) -> list[dict[str, Any]]:
        """The plans of all instances; empty if an environment cannot be rendered.

        Raises SystemdError, OSError, ValueError.
        """
        made = []
        try:
            for instance in self._declared.instances:
                entry = self._declared.entries[instance.model]
                engine = self.engine(instance, entry)
                draft = self._declared.draft_of(entry)
                draft_facts = self._facts(draft, engine.draft) if draft else None
                made.append(plans.plan(engine, hardware, self._facts(entry, engine.path), draft_facts))
                for part in self.gangs:
                    if part["name"] == instance.name:
                        part["devices"] = [device["name"] for device in made[-1]["devices"]]
        except InputError:
            # check_environment reports this.
            return []
        return made

    def _known(self, entry: Entry) -> ModelFacts | None:
        """The controller's facts of an entry's model."""
        found = self._module.params["facts"].get(entry.store_name)
        return ModelFacts.from_dict(found) if found else None

    def _facts(self, entry: Entry, files: Path | None) -> ModelFacts | None:
        """The facts of an entry's model from its files here, or from the controller."""
        if files is None:
            return self._known(entry)
        if files not in self._gathered:
            self._gathered[files] = gather(files)
        return self._gathered[files]

    def _image_cuda(self, instance: Instance) -> str:
        """The version of CUDA in the image of an instance; empty where unknown."""
        image = instance.image or self._module.params["image"]
        if image not in self._cuda:
            given = "" if instance.image else self._module.params["engine_cuda"]
            self._cuda[image] = image_cuda.find(given, image, self._docker, self._module.run_command)
        return self._cuda[image]

    def _place(self, entry: Entry, in_use: str | None = None) -> stored.Place:
        """Where an entry's model will be in the store."""
        coming = self._module.params["coming"].get(entry.store_name)
        return stored.find(Path(self._settings.store_path), entry, in_use, coming)

    def _lora(self, adapter: Entry, in_use: str | None) -> lora.Lora:
        """An adapter, with its facts from its files here or from the controller."""
        place = self._place(adapter, in_use)
        known = self._module.params["facts"].get(adapter.name)
        facts = AdapterFacts.from_dict(known) if known else None
        return lora.Lora(adapter, place.stored, adapter_facts.gather(place.files) if place.files else facts)

    def engine(self, instance: Instance, entry: Entry) -> plans.Engine:
        """The engine that an instance would run. Raises InputError, SystemdError, OSError, ValueError."""
        name = instance.name
        in_use = revisions_in_use(self._paths, name, instance.model)
        place = self._place(entry, in_use.get(instance.model))
        loras = [self._lora(each, in_use.get(each.name)) for each in self._declared.adapters_of(entry.name)]
        facts = self._facts(entry, place.files)
        wrong = golden_problems([entry, *(each.entry for each in loras)], facts, entry.flags)
        wrong += warm_up_problems(entry, facts)
        wrong += routing_problems(self._declared.models, entry, facts)
        wrong += lora.misfits(entry, facts.config if facts else None, loras) if loras else []
        drafter = self._declared.draft_of(entry)
        draft = self._place(drafter, in_use.get(drafter.store_name)) if drafter else None
        gang, network = gang_node.member(instance, self._site, self._paths.root)
        drafted = draft.stored if draft else None
        variables = self._transport.variables(self._paths, name, instance.nodes, self._site.node) if gang else {}
        composed = compose.compose(self._common, instance, entry, place.stored, loras, drafted, gang, variables)
        if gang:
            revision, image = place.stored.revision, composed.image
            shared = gang_parts(
                gang, instance, composed.arguments, revision, image, composed.settings, network=variables
            )
            key = self._module.params["gang_key"]
            self.gangs.append(gang_compare.report(gang, shared, (), network, key))
        draft_facts = self._facts(drafter, draft.files) if drafter and draft else None
        held = memory_limit.of(instance, composed.flags, facts, draft_facts, composed.settings, self._numa)
        where = "memory" if instance.memory else "vllm_memory"
        wrong += memory_limit.misfits(held, composed.settings, self._total, where)
        kept = releases.find(self._paths, name, composed.rendered().release.id, self._module.warn)
        limit = kept.memory_limit if kept else memory_limit.limit(held, self._total)
        read_only = changes.read_only(self._paths, kept, self._module.params["read_only"])
        rendered = composed.rendered(memory_limit=limit, read_only=read_only)
        wanted = changes.Texts(rendered.unit, rendered.environment)
        return plans.Engine(
            model=instance.model,
            argv=[rendered.release.adapter.program, *rendered.release.engine_argv],
            flags=composed.flags,
            instance=name,
            revision=place.revision,
            path=place.files,
            accelerator=instance.accelerator,
            gpus=instance.gpus,
            environment=plans.deciding(composed.settings.environment),
            image_cuda=self._image_cuda(instance),
            version=self._declared.own_catalogues.get(instance.image or "", self._declared.catalogue).wanted,
            change=changes.compare(self._paths, name, kept.number if kept else None, wanted),
            problems=[*prompt_problems(entry, place.files), *wrong],
            draft=draft.files if draft else None,
            span=gang_node.span(instance, self._site, network),
        )


def misfit(problem: Problem) -> dict[str, Any]:
    """A mistake in the input, in the form of a plan's problem."""
    key = f"{problem.where}: {problem.key}" if problem.key else problem.where
    return Misfit("inventory", key, problem.value, problem.message).to_dict()


def own_problems(common: Common, instances: Sequence[Any]) -> list[Problem]:
    """Every mistake in the own settings of single instances, and in paths of flags."""
    names = frozenset(str(raw["name"]) for raw in instances if isinstance(raw, dict) and raw.get("name"))
    found = own_settings.check_secrets(common.secrets, names)
    for instance in common.declared.instances:
        try:
            common.settings_of(instance)
        except KeyError:
            found.append(compose.user_problem(instance))
    store = Path(common.settings.store_path)
    for entry in common.declared.served:
        files = stored.find(store, entry).files if store.is_absolute() else None
        found += flag_paths.problems(f"models.{entry.name}", entry.flags, common.copied, common.settings, files, True)
    return found


def input_problems(
    values: dict[str, Any],
    declared: Declared,
    reachable: Sequence[Instance],
    settings: Settings,
    paths: Paths,
    site: gang_site.Site,
    transport: Transport,
) -> Findings:
    """Every mistake in the input, and warnings about networks. Raises SystemdError, OSError, ValueError."""
    wrong_address = address_problems(settings.address)
    networks = gang_transport.check(
        values["instances"],
        transport,
        paths,
        settings.environment,
        values["instance_secrets"],
        starts=values["strict"],
    )
    problems = [
        *declared.problems,
        *check_settings(vars(settings)),
        *check_environment(values["environment"], values["secret_environment"]),
        *wrong_address,
        *gang_site.problems(values["instances"], site),
        *gang_node.problems(
            values["instances"],
            site,
            values["gang_key"],
            settings.environment,
            values["instance_secrets"],
            paths.root,
        ),
        *networks.problems,
    ]
    if not wrong_address:
        own = site.hosts.get(site.node, gang_site.Host()).address
        problems += port_problems(reachable, settings.address, running_instances(paths), own)
    if values["cdi_problem"]:
        problems += cdi_problems(reachable, values["cdi_problem"])
    return Findings(problems, networks.warnings)


def agent(values: dict[str, Any], paths: Paths) -> tuple[bool, list[Problem]]:
    """Whether the agent's services differ from the input, and every mistake.

    Raises SystemdError, OSError, and ValueError if the settings of swaps are invalid.
    """
    given = values["agent"]
    if not given:
        return False, []
    settings = swap_settings.text(given["swap"]) if given["swap"] else None
    units = agent_service.Units(paths, given["address"], given["port"], swap_settings=settings)
    problems = input_check.agent_problems(given["address"], given["port"], units.agent_pid, values["instances"])
    return units.changed, problems


def services(module: Call, paths: Paths) -> dict[str, Any]:
    """Whether inferctl and the engines' units differ from what they must be, and which engines would start.

    Raises SystemdError, OSError, ValueError.
    """
    if not module.params["agent"]:
        return {"tool_due": False, "services_due": False, "starts": []}
    service = engine_service.Service(module, paths)
    # Here, this service only compares, even outside check mode.
    service.check_mode = True
    names = service.without_swap([raw["name"] for raw in present_instances(module.params["instances"])])
    starts = service.start(names)
    return {
        "tool_due": bool(node_tool.install(paths, check=True)["files"]),
        "services_due": service.changed or service.waits,
        "starts": starts,
    }


def refuse(module: Call, problems: Sequence[Problem]) -> None:
    """Fail with all problems."""
    lines = "\n".join(f"- {problem}" for problem in problems)
    found = [misfit(problem) for problem in problems]
    module.fail_json(msg=f"Nothing was changed. To correct:\n{lines}", problems=found)


def run(module: Call) -> None:
    """Answer a call."""
    values, paths = module.params, Paths()
    hardware, docker = plans.Hardware(paths.root), module.get_bin_path("docker")
    space, problems = image_space(module)
    problems += machine_problems(os.uname().machine)
    version = image_version.find(values["engine_version"], values["image"], paths.registry, docker, module.run_command)
    settings = read_settings(
        values["settings"], *users.ids_or_root(values["user"]), values["environment"], values["secret_environment"]
    )
    instances, gpus = values["instances"], values["gpus"]
    gangs: list[dict[str, Any]] = []
    if gpus is None and want_gpus(instances):
        gpus = hardware.gpus
    own_versions = image_version.of_instances(instances, paths.registry, docker, module.run_command)
    declared = Declared.read(values["models"], instances, version, gpus, own_versions)
    # If an instance asks for missing GPUs, `declared` leaves it out.
    # This list still has it, so its other mistakes are found.
    reachable = Declared.read(values["models"], instances, version, None, own_versions).instances
    copied = {source: Copied.from_dict(value) for source, value in values["flag_files"].items()}
    secrets = values["instance_secrets"]
    common = Common(declared, values["image"], settings, users.ids, secrets, copied, values["gang_key"])
    made = []
    differs: dict[str, Any] = {}
    warned: list[str] = []
    try:
        site = gang_site.Site.from_dict(values["gangs"])
        transport = Transport.from_dict(values["network"])
        wrong = input_problems(values, declared, reachable, settings, paths, site, transport)
        problems += wrong.problems
        warned = [*declared.warnings, *map(str, wrong.warnings)]
        problems += own_problems(common, instances)
        agent_due, found_problems = agent(values, paths)
        problems += found_problems
        if values["strict"]:
            problems += input_check.image_problems(values["image"])
            problems += input_check.source_problems(declared.models, instances)
            problems += input_check.prompt_problems(declared.served, Path(settings.store_path))
            problems += input_check.golden_problems(declared.served, declared.adapters_of, Path(settings.store_path))
            problems += input_check.routing_problems(declared.served, declared.models, Path(settings.store_path))
            for warning in warned:
                module.warn(warning)
            if problems:
                refuse(module, problems)
        differs = services(module, paths)
        if values["fit"]:
            planner = Planner(module, paths, replace(common, ids=users.ids_or_root), site, transport)
            made, gangs = planner.all(hardware), planner.gangs
    except (SystemdError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    orphans = sorted(set(bridges.instances(paths)) - {raw.get("name") for raw in present_instances(instances)})
    found = [misfit(problem) for problem in problems]
    verdict = plans.verdict(made) if values["fit"] else None
    module.exit_json(
        changed=False,
        ok=False if found else verdict,
        plans=made,
        problems=found,
        warned=warned,
        orphans=orphans,
        gangs=gangs,
        image_space=space,
        agent_due=agent_due,
        **differs,
        engine_version=version,
        catalogue_version=declared.catalogue.version,
        text=plan_text.of_node(made, found, warned, orphans) if values["fit"] else "",
    )
