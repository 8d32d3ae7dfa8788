# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands that guides show exist: subcommands and options of inferctl, playbooks with their variables and tags."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.node.cli import inferctl, plan
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor import catalogue

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[3]
GUIDES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "roles").glob("*/README.md")))
PLAYBOOKS = {file.stem: file.read_text(encoding="utf-8") for file in (ROOT / "playbooks").glob("*.yml")}
SHARED = "".join(
    file.read_text(encoding="utf-8")
    for folder in ("vars", "tasks")
    for file in sorted((ROOT / "playbooks" / folder).glob("*.yml"))
)
"""Files that all playbooks read."""

PLACEHOLDERS = {"RELEASE": "3", "…": "x", "TEXT": "x", "CHECK": "gpu-xids", "COLLECTOR": "gpus"}
"""Words of guides that stand for a value, with a value of the right type."""


def shown(program: str) -> Iterator[tuple[str, str]]:
    """Place and text of each command of the program: a line of a console block, or words between backquotes."""
    for file in GUIDES:
        text = file.read_text(encoding="utf-8")
        place = file.relative_to(ROOT)
        for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                if (found := re.match(rf"[$#] (?:sudo )?({program}.*)", line)) is not None:
                    yield str(place), re.split(r"\s+#", found[1])[0].strip()
        for words in re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
            if re.match(program, words):
                yield str(place), words


def words_of(command: str) -> list[str]:
    return [PLACEHOLDERS.get(word, word) for word in shlex.split(command)]


def test_inferctl_accepts_every_command_of_the_guides(capsys: pytest.CaptureFixture[str]) -> None:
    wrong, count = [], 0
    for place, command in shown("inferctl "):
        arguments = words_of(command)[1:]
        if arguments in (["COMMAND", "--help"], ["supervise"], ["agent"]):
            continue
        if len(arguments) == 1 and arguments[0] in ("drain", "undrain", "swap", "rollback", "wait-ready"):
            continue  # The name of the command in running text.
        count += 1
        words, _engine_words = plan.split(arguments)
        try:
            options = inferctl._parser().parse_args(words)
        except SystemExit:
            wrong.append(f"{place}: {command}: {capsys.readouterr().err.splitlines()[-1]}")
            continue
        if options.command == "doctor":
            known = {check.name for check in catalogue.CHECKS} | {check.kind for check in catalogue.CHECKS}
            wrong += [f"{place}: {command}: no check {name}" for name in options.names if name not in known]
    assert wrong == []
    assert count > 100


def variables_of(words: list[str]) -> Iterator[str]:
    """Names of the variables after each -e."""
    for option, value in itertools.pairwise(words):
        if option == "-e":
            yield from (yaml.safe_load(value) if value.startswith("{") else [value.partition("=")[0]])


def test_playbooks_read_the_variables_and_have_the_tags_of_the_guides() -> None:
    options = {
        name
        for file in (ROOT / "roles").glob("*/meta/argument_specs.yml")
        for entry in yaml.safe_load(file.read_text(encoding="utf-8"))["argument_specs"].values()
        for name in entry.get("options", {})
    }
    tags: set[str] = {
        tag
        for folder in ("playbooks", "roles")
        for file in (ROOT / folder).rglob("*.yml")
        for line in re.findall(r"tags: \[(.*?)\]", file.read_text(encoding="utf-8"))
        for tag in line.split(", ")
    }
    maintenance = yaml.safe_load((ROOT / "roles/maintenance/defaults/main.yml").read_text(encoding="utf-8"))
    tags.update(maintenance["maintenance_parts"])
    wrong, count = [], 0
    for place, command in [*shown("ansible-playbook "), *shown(r"baremetal\.inference\.")]:
        name = re.search(r"baremetal\.inference\.(\w+)", command)
        if name is None or name[1] == "NAME" or (name[1] not in PLAYBOOKS and command.startswith("baremetal")):
            continue  # A name in general, a module, a role or a filter.
        if name[1] not in PLAYBOOKS:
            wrong.append(f"{place}: {command}: no such playbook")
            continue
        count += 1
        words = words_of(command)
        text = PLAYBOOKS[name[1]] + SHARED
        wrong += [
            f"{place}: {command}: nothing reads {variable}"
            for variable in variables_of(words)
            if variable not in options and not re.search(rf"\b{variable}\b", text)
        ]
        for option, value in itertools.pairwise(words):
            if option == "--tags":
                wrong += [f"{place}: {command}: no tag {tag}" for tag in value.split(",") if tag not in tags]
    assert wrong == []
    assert count > 150
