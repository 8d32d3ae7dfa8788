# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the commands of guides name exists: modules, units, fields of the journal, targets of make, files, variables."""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring import logs

from .guides import FENCED, GUIDES, ROOT, code, code_words, shown, spans

pytestmark = pytest.mark.once


# --- modules


def documentation(module: str) -> dict[str, object]:
    """The options of a module of the collection, by its documentation."""
    text = (ROOT / f"plugins/modules/{module}.py").read_text(encoding="utf-8")
    found = re.search(r'^DOCUMENTATION = r?"""\n(.*?)^"""', text, re.DOTALL | re.MULTILINE)
    assert found, module
    return dict(yaml.safe_load(found[1]).get("options", {}))


def test_modules_have_the_options_of_the_guides() -> None:
    wrong, count = [], 0
    for place, command in shown("ansible(-doc)? "):
        name = re.search(r"baremetal\.inference\.(\w+)", command)
        if name is None or "-t role" in command:
            continue
        count += 1
        if not (ROOT / f"plugins/modules/{name[1]}.py").exists():
            wrong.append(f"{place}: {command}: no such module")
            continue
        words = shlex.split(command)
        given = words[words.index("-a") + 1] if "-a" in words else ""
        options = json.loads(given) if given.startswith("{") else re.findall(r"(\w+)=", given)
        wrong += [f"{place}: {command}: no option {each}" for each in options if each not in documentation(name[1])]
    assert not wrong, "\n".join(wrong)
    assert count > 8


# --- units and the journal

ELSEWHERE = ("restic-rest-server", "restic-rest-admin")
"""Units of a backup server, which this collection does not set up."""


def units(command: str) -> Iterator[str]:
    """The units that a command of systemctl or journalctl names, without instance and type."""
    program, *words = shlex.split(command)
    takers = ("-u", "--unit", "-fu")
    if program == "journalctl":
        found = [value for option, value in itertools.pairwise(words) if option in takers]
    else:
        values = {value for option, value in itertools.pairwise(words) if option == "-p"}
        found = [word for word in words[1:] if not word.startswith("-") and word not in values]
    for unit in found:
        yield re.sub(r"@.*|\.(service|timer|target)$", "", unit)


@functools.cache
def is_named(unit: str) -> bool:
    """Whether code names a unit."""
    if unit.endswith("*"):
        return unit[:-1] in code()
    return re.search(rf"\b{re.escape(unit)}(?=[.@\"'` ,{{}}]|$)", code(), re.MULTILINE) is not None


def test_the_code_names_every_unit_of_the_guides() -> None:
    """Code names each unit, also units of Debian's packages."""
    wrong, count = [], 0
    for place, command in [*shown("systemctl "), *shown("journalctl ")]:
        for unit in units(command):
            count += 1
            if not is_named(unit) and unit not in ELSEWHERE:
                wrong.append(f"{place}: {command}: nothing names {unit}")
    assert not wrong, "\n".join(wrong)
    assert count > 100


def test_queries_of_the_journal_use_only_tags_and_fields_that_exist() -> None:
    wrong, count = [], 0
    fields = {f"INFERENCE_{name.upper()}" for name in (*logs.FIELDS, "instance")}
    in_code = [("code", words) for words in re.findall(r"journalctl -(?:(?! shows)[^\n\"'`;])*", code())]
    for place, command in [*shown("journalctl "), *in_code]:
        count += 1
        if re.search(r" -t ", command) and re.search(r" -f?u ", command):
            wrong.append(f"{place}: {command}: no line matches both -t and -u: an engine's lines are lines of docker")
        wrong += [f"{place}: {command}: -t {tag}" for tag in re.findall(r" -t (?!vllm@|{journal_tag\()(\S+)", command)]
        unknown = set(re.findall(r"\b(INFERENCE_\w+)=", command)) - fields
        wrong += [f"{place}: {command}: no field {name}" for name in unknown]
    assert not wrong, "\n".join(wrong)
    assert count > 130


# --- make


def test_make_has_the_targets_variables_and_scenarios_of_the_guides() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):.*##", text, re.MULTILINE)
    wrong, count = [], 0
    for place, command in shown("make [a-z]"):
        count += 1
        words = command.split()[1:]
        wrong += [f"{place}: {command}: no target {word}" for word in words if "=" not in word and word not in targets]
        names = [word.partition("=")[0] for word in words if "=" in word]
        wrong += [f"{place}: {command}: no variable {name}" for name in names if f"$({name})" not in text]
        scenarios = re.findall(r"SCENARIO=([a-z]+)", command)
        wrong += [
            f"{place}: {command}: no scenario"
            for name in scenarios
            if not (ROOT / "molecule" / name / "molecule.yml").exists()
        ]
    assert not wrong, "\n".join(wrong)
    assert count > 40


def test_the_repository_has_the_files_that_guides_name() -> None:
    wrong, count = [], 0
    for file in GUIDES:
        for words in spans(file.read_text(encoding="utf-8")):
            found = re.match(r"(?:tests|molecule|plugins|roles|playbooks|images|inventories)/[\w./*-]+", words)
            if found is None or re.search(r"NAME|NOUN|ROLE|SUBJECT", found[0]):
                continue
            count += 1
            if not any(ROOT.glob(found[0].rstrip("/"))):
                wrong.append(f"{file.name}: {words}")
    assert not wrong, "\n".join(wrong)
    assert count > 30


# --- files of the machines

OURS = re.compile(
    r"(?<![\w.:/-])/(?:etc/(?:inference|haproxy|prometheus|nftables\.d|apt/\w+\.conf\.d)|var/lib/inference[\w-]*|run/inference[\w-]*"
    r"|run/haproxy|var/lib/prometheus)(?:/[\w.@*-]+)*"
)
"""Paths that this collection writes or reads."""


def paths() -> set[str]:
    """The node's paths, for the instance NAME."""
    found = set()
    for name, member in inspect.getmembers(Paths):
        if isinstance(member, property):
            found.add(str(getattr(Paths(), name)))
        elif callable(member) and not name.startswith("_"):
            parameters = list(inspect.signature(member).parameters)[1:]
            found.add(str(getattr(Paths(), name)(*["NAME"] * len(parameters))))
    return found


def test_the_code_has_the_files_of_machines_that_guides_name() -> None:
    """The code has each path: whole, in the class Paths, or as a name in a directory that the code has."""
    listed = paths()

    def known(path: str) -> bool:
        if path in listed or re.search(rf"{re.escape(path)}(?![\w-])", code()):
            return True
        above, name = str(Path(path).parent), Path(path).name
        if name in ("*", "NAME", "TIME", "1") or name.startswith("*."):
            return known(above)
        if re.fullmatch(r"50-inference-\w+\.nft", name):
            return "50-inference-{name}.nft" in code() and known(above)
        return re.search(rf"[\"'/{{]{re.escape(name)}[\"'/{{]", code()) is not None and above != "/" and known(above)

    wrong, count = [], 0
    for file in GUIDES:
        text = file.read_text(encoding="utf-8")
        for path in OURS.findall(text):
            count += 1
            if not known(re.sub(r"/main\b", "/NAME", path.rstrip(".").removesuffix("-*"))):
                wrong.append(f"{file.name}: {path}")
    assert not wrong, "\n".join(wrong)
    assert count > 100


# --- variables


def test_the_code_has_the_variables_and_metrics_that_guides_name() -> None:
    """Words between backquotes and keys of YAML count, if they begin like a variable of a role or a metric of ours."""
    roles = "|".join(sorted(file.name for file in (ROOT / "roles").iterdir() if file.is_dir()))
    form = re.compile(rf"(?<!\w)(?:{roles}|engine|firewall|inference)_[a-z0-9_]*[a-z0-9](?!\w)")
    wrong, count = [], 0
    for file in GUIDES:
        text = file.read_text(encoding="utf-8")
        blocks = [block for language, block in FENCED.findall(text) if language == "yaml"]
        words = [word for span in spans(text) for word in form.findall(span)]
        words += [word for block in blocks for word in re.findall(rf"^({form.pattern}):", block, re.MULTILINE)]
        for word in words:
            count += 1
            if word not in code_words():
                wrong.append(f"{file.name}: {word}")
    assert not wrong, "\n".join(sorted(set(wrong)))
    assert count > 500
