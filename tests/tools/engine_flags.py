# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs inside an engine's image: prints the flags of the argument parser of `vllm serve`, as JSON.

tests/tools/catalogue sends this file there. The output has facts only, no sentences of the help. Samples show the type
of a flag's values, because the parser's converters are closures without a description.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import re
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

# The parser marks deprecated flags only in its help, and makes the help only for a command line with --help.
sys.argv = ["vllm", "serve", "--help"]

PARSER_MODULES = ("vllm.entrypoints.common.cli_args", "vllm.entrypoints.launchers.cli_args")
"""The modules that make the parser: of vLLM 0.33 and later, and of 0.32."""

DEPRECATED = re.compile(r"\b(?:is|are) deprecated\b|^\W*deprecated\b", re.IGNORECASE)
REMOVED = re.compile(r"\bremoved in v?(\d+(?:\.\d+)+)")
INSTEAD = re.compile(r"\b[Uu]se\W+--([a-z0-9-]+(?:\.\w+)*)")

REFUSED = object()


def parser() -> argparse.ArgumentParser:
    """The parser of `vllm serve`. Raises ModuleNotFoundError if this version has another module for it."""
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    for name in PARSER_MODULES:
        with contextlib.suppress(ModuleNotFoundError):
            made: argparse.ArgumentParser = importlib.import_module(name).make_arg_parser(FlexibleArgumentParser())
            return made
    raise ModuleNotFoundError(f"no parser in {' or '.join(PARSER_MODULES)}: look for make_arg_parser")


def value_type(convert: Callable[[str], Any] | None) -> dict[str, Any]:
    """The type of a flag's values and further facts, found by the results of its converter for samples."""

    def made(sample: str) -> Any:
        try:
            return convert(sample) if convert else sample
        except Exception:
            return REFUSED

    if made("x") is not REFUSED:
        found: dict[str, Any] = {"type": "text-or-json" if isinstance(made('{"x": "x"}'), Mapping) else "text"}
        if made("X-x") == "x_x":
            found["folded"] = True
    elif made("1k") is not REFUSED:
        found = {"type": "size"}
    elif made("{}") is REFUSED and made("1") is not REFUSED:
        found = {"type": "integer" if made("1.5") is REFUSED else "number"}
    else:
        # Some objects have required keys, and refuse an empty object.
        found = {"type": "object" if made("[]") is REFUSED else "json"}
    if made("None") is None:
        found["optional"] = True
    if found["type"] not in ("text", "text-or-json") and made("auto") is not REFUSED:
        found["words"] = ["auto"]
    return found


def arity(action: argparse.Action) -> dict[str, Any]:
    """How many values a flag takes; empty for one value. Raises ValueError for an unknown form."""
    if isinstance(action, argparse._AppendAction):
        return {"takes": "repeated"}
    if action.nargs in ("+", "*"):
        return {"takes": "list"}
    if action.nargs == "?":
        return {"takes": "maybe"}
    if action.nargs is not None:
        raise ValueError(f"{action.option_strings}: nargs {action.nargs!r} is unknown: add it to arity()")
    return {}


def suggested(action: argparse.Action) -> list[str]:
    """The values that a flag suggests, if it also accepts other values."""
    if isinstance(action.metavar, (list, tuple)):
        return sorted(action.metavar)
    listed = re.match(r"\{([^{}]+)\}", action.metavar or "")
    return sorted(listed[1].split(",")) if listed else []


def deprecation(action: argparse.Action, marked: bool) -> dict[str, Any]:
    text = " ".join((action.help or "").split()) if action.help != argparse.SUPPRESS else ""
    if not marked and not DEPRECATED.search(text):
        return {}
    removed, instead = REMOVED.search(text), INSTEAD.search(text)
    found = {"removed": removed and removed[1], "use": instead and instead[1]}
    return {"deprecated": {key: value for key, value in found.items() if value}}


def switched(action: argparse.Action, option: str, made: argparse.ArgumentParser) -> Any:
    """The value of a switch with one of its names."""
    namespace = argparse.Namespace()
    action(made, namespace, [], option)
    return getattr(namespace, action.dest)


def describe(
    action: argparse.Action, options: list[str], made: argparse.ArgumentParser, marked: bool
) -> tuple[str, dict[str, Any]]:
    """The name and the facts of one flag. `options` are all its names, also names that the help does not show."""
    name = next(option for option in options if option.startswith("--") and not option.startswith("--no-"))[2:]
    inverse: list[str] = []
    facts: dict[str, Any]
    if action.nargs == 0:
        usual = switched(action, f"--{name}", made)
        inverse = [option for option in options if switched(action, option, made) != usual]
        negatable = f"--no-{name}" in inverse
        others = sorted(option.lstrip("-") for option in inverse if option != f"--no-{name}")
        facts = {"type": "switch", "negatable": negatable, "inverse": others}
    else:
        facts = {**value_type(action.type if callable(action.type) else None), **arity(action)}
        # vLLM's own action reads the converter's results, also JSON.
        if type(action).__module__ != "argparse" and facts["type"] == "text":
            facts["type"] = "text-or-json"
        facts["choices"] = [choice for choice in action.choices or [] if choice is not None]
        facts["suggested"] = suggested(action)
    facts["aliases"] = sorted(option.lstrip("-") for option in options if option not in (f"--{name}", *inverse))
    facts.update(deprecation(action, marked))
    # Leave out empty and false values. An empty deprecation stays: the flag is deprecated.
    return name, {key: value for key, value in facts.items() if value or key == "deprecated"}


def catalogue(made: argparse.ArgumentParser) -> dict[str, dict[str, Any]]:
    """The facts of every flag of a parser, by the flag's name without dashes."""
    marked: set[argparse.Action] = getattr(made, "_deprecated", set())
    names: dict[argparse.Action, list[str]] = {}
    for option, action in made._option_string_actions.items():
        names.setdefault(action, []).append(option)
    return dict(
        describe(action, options, made, action in marked or getattr(action, "deprecated", False))
        for action, options in names.items()
        if not isinstance(action, argparse._HelpAction)
    )


def main() -> None:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        made = parser()
        flags = catalogue(made)
    print(json.dumps({"version": version("vllm").partition("+")[0], "flags": flags}))


if __name__ == "__main__":
    main()
