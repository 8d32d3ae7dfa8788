# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The implementation of the module model_variants."""

from __future__ import annotations

import json
from pathlib import Path

from ...core.call import Call
from ...core.controller import ON_CONTROLLER
from ...core.paths import Paths
from ...core.problems import InputError, Problem, nearest
from ...engine.container import python_argv
from ...engine.declared import Declared
from ...models.manifest import MANIFEST, NAME, find_files
from ...models.registry.entries import Entry
from ...store import stored, variant_files, variants
from ...store.sources.source import CONTROLLER
from ...store.store import put_link_in_place
from ...store.stored import NOT_KNOWN
from ...store.stored_model import StoredModel
from ...store.variant_files import Variant

CHECKED = "checked"
PUBLISHED = "published"

RENDER_SECONDS = 60
"""Rendering takes milliseconds. A template that takes a minute will not end."""

PROMPTS = "models/prompts"
"""The package of the node's library that renders templates."""

CODE = """\
import signal, sys
signal.alarm({seconds})
sys.path.insert(0, {directory!r})
from {package}.models.prompts.command import main
raise SystemExit(main())
"""


class Publisher:
    """Publishes the variants of a node one by one."""

    def __init__(self, module: Call, paths: Paths) -> None:
        self._module = module
        self._store = Path(module.params["store"])
        self._fast = Path(module.params["fast_path"]) if module.params["fast_path"] else None
        self._library = paths.library
        self._docker = module.get_bin_path("docker")
        self.published: list[str] = []

    def variant(self, entry: Entry) -> StoredModel:
        """Publish one variant, unless it is published. Raises InputError and OSError."""
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
                self._module.warn(f"{where}: {error}: the variant is served from the store")
                if not self._module.check_mode:
                    self._link(self._fast / entry.name / wanted.revision, self._store / entry.name / wanted.revision)
        return StoredModel(str(self._store / entry.name / wanted.revision), wanted.revision)

    def _publish(self, root: Path, wanted: Variant) -> None:
        """Publish a variant below a root, as a whole. Raises OSError."""
        path = root / wanted.name / wanted.revision
        damage = variants.damage(path, wanted)
        for found in damage:
            self._module.warn(f"{found}; the whole revision is replaced by an intact one")
        # A link to the store: an earlier run could not write the variant to the fast disk.
        if damage or path.is_symlink() or not path.is_dir():
            if not self._module.check_mode:
                variants.publish(root, wanted)
            self.published.append(str(path))

    def _link(self, path: Path, target: Path) -> None:
        """Make `path` a link to a variant in the store, so that engines load the variant from there. Raises OSError."""
        if put_link_in_place(path, str(target)):
            self.published.append(str(path))

    def _can_render(self, root: Path) -> bool:
        """Whether the node has Docker, image, model and library. In check mode, a fresh node does not have them yet."""
        if not self._docker or not (root / MANIFEST).is_file() or not (self._library / PROMPTS).is_dir():
            return False
        return bool(self._module.run_command([self._docker, "image", "inspect", self._module.params["image"]])[0] == 0)

    def _wrap(self, entry: Entry, root: Path) -> dict[str, str]:
        """The files with the model's templates, with the prompt in each. Raises InputError."""
        where = f"models.{entry.name}"
        if not self._docker:
            raise InputError([Problem(where, "needs docker on this node, to try the template in the engine's image")])
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
            # With an init as parent, so that the signal of the alarm ends the process.
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
                f"the engine's image could not put the prompt into the chat template (exit {status}: {last}). A "
                f"template may take at most {RENDER_SECONDS} s: correct it, or remove the entry's system-prompt"
            )
            raise InputError([Problem(where, message, "system-prompt")])
        if answer["problems"]:
            raise InputError([Problem(found["where"], found["message"]) for found in answer["problems"]])
        return {str(file): str(text) for file, text in answer["files"].items()}


class Checker:
    """Checks the models of this machine whose entries have a system prompt."""

    def __init__(self, origin: str, store: Path | None) -> None:
        self._origin = origin
        self._store = store or Path("/nonexistent")
        self.checked: list[str] = []

    def check(self, entry: Entry) -> list[Problem]:
        """Reasons why a model cannot get the prompt of its entry. Raises OSError."""
        root = self._directory(entry)
        # The module `model` reports a missing model.
        if root is None or not root.is_dir():
            return []
        self.checked.append(entry.name)
        return variants.check_model(entry, root)

    def _directory(self, entry: Entry) -> Path | None:
        """The files of an entry's model on this machine; None if they are missing, or on another machine."""
        from_controller = entry.model.startswith(ON_CONTROLLER)
        if from_controller != (self._origin == CONTROLLER):
            return None
        if from_controller:
            return Path(entry.model.removeprefix(ON_CONTROLLER))
        return stored.find(self._store, entry).files


def check(module: Call, with_prompt: list[Entry]) -> None:
    """Answer for the state `checked`."""
    checker = Checker(module.params["origin"], Path(module.params["store"]) if module.params["store"] else None)
    try:
        problems = [problem for entry in with_prompt for problem in checker.check(entry)]
    except OSError as error:
        module.fail_json(msg=str(error))
    if problems:
        module.fail_json(msg=f"Nothing was changed. {InputError(problems)}")
    module.exit_json(changed=False, checked=checker.checked)


def publish(module: Call, with_prompt: list[Entry]) -> None:
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


def run(module: Call) -> None:
    """Answer a call."""
    # The module engine_plan reports the mistakes of the model registry: it has the engine's version.
    served = Declared.read(module.params["models"], module.params["instances"]).served
    with_prompt = [entry for entry in served if entry.system_prompt is not None]
    (check if module.params["state"] == CHECKED else publish)(module, with_prompt)
