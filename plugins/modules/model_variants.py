#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: model_variants
short_description: Check models with a system prompt, or publish them in the store of a node
version_added: 0.1.0
description:
  - For every entry of the registry with a C(system-prompt) that an instance serves, publishes a directory under
    C(STORE/NAME/REVISION). It has links to the base's files, the prompt, and the model's own chat templates with the
    prompt in front. Weights exist once.
  - Before anything changes, O(state=checked) reads the files of those models and refuses every model that cannot carry
    a prompt.
  - A template is a program of whoever made the model. So it is rendered and tried in a container of the engine's image,
    without network or rights, by the Jinja that the engine itself has.
  - A published revision is never modified. One that was altered is replaced as a whole.
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  state:
    description:
      - V(checked) only reads. It fails with every model whose chats the engine writes without a chat template, or that
        has none, and names the way out. It skips a model whose files are not on this machine.
      - V(published) tries the template with the prompt, and publishes. It needs O(store), O(places) and O(image).
    type: str
    choices: [checked, published]
    default: published
  origin:
    description:
      - Which models V(checked) reads, those whose C(model) begins with C(controller:), or all others.
      - The module reads files of the machine it runs on. Delegate it to the controller for V(controller).
    type: str
    choices: [controller, node]
    default: node
  store:
    description: The root of the store. V(checked) reads models that are published there already.
    type: path
  places:
    description: Where the store keeps each model, as M(baremetal.inference.model) returns it.
    type: dict
  fast_path:
    description:
      - The root of the fast copies, as of M(baremetal.inference.model_fast_copy), where each model with a system prompt
        gets a directory of the same links. They lead to the base's fast copy where there is one. Empty for none.
    type: str
    default: ""
  image:
    description: The engine's image, which the node must have; in check mode it need not.
    type: str
extends_documentation_fragment:
  - baremetal.inference.registry
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - As long as the image or the model are not on the node, the revision stands as C(REVISION).
  diff_mode:
    support: full
seealso:
  - module: baremetal.inference.model
  - module: baremetal.inference.engine_release
requirements:
  - the library of the node tool, which M(baremetal.inference.node_tool) installs
"""

EXAMPLES = r"""
- name: Check the prompts of the models on the controller
  baremetal.inference.model_variants:
    state: checked
    instances: "{{ instances }}"
    models: "{{ models }}"
    origin: controller
  delegate_to: localhost
  become: false

- name: Publish the models with a system prompt
  baremetal.inference.model_variants:
    store: /mnt/models
    instances: "{{ instances }}"
    models: "{{ models }}"
    places: "{{ model_store_places }}"
    image: "{{ engine_image }}"
  register: variants
"""

RETURN = r"""
checked:
  description: The registry's entries whose model was read.
  returned: O(state=checked), success
  type: list
  elements: str
places:
  description: Where each model with a system prompt lies, or will lie, by the registry's name.
  returned: O(state=published), success
  type: dict
  sample:
    support-bot:
      path: /mnt/models/support-bot/0f4e5cab12cd
      revision: 0f4e5cab12cd
published:
  description: The directories that were published, or would be in check mode.
  returned: O(state=published)
  type: list
  elements: str
"""

import json
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError, Problem, nearest
from ansible_collections.baremetal.inference.plugins.module_utils.engine.container import python_argv
from ansible_collections.baremetal.inference.plugins.module_utils.engine.declared import Declared
from ansible_collections.baremetal.inference.plugins.module_utils.models.manifest import MANIFEST, NAME, find_files
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.entries import Entry
from ansible_collections.baremetal.inference.plugins.module_utils.store import stored, variant_files, variants
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.source import CONTROLLER, NODE, PREFIX
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import make_directory
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored import NOT_KNOWN
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel
from ansible_collections.baremetal.inference.plugins.module_utils.store.variant_files import Variant

CHECKED = "checked"
PUBLISHED = "published"

RENDER_SECONDS = 60
"""A template renders in milliseconds: one that takes a minute never ends."""

PROMPTS = "models/prompts"
"""The package of the node's library that renders."""

CODE = """\
import signal, sys
signal.alarm({seconds})
sys.path.insert(0, {directory!r})
from {package}.models.prompts.command import main
raise SystemExit(main())
"""


class Publisher:
    """Publishes the variants of a node one by one."""

    def __init__(self, module: AnsibleModule, paths: Paths) -> None:
        self._module = module
        self._store = Path(module.params["store"])
        self._fast = Path(module.params["fast_path"]) if module.params["fast_path"] else None
        self._library = paths.library
        self._docker = module.get_bin_path("docker")
        self.published: list[str] = []

    def variant(self, entry: Entry) -> StoredModel:
        """Publish one, unless it is. Raises InputError and OSError."""
        places, where = self._module.params["places"], f"models.{entry.name}"
        if not NAME.match(entry.name):
            message = "cannot name a directory: use letters, digits, dot, dash and underscore"
            raise InputError([Problem(where, message)])
        if entry.store_name not in places:
            message = f"is not among the store's models: {nearest(entry.store_name, places)}"
            raise InputError([Problem(where, message, "base", entry.store_name)])
        root = Path(places[entry.store_name]["path"])
        if self._module.check_mode and not self._can_render(root):
            path = self._store / entry.name / NOT_KNOWN
            self.published.append(str(path))
            return StoredModel(str(path), NOT_KNOWN)
        if problems := variants.check_model(entry, root):
            raise InputError(problems)
        base = variants.read_base(entry, root)
        prompt, policy = str(entry.system_prompt), entry.system_prompt_policy
        wanted = variant_files.plan(entry.name, base, prompt, policy, self._wrap(entry, root))
        self._publish(self._store, wanted)
        if self._fast is not None:
            try:
                self._publish(self._fast, wanted)
            except OSError as error:
                self._module.warn(f"{where}: {error}: it is served from the store")
                make_directory(self._fast / entry.name)
                files.link(self._fast / entry.name / wanted.revision, str(self._store / entry.name / wanted.revision))
        return StoredModel(str(self._store / entry.name / wanted.revision), wanted.revision)

    def _publish(self, root: Path, wanted: Variant) -> None:
        """Have a variant below a root, as a whole. Raises OSError."""
        path = root / wanted.name / wanted.revision
        damage = variants.damage(path, wanted)
        for found in damage:
            self._module.warn(f"{found}; the whole revision is replaced by an intact one")
        if damage or not path.is_dir():
            self.published.append(str(path))
            if not self._module.check_mode:
                variants.publish(root, wanted)

    def _can_render(self, root: Path) -> bool:
        """Whether everything is there already that a fresh node gets before."""
        if not self._docker or not (root / MANIFEST).is_file() or not (self._library / PROMPTS).is_dir():
            return False
        return bool(self._module.run_command([self._docker, "image", "inspect", self._module.params["image"]])[0] == 0)

    def _wrap(self, entry: Entry, root: Path) -> dict[str, str]:
        """The files with the model's templates, with the prompt in each. Raises InputError."""
        where = f"models.{entry.name}"
        if not self._docker:
            raise InputError([Problem(where, "docker is not on this node, whose engine's image tries the template")])
        request = {
            "texts": variants.read_templates(find_files(root, where)[0]),
            "prompt": entry.system_prompt,
            "policy": entry.system_prompt_policy,
            "where": where,
        }
        library = str(self._library)
        code = CODE.format(seconds=RENDER_SECONDS, directory=str(self._library.parent), package=self._library.name)
        argv = python_argv(
            self._docker,
            self._module.params["image"],
            code,
            # As a child of an init, so that the alarm's signal ends it.
            *("--init", "--interactive", "--user=65534:65534", "--memory=2g", "--pids-limit=64"),
            f"--mount=type=bind,source={library},target={library},readonly",
        )
        status, output, errors = self._module.run_command(argv, data=json.dumps(request))
        try:
            answer = json.loads(output) if status == 0 else None
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            last = (errors.strip() or "no message").rpartition("\n")[2]
            message = (
                f"the engine's image could not put the prompt into the chat template (exit {status}: {last}); one that "
                f"takes more than {RENDER_SECONDS} s is given up"
            )
            raise InputError([Problem(where, message, "system-prompt")])
        if answer["problems"]:
            raise InputError([Problem(found["where"], found["message"]) for found in answer["problems"]])
        return {str(file): str(text) for file, text in answer["files"].items()}


class Checker:
    """Reads the models of this machine that have a system prompt."""

    def __init__(self, origin: str, store: Path | None) -> None:
        self._origin = origin
        self._store = store or Path("/nonexistent")
        self.checked: list[str] = []

    def check(self, entry: Entry) -> list[Problem]:
        """What stands against the prompt of an entry. Raises OSError."""
        root = self._directory(entry)
        # A model that is missing is reported with the models.
        if root is None or not root.is_dir():
            return []
        self.checked.append(entry.name)
        return variants.check_model(entry, root)

    def _directory(self, entry: Entry) -> Path | None:
        """Where this machine has the files of an entry's model; None where it has none, or another machine has them."""
        from_controller = entry.model.startswith(PREFIX)
        if from_controller != (self._origin == CONTROLLER):
            return None
        if from_controller:
            return Path(entry.model.removeprefix(PREFIX))
        return stored.find(self._store, entry).files


def check(module: AnsibleModule, with_prompt: list[Entry]) -> None:
    """Answer for the state `checked`."""
    checker = Checker(module.params["origin"], Path(module.params["store"]) if module.params["store"] else None)
    try:
        problems = [problem for entry in with_prompt for problem in checker.check(entry)]
    except OSError as error:
        module.fail_json(msg=str(error))
    if problems:
        module.fail_json(msg=f"Nothing was changed. {InputError(problems)}")
    module.exit_json(changed=False, checked=checker.checked)


def publish(module: AnsibleModule, with_prompt: list[Entry]) -> None:
    """Answer for the state `published`."""
    publisher = Publisher(module, Paths())
    made: dict[str, StoredModel] = {}
    problems: list[Problem] = []
    for entry in with_prompt:
        try:
            made[entry.name] = publisher.variant(entry)
        except InputError as error:
            problems += error.problems
        except OSError as error:
            problems.append(Problem(f"models.{entry.name}", str(error)))
    if problems:
        module.fail_json(msg=str(InputError(problems)), published=publisher.published)
    module.exit_json(
        changed=bool(publisher.published),
        places={name: {"path": each.path, "revision": each.revision} for name, each in made.items()},
        published=publisher.published,
        diff={"before": "", "after": "".join(f"{path}\n" for path in publisher.published)},
    )


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": [CHECKED, PUBLISHED], "default": PUBLISHED},
            "origin": {"type": "str", "choices": [CONTROLLER, NODE], "default": NODE},
            "store": {"type": "path"},
            "instances": {"type": "list", "elements": "dict", "required": True},
            "models": {"type": "dict", "required": True},
            "places": {"type": "dict"},
            "fast_path": {"type": "str", "default": ""},
            "image": {"type": "str"},
        },
        required_if=[("state", PUBLISHED, ("store", "places", "image"))],
        supports_check_mode=True,
    )
    # Mistakes in the registry itself are reported by engine_plan, which knows the engine's version.
    served = Declared.read(module.params["models"], module.params["instances"]).served
    with_prompt = [entry for entry in served if entry.system_prompt is not None]
    (check if module.params["state"] == CHECKED else publish)(module, with_prompt)


if __name__ == "__main__":
    main()
