# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands `inferctl models` and `inferctl plan`. Private to the collection."""

# pylint: disable=ansible-bad-function  # a command, which prints
from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core import table
from ...core.paths import Paths
from ...core.problems import Findings, nearest
from ...engine import adapters, plans
from ...engine.adapters import catalogues
from ...engine.gang import network
from ...engine.gang.plan import Span
from ...engine.plan_text import render
from ...models import shards
from ...models.config.facts import ModelFacts, from_config
from ...models.fit import devices
from ...models.fit.over_nodes import MOST_NODES
from ...models.flags.check import arguments, check
from ..desired import Desired, Model
from .command import FAILED, OK, UNCLEAR, UsageError

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

SCHEMA = 1

CODES = {True: OK, False: FAILED, None: UNCLEAR}


def add(commands: Commands) -> None:
    """Add the commands to the parser."""
    command = commands.add_parser("models", help="list the models of this node's model registry, and their instances")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_models)

    command = commands.add_parser(
        "plan",
        help="show what engines would run, and whether it fits; changes nothing",
        description="Show the exact command, its memory, what would change, and every problem. Changes nothing.",
        epilog="Exit codes: 0 fits, 1 a problem was found, 2 wrong usage, 4 unknown.",
    )
    command.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="instances or models (default: all instances); after --, flags of vllm serve that replace theirs",
    )
    command.add_argument("--gpus", metavar="GPUS", help="plan for other GPUs than the node's, such as 8xH100-80GB")
    command.add_argument(
        "--nodes",
        type=int,
        default=1,
        metavar="N",
        help="plan for N nodes like this one, with all GPUs or those of --gpus; proposes how to divide the model",
    )
    command.add_argument(
        "--model-config", metavar="FILE", help="plan for a model that this node does not have; FILE is its config.json"
    )
    command.add_argument(
        "--json", action="store_true", help="print JSON: the plan of one NAME, or {schema, ok, plans} without a name"
    )
    command.set_defaults(run=_plan)


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of a command line for argparse, and those of `plan` after `--`.

    argparse refuses `--` where an option follows a name.
    """
    words = list(words)
    dashes = words.index("--") if words[:1] == ["plan"] and "--" in words else len(words)
    return words[:dashes], words[dashes + 1 :]


def _models(options: argparse.Namespace, paths: Paths) -> int:
    found = Desired(paths).models()
    if options.json:
        print(json.dumps({"schema": SCHEMA, "models": [asdict(model) for model in found]}, indent=2))
    else:
        print(
            _table(found)
            if found
            else "no model on this node: baremetal.inference.site fetches the models that its instances serve"
        )
    return OK


def _table(models: Sequence[Model]) -> str:
    header = ("NAME", "MODEL", "REVISION", "BASE", "SERVED BY", "ON DISK")
    return "\n".join(table.lines([header, *(_row(model) for model in models)]))


def _row(model: Model) -> tuple[str, ...]:
    # In a model registry that was edited by hand, a value can have any type.
    kept, revision, base = (str(value or "-") for value in (model.model, model.revision, model.base))
    serving, on_disk = ", ".join(model.instances) or "-", {True: "yes", False: "no", None: "?"}[model.on_disk]
    return model.name, kept, revision[:12], base, serving, on_disk


def _plan(options: argparse.Namespace, paths: Paths) -> int:
    hardware = plans.Hardware(paths.root, _named(options.gpus))
    facts = _facts(options.model_config)
    names, more = options.names, _flags(options.engine_words)
    if options.model_config and not names:
        engines: Iterable[plans.Engine] = [_bare(options.model_config)]
    else:
        desired = Desired(paths)
        engines = [desired.engine(name) for name in _known(names, desired)]
    asked = (_over(_with(engine, more), options.nodes, paths) for engine in engines)
    made = [plans.plan(engine, hardware, facts) for engine in asked]
    ok = plans.verdict(made)
    if options.json:
        print(json.dumps(_document(made, ok, one=len(names) == 1 or facts is not None), indent=2))
    else:
        print(
            render(made) if made else "no instance on this node: baremetal.inference.site makes those of the inventory"
        )
    return CODES[ok]


def _flags(words: Sequence[str]) -> dict[str, Any]:
    """The flags after `--` by their names without dashes. Raises UsageError."""
    flags: dict[str, Any] = {}
    name = ""
    known = catalogues.choose("")
    for word in words:
        # The engine has short names such as -tp; -1 is a value, and so is a short name without a dash.
        short = word.startswith("-") and word.lstrip("-").partition("=")[0] in known.aliases
        if word.startswith("--") or short:
            name, given, value = word.lstrip("-").partition("=")
            opposite = known.inverse.get(name)
            name = known.aliases.get(name, name)
            flags[opposite or name] = _value(value) if given else not opposite
        elif flags.get(name) is True:
            flags[name] = _value(word)
        else:
            raise UsageError(f"{word!r} is the value of no flag: write --FLAG VALUE after --")
    found = Findings()
    check("--", flags, known, (), found)
    if found.problems:
        raise UsageError("; ".join(str(problem) for problem in found.problems))
    return flags


def _value(text: str) -> Any:
    """The value of a flag: a number, a boolean or an object if the text is JSON, else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _with(engine: plans.Engine, more: dict[str, Any]) -> plans.Engine:
    """The engine with more flags, which replace its own."""
    if not more:
        return engine
    flags = {**engine.flags, **more}
    return replace(engine, flags=flags, argv=[*engine.argv, *arguments(more, catalogues.choose(""))])


def _over(engine: plans.Engine, nodes: int, paths: Paths) -> plans.Engine:
    """The engine over nodes like this one. Raises UsageError."""
    if nodes == 1:
        return engine
    if not 1 < nodes <= MOST_NODES:
        raise UsageError(f"--nodes: {nodes} must be 1 to {MOST_NODES}")
    span = Span(nodes, network=network.rdma(paths.root), declared=False)
    return replace(engine, span=span, gpus=None, change=None)


def _document(made: Sequence[dict[str, Any]], ok: bool | None, *, one: bool) -> dict[str, Any]:
    """The JSON document: a single plan for a single name or a single --model-config, else a list."""
    if one and len(made) == 1:
        return {"schema": SCHEMA, **made[0]}
    return {"schema": SCHEMA, "ok": ok, "plans": list(made)}


def _known(names: Sequence[str], desired: Desired) -> list[str]:
    """The requested names, or all instances. Raises UsageError for a name that this node does not have."""
    for name in names:
        if name not in desired.names:
            raise UsageError(f"no instance or model {name!r} on this node: {nearest(name, desired.names)}")
    return list(dict.fromkeys(names)) or list(desired.instances)


def _named(text: str | None) -> Sequence[devices.Device] | None:
    """The GPUs in --gpus. Raises UsageError."""
    try:
        return None if text is None else devices.hypothetical(text)
    except ValueError as error:
        raise UsageError(f"--gpus: {error}") from error


def _facts(path: str | None) -> ModelFacts | None:
    """The facts of the file in --model-config. Raises UsageError."""
    if path is None:
        return None
    raw, problem = shards.read_json(Path(path)) if Path(path).is_file() else ({}, "is no file")
    if problem:
        raise UsageError(f"--model-config: {path} {problem}")
    return from_config(raw)


def _bare(path: str) -> plans.Engine:
    """An engine for a model that no registry has, without flags."""
    directory = str(Path(path).absolute().parent)
    adapter = adapters.get()
    return plans.Engine(model=path, argv=[adapter.program, *adapter.model_argv(directory, ())], flags={})
