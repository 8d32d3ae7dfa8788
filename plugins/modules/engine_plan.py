#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: engine_plan
short_description: Check what the engines of a node must run, and plan whether it fits, before anything changes
version_added: 0.1.0
description:
  - Checks the instances and the registry, the GPUs that instances ask for, what every container shares, the addresses
    and ports that engines would listen on, and what engines that serve are reached by. If O(strict) is set, also the
    image, and the system prompts of models on the node.
  - The registry's engine flags are checked by the catalogue of the engine's version, or by the nearest that there is.
  - Plans every present instance without a mistake of its own, if O(fit) is set. A plan holds the exact command, the
    memory that it takes of the GPUs, what would change against what runs now, and every problem. Models are read where
    their files are on the node, in the store or at a source of theirs. Of other models, O(facts) may tell, or else
    nothing is known but their flags.
  - Reads only, and asks no other machine.
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  strict:
    description:
      - Whether to fail with every mistake at once, and to warn of what works but is deprecated, or is not known for
        sure. Otherwise both are returned alone.
      - A plan that does not fit is never a failure.
    type: bool
    default: false
  fit:
    description: Whether to plan every instance. Otherwise only the input is checked.
    type: bool
    default: true
  facts:
    description:
      - What is known of models that are not on the node yet, by the name of the entry that has the weights, as
        M(baremetal.inference.model_facts) returns it.
    type: dict
    default: {}
  coming:
    description:
      - The revision of each model that is still to be published, or once more because its files are damaged, by the
        name of the entry that has the weights, as M(baremetal.inference.model) returns it. Of these, nothing
        is read in the store.
    type: dict
    default: {}
  gpus:
    description:
      - The node's GPUs, as the fact C(gpus) of M(baremetal.inference.gpu_facts). Every GPU that an instance asks for
        must be one of them, and free. Before the driver works, only their number counts.
      - If omitted, the node is asked where an instance runs on GPUs.
    type: list
    elements: dict
  image_gib:
    description:
      - Free space in GiB that pulling the image needs, for the check of the disk. If omitted, the disk is not checked.
    type: int
  docker_data_root:
    description: Where Docker will keep its images; a Docker that runs already is asked instead.
    type: path
    default: /var/lib/docker
  cdi_problem:
    description: Why containers of this node cannot ask for GPUs by CDI name. Empty where they can.
    type: str
    default: ""
  gateways:
    description:
      - Whether gateways are in front of the engines. They take addresses and API keys from the inventory at once, so
        that those of an engine that serves must not differ from it. The keys are compared, and never shown.
    type: bool
    default: false
  agent:
    description: The node's agent, to check where it would listen, and whether it is as it must be.
    type: dict
    suboptions:
      address:
        description: The address that it listens on.
        type: str
        required: true
      port:
        description: The port that it listens on.
        type: int
        required: true
extends_documentation_fragment:
  - baremetal.inference.engine
  - baremetal.inference.registry
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
seealso:
  - module: baremetal.inference.engine_release
"""

EXAMPLES = r"""
- name: Check instances, registry, ports and disk
  baremetal.inference.engine_plan:
    strict: true
    fit: false
    instances: "{{ instances }}"
    models: "{{ models }}"
    image: "{{ engine_image }}"
    engine_version: 0.32.0
    image_gib: 30
    user: inference
    settings: "{{ settings }}"

- name: Plan the engines of this node
  baremetal.inference.engine_plan:
    instances: "{{ instances }}"
    models: "{{ models }}"
    image: registry.example.com/vllm@sha256:0f4e5c…
    user: inference
    settings:
      store_path: /mnt/models
  register: plan

- name: Report the plan
  ansible.builtin.debug:
    msg: "{{ plan.text }}"
"""

RETURN = r"""
ok:
  description:
    - Whether everything fits and nothing is wrong; null where no check has failed, and not everything is known.
  returned: success
  type: bool
text:
  description: The plan as a table for people; empty without O(fit).
  returned: success
  type: str
problems:
  description: Mistakes in instances, registry, settings and the node, which are no single plan's.
  returned: always
  type: list
  elements: dict
  contains: &problem
    check:
      description: What was checked.
      type: str
      sample: inventory
    key:
      description: The variable, flag or fact that it failed for.
      type: str
      sample: "models.qwen3-8b: dtypee"
    value:
      description: What was found.
      type: raw
    message:
      description: What is wrong with it, and what to do.
      type: str
    fits:
      description: What would pass the check. Each item is enough by itself.
      type: list
      elements: dict
      sample: [{"tensor-parallel-size": 4}]
warned:
  description: What works, but not as its author may think, such as deprecated flags.
  returned: success
  type: list
  elements: str
orphans:
  description: Instances found on the node that are not declared as present.
  returned: success
  type: list
  elements: str
image_space:
  description:
    - Space in GiB that the image will take, by the directory that it goes to. Empty where the node has the image, or
      the disk was not checked.
  returned: success
  type: dict
agent_due:
  description:
    - Whether the units of agent and metrics, or their state, differ from what they must be. V(false) without O(agent).
  returned: success
  type: bool
engine_version:
  description: The version of vLLM in the image. Empty where that is not known.
  returned: success
  type: str
  sample: 0.32.0
catalogue_version:
  description: The version of vLLM whose flags the registry was checked by.
  returned: success
  type: str
  sample: 0.32.0
plans:
  description: The plan of each present instance without a mistake of its own; none without O(fit).
  returned: success
  type: list
  elements: dict
  contains:
    ok:
      description: Whether it fits; null where nothing speaks against it, and not everything is known.
      type: bool
    instance:
      description: The instance.
      type: str
    model:
      description: The registry's entry.
      type: str
    revision:
      description: The revision of its weights; null where only their source tells it.
      type: str
    argv:
      description: The exact command, inside the container.
      type: list
      elements: str
    gpus:
      description: Its GPUs, by index or UUID.
      type: list
      elements: str
    devices:
      description: What it computes on.
      type: list
      elements: dict
      contains:
        name:
          description: The product.
          type: str
        memory_mib:
          description: Memory in MiB, without what the driver keeps; null where unknown.
          type: int
        compute_capability:
          description: Compute capability; null where unknown, and of processors.
          type: str
    estimate:
      description: Memory of the device that has the most to hold; null where unknown.
      type: dict
      contains:
        budget_gib:
          description: What the engine may take, in GiB.
          type: float
        weights_gib:
          description: Weights, in GiB.
          type: float
        overhead_gib:
          description: What is computed with, in GiB.
          type: float
        kv_cache_gib:
          description: What is left for the KV cache, in GiB.
          type: float
        kv_cache_tokens:
          description: Tokens that fit into it, as requests of full length.
          type: int
        max_model_len:
          description: The longest request, in tokens.
          type: int
        max_concurrency:
          description: Requests of full length that fit at once.
          type: float
        spare_gib:
          description: What is left beyond one of them, in GiB; less than nothing if it does not fit.
          type: float
    change:
      description: What becomes of what runs now.
      type: dict
      contains:
        action:
          description: V(none); V(start), by C(site.yml), for it does not run; V(update), for another release serves.
          type: str
        active:
          description: The release whose unit is installed; null before the first.
          type: int
        desired:
          description:
            - The release that would run; null where it is not staged yet. The one that is pinned, where a rollback or a
              model that was set for once stands in the place of what the inventory asks for.
          type: int
        served:
          description: Whether that release has served on this node before.
          type: bool
        differences:
          description: Lines of the unit that go (-) and come (+), and names of environment variables that differ.
          type: list
          elements: str
    problems:
      description: Every reason why it would not start.
      type: list
      elements: dict
      contains: *problem
    unknown:
      description: What could not be checked, and might be such a reason.
      type: list
      elements: str
    notes:
      description: What an operator should know all the same.
      type: list
      elements: str
"""

import pwd
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import defaults
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError, Problem
from ansible_collections.baremetal.inference.plugins.module_utils.core.sizes import GIB
from ansible_collections.baremetal.inference.plugins.module_utils.core.systemd import SystemdError
from ansible_collections.baremetal.inference.plugins.module_utils.engine import (
    agent_service,
    bridges,
    changes,
    image_version,
    input_check,
    plan_text,
    plans,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.declared import Declared
from ansible_collections.baremetal.inference.plugins.module_utils.engine.endpoints import (
    address_problems,
    endpoint_problems,
    running_instances,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.environment import API_KEY
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import (
    Instance,
    present_instances,
    want_gpus,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.settings import (
    ARGUMENTS,
    check_environment,
    check_settings,
    read_settings,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.memory import CPU_CACHE
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.misfit import Misfit
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.entries import Entry
from ansible_collections.baremetal.inference.plugins.module_utils.store import stored, variants

AGENT: dict[str, Any] = {
    "address": {"type": "str", "required": True},
    "port": {"type": "int", "required": True},
}


def image_space(module: AnsibleModule) -> tuple[dict[str, int], list[Problem]]:
    """Space in GiB that the image will take, by directory; and too little of it. Nothing where the node has it."""
    if module.params["image_gib"] is None:
        return {}, []
    root = Path(module.params["docker_data_root"])
    docker = module.get_bin_path("docker")
    if docker:
        if module.run_command([docker, "image", "inspect", module.params["image"]])[0] == 0:
            return {}, []
        code, told, _error = module.run_command([docker, "info", "--format", "{{.DockerRootDir}}"])
        root = Path(told.strip()) if code == 0 and told.startswith("/") else root
    needed = module.params["image_gib"]
    existing = next(path for path in (root, *root.parents) if path.exists())
    free = shutil.disk_usage(existing).free / GIB
    if free >= needed:
        return {str(existing): needed}, []
    message = (
        f"has {free:.1f} GiB free, the image needs {needed} GiB (vllm_image_gib): free space below {existing}, "
        "or move docker_data_root to a larger disk"
    )
    return {}, [Problem("disk", message, str(root))]


def cdi_problems(instances: Sequence[Instance], reason: str) -> list[Problem]:
    """Instances whose GPUs this node's Docker cannot hand out."""
    return [
        Problem(f"instance {instance.name}", f"cannot get its GPUs: {reason}", "gpus", list(instance.gpus))
        for instance in instances
        if instance.gpus
    ]


def user_ids(name: str) -> tuple[int, int]:
    """The user's ids, 0 where site.yml has not created it yet: then nothing runs that they could differ from."""
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        return 0, 0
    return user.pw_uid, user.pw_gid


def revision_in_use(paths: Paths, name: str, model: str) -> str | None:
    """The revision of a model that the instance's desired release has; None where it has another model or none."""
    try:
        number = releases.desired_number(paths, name)
        release = None if number is None else releases.load(paths, name, number)
    except (OSError, ValueError, releases.ReleaseError):
        return None
    return release.revision if release and release.model == model else None


def prompt_problems(entry: Entry, files: Path | None) -> list[Misfit]:
    """What in a model stands against the system prompt of its entry, where its files can be read."""
    if entry.system_prompt is None or files is None:
        return []
    found = variants.check_model(entry, files)
    return [Misfit("system-prompt", problem.where, None, problem.message) for problem in found]


class Planner:
    """Plans the instances of a node one by one."""

    def __init__(self, module: AnsibleModule, paths: Paths, declared: Declared, settings: Settings) -> None:
        self._module = module
        self._paths = paths
        self._declared = declared
        self._settings = settings

    def all(self, hardware: plans.Hardware) -> list[dict[str, Any]]:
        """The plans of all instances without a mistake; none with an environment that cannot be rendered.

        Raises SystemdError, OSError, ValueError.
        """
        made = []
        try:
            for instance in self._declared.instances:
                entry = self._declared.entries[instance.model]
                engine = self.engine(instance, entry)
                known = self._module.params["facts"].get(entry.store_name) if engine.path is None else None
                made.append(plans.plan(engine, hardware, ModelFacts.from_dict(known) if known else None))
        except InputError:
            # check_environment reports this.
            return []
        return made

    def engine(self, instance: Instance, entry: Entry) -> plans.Engine:
        """What an instance would run. Raises InputError and SystemdError."""
        name, image = instance.name, self._module.params["image"]
        in_use = revision_in_use(self._paths, name, instance.model)
        coming = self._module.params["coming"].get(entry.store_name)
        place = stored.find(Path(self._settings.store_path), entry, in_use, coming)
        rendered = render(instance, self._declared.arguments(entry), place.stored, image, self._settings)
        number = releases.find(self._paths, name, rendered.release.id, self._module.warn)
        wanted = changes.Texts(rendered.unit, rendered.environment)
        return plans.Engine(
            model=instance.model,
            argv=["vllm", *rendered.release.engine_argv],
            flags=entry.flags,
            instance=name,
            revision=place.revision,
            path=place.files,
            accelerator=instance.accelerator,
            gpus=instance.gpus,
            cpu_cache=self._settings.environment.get(CPU_CACHE, ""),
            change=changes.compare(self._paths, name, number, wanted),
            problems=prompt_problems(entry, place.files),
        )


def misfit(problem: Problem) -> dict[str, Any]:
    """A mistake in the input, in the form of a plan's problems."""
    key = f"{problem.where}: {problem.key}" if problem.key else problem.where
    return Misfit("inventory", key, problem.value, problem.message).to_dict()


def input_problems(
    values: dict[str, Any], declared: Declared, reachable: Sequence[Instance], settings: Settings, paths: Paths
) -> list[Problem]:
    """Every mistake in the input, and what would move under clients. Raises SystemdError, OSError, ValueError."""
    wrong_address = address_problems(settings.address)
    problems = [
        *declared.problems,
        *check_settings(vars(settings)),
        *check_environment(values["environment"], values["secret_environment"]),
        *wrong_address,
    ]
    if not wrong_address:
        key, running = settings.environment.get(API_KEY, ""), running_instances(paths)
        problems += endpoint_problems(reachable, settings.address, key, running, gateways=values["gateways"])
    if values["cdi_problem"]:
        problems += cdi_problems(reachable, values["cdi_problem"])
    return problems


def agent(values: dict[str, Any], paths: Paths) -> tuple[bool, list[Problem]]:
    """Whether the agent's services differ from what they must be, and every mistake. Raises SystemdError, OSError."""
    given = values["agent"]
    if not given:
        return False, []
    units = agent_service.Units(paths, given["address"], given["port"])
    problems = input_check.agent_problems(given["address"], given["port"], units.agent_pid, values["instances"])
    return units.changed, problems


def refuse(module: AnsibleModule, problems: Sequence[Problem]) -> None:
    """Fail with every mistake."""
    lines = "\n".join(f"- {problem}" for problem in problems)
    found = [misfit(problem) for problem in problems]
    module.fail_json(msg=f"Nothing was changed. To correct:\n{lines}", problems=found)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **ARGUMENTS,
            "strict": {"type": "bool", "default": False},
            "fit": {"type": "bool", "default": True},
            "facts": {"type": "dict", "default": {}},
            "coming": {"type": "dict", "default": {}},
            "gpus": {"type": "list", "elements": "dict"},
            "image_gib": {"type": "int"},
            "docker_data_root": {"type": "path", "default": defaults.DOCKER_DATA_ROOT},
            "cdi_problem": {"type": "str", "default": ""},
            "gateways": {"type": "bool", "default": False},
            "agent": {"type": "dict", "options": AGENT},
        },
        supports_check_mode=True,
    )
    values, paths = module.params, Paths()
    hardware, docker = plans.Hardware(paths.root), module.get_bin_path("docker")
    space, problems = image_space(module)
    version = image_version.find(values["engine_version"], values["image"], paths.registry, docker, module.run_command)
    settings = read_settings(
        values["settings"], *user_ids(values["user"]), values["environment"], values["secret_environment"]
    )
    instances, gpus = values["instances"], values["gpus"]
    if gpus is None and want_gpus(instances):
        gpus = hardware.gpus
    declared = Declared.read(values["models"], instances, version, gpus)
    # Of an instance that asks for GPUs which the node does not have, all other mistakes are reported as well.
    reachable = Declared.read(values["models"], instances, version).instances
    made = []
    try:
        problems += input_problems(values, declared, reachable, settings, paths)
        agent_due, found_problems = agent(values, paths)
        problems += found_problems
        if values["strict"]:
            problems += input_check.image_problems(values["image"])
            problems += input_check.prompt_problems(declared.served, Path(settings.store_path))
            for warning in declared.warnings:
                module.warn(warning)
            if problems:
                refuse(module, problems)
        if values["fit"]:
            made = Planner(module, paths, declared, settings).all(hardware)
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
        warned=declared.warnings,
        orphans=orphans,
        image_space=space,
        agent_due=agent_due,
        engine_version=version,
        catalogue_version=declared.catalogue.version,
        text=plan_text.of_node(made, found, declared.warnings, orphans) if values["fit"] else "",
    )


if __name__ == "__main__":
    main()
