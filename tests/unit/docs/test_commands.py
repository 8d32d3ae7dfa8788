# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands that guides and messages show exist: inferctl with its options, playbooks with variables and tags."""

from __future__ import annotations

import argparse
import functools
import itertools
import re
import shlex
from collections.abc import Iterable, Iterator

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.engine.units.metrics_units import GROUPS
from ansible_collections.baremetal.inference.plugins.module_utils.node.cli import inferctl, plan
from ansible_collections.baremetal.inference.plugins.module_utils.node.collectors import catalogue as collectors
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor import catalogue as checks

from .guides import ROOT, code, shown

pytestmark = pytest.mark.once

PLAYBOOKS = {file.stem: file.read_text(encoding="utf-8") for file in (ROOT / "playbooks").glob("*.yml")}
SHARED = "".join(
    file.read_text(encoding="utf-8")
    for folder in ("vars", "tasks")
    for file in sorted((ROOT / "playbooks" / folder).glob("*.yml"))
)
"""The files that playbooks share."""

PLACEHOLDERS = {"RELEASE": "3", "…": "x", "TEXT": "x", "CHECK": "gpu-xids", "COLLECTOR": "gpus"}
"""Words of guides that stand for a value, with a value of the right type."""


def words_of(command: str) -> list[str]:
    return [PLACEHOLDERS.get(word, word) for word in shlex.split(command)]


# --- inferctl


def test_inferctl_accepts_every_command_of_the_guides(capsys: pytest.CaptureFixture[str]) -> None:
    wrong, count = [], 0
    parser = inferctl._parser()
    for place, command in shown("inferctl "):
        arguments = words_of(command)[1:]
        if arguments in (["COMMAND", "--help"], ["supervise"], ["agent"]):
            continue
        if len(arguments) == 1 and arguments[0] in ("drain", "undrain", "swap", "rollback", "wait-ready"):
            continue  # The name of the command in running text.
        count += 1
        words, _engine_words = plan.split(arguments)
        try:
            options = parser.parse_args(words)
        except SystemExit:
            wrong.append(f"{place}: {command}: {capsys.readouterr().err.splitlines()[-1]}")
            continue
        names: Iterable[str] = options.names if options.command in KNOWN else ()
        wrong += [f"{place}: {command}: no {name}" for name in names if name not in KNOWN[options.command]]
    assert not wrong, "\n".join(wrong)
    assert count > 200


KNOWN = {
    "doctor": {word for check in checks.CHECKS for word in (check.name, check.kind)},
    "metrics": {*collectors.COLLECTORS, *GROUPS},
}
"""The names that these commands take."""


@functools.cache
def options_of_inferctl() -> dict[str, set[str]]:
    """The options of each command, with those of its own commands."""

    def parsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
        inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        return {name: each for action in inner for name, each in action.choices.items()}

    def options(parser: argparse.ArgumentParser) -> set[str]:
        own = {word for action in parser._actions for word in action.option_strings}
        return own.union(*map(options, parsers(parser).values()))

    return {name: options(parser) for name, parser in parsers(inferctl._parser()).items()}


def test_messages_name_commands_and_options_of_inferctl() -> None:
    """Names of tasks and comments are read, too. A command ends before the next punctuation mark or quote."""
    wrong, count = [], 0
    for words in re.findall(r"\binferctl ([a-z][^\n\"'`;:,()|\\]*)", code()):
        command, *rest = words.split()
        if command in ("and", "cannot", "on", "or"):
            continue  # A sentence about the tool.
        count += 1
        if command.rstrip(".") not in options_of_inferctl():
            wrong.append(f"inferctl {words}: no command {command}")
            continue
        given = [word.rstrip(".").partition("=")[0] for word in rest if word.startswith("--")]
        wrong += [f"inferctl {words}: no option {word}" for word in given if word not in options_of_inferctl()[command]]
    assert not wrong, "\n".join(wrong)
    assert count > 80


# --- playbooks


def variables_of(words: list[str]) -> Iterator[str]:
    """Names of the variables after each -e."""
    for option, value in itertools.pairwise(words):
        if option == "-e":
            yield from (yaml.safe_load(value) if value.startswith("{") else [value.partition("=")[0]])


@functools.cache
def variables() -> frozenset[str]:
    """The variables of all roles that a site may set."""
    return frozenset(
        name
        for file in (ROOT / "roles").glob("*/meta/argument_specs.yml")
        for entry in yaml.safe_load(file.read_text(encoding="utf-8"))["argument_specs"].values()
        for name in entry.get("options", {})
    )


def read_by(playbook: str, variable: str) -> bool:
    return variable in variables() or re.search(rf"\b{variable}\b", PLAYBOOKS[playbook] + SHARED) is not None


def test_playbooks_read_the_variables_and_have_the_tags_of_the_guides() -> None:
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
        unread = (variable for variable in variables_of(words) if not read_by(name[1], variable))
        wrong += [f"{place}: {command}: nothing reads {variable}" for variable in unread]
        for option, value in itertools.pairwise(words):
            if option == "--tags":
                wrong += [f"{place}: {command}: no tag {tag}" for tag in value.split(",") if tag not in tags]
    assert not wrong, "\n".join(wrong)
    assert count > 250


def test_messages_name_playbooks_and_their_variables() -> None:
    wrong, count = [], 0
    for name, words in re.findall(r"baremetal\.inference\.(\w+)((?: -{1,2}\w[^\n\"'`;|]*)?)", code()):
        if name not in PLAYBOOKS:
            continue
        for variable in re.findall(r" -e [\"']?(\w+)", words):
            count += 1
            if not read_by(name, variable):
                wrong.append(f"baremetal.inference.{name}{words}: nothing reads {variable}")
    assert not wrong, "\n".join(wrong)
    assert count > 10
