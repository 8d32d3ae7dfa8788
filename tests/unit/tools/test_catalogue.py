# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make catalogue` makes of an argument parser, tried on one with every kind of flag that vLLM's has."""

from __future__ import annotations

import argparse
import importlib.machinery
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.catalogue import MODULES

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def introspection() -> Iterator[ModuleType]:
    """The script that runs in the image; it rewrites the command line that it finds there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [])
        import engine_flags

        yield engine_flags


class Paired(argparse.BooleanOptionalAction):
    """--enable-x with --disable-x, which the help does not show all of."""

    def __init__(self, option_strings: list[str], dest: str, **kwargs: Any) -> None:
        super().__init__(option_strings, dest, **kwargs)
        self.option_strings = [*self.option_strings, option_strings[-1].replace("enable", "disable")]

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        setattr(namespace, self.dest, not str(option).startswith(("--no-", "--disable-")))


class Own(argparse.Action):
    """One that reads its values itself."""


def or_none(convert: Any) -> Any:
    return lambda text: None if text in ("", "None") else convert(text)


def size(text: str) -> int:
    return int(text.removesuffix("k"))


def size_or_auto(text: str) -> int:
    return -1 if text == "auto" else size(text)


def structure(text: str) -> Any:
    """As a data class that needs a key: even the empty object is refused."""
    return json.loads(text)["needed"]


def either(text: str) -> Any:
    return json.loads(text) if text.startswith("{") else text


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"action": "store_true"}, {"type": "switch"}),
        ({"action": argparse.BooleanOptionalAction}, {"type": "switch", "negatable": True}),
        ({}, {"type": "text"}),
        ({"type": str, "choices": ["a", "b"]}, {"type": "text", "choices": ["a", "b"]}),
        ({"type": or_none(str), "choices": ["a", None]}, {"type": "text", "choices": ["a"], "optional": True}),
        ({"type": lambda text: text.lower().replace("-", "_")}, {"type": "text", "folded": True}),
        ({"type": int}, {"type": "integer"}),
        ({"type": or_none(int)}, {"type": "integer", "optional": True}),
        ({"type": float}, {"type": "number"}),
        ({"type": size}, {"type": "size"}),
        ({"type": size_or_auto}, {"type": "size", "words": ["auto"]}),
        ({"type": json.loads}, {"type": "json"}),
        ({"type": structure}, {"type": "object"}),
        ({"type": either}, {"type": "text-or-json"}),
        ({"nargs": "+"}, {"type": "text", "takes": "list"}),
        ({"nargs": "+", "action": Own}, {"type": "text-or-json", "takes": "list"}),
        ({"action": "append"}, {"type": "text", "takes": "repeated"}),
        ({"nargs": "?", "const": True}, {"type": "text", "takes": "maybe"}),
        ({"metavar": ["b", "a"]}, {"type": "text", "suggested": ["a", "b"]}),
        ({"metavar": "{b,a} or a plugin's"}, {"type": "text", "suggested": ["a", "b"]}),
        ({"metavar": "FILE"}, {"type": "text"}),
        ({"help": "--enable-x is deprecated."}, {"type": "text", "deprecated": {}}),
        (
            {"help": "This is deprecated and will be removed in v1.2. Use `--other-x` instead."},
            {"type": "text", "deprecated": {"removed": "1.2", "use": "other-x"}},
        ),
        ({"help": "Allow deprecated things."}, {"type": "text"}),
    ],
)
def test_one_flag(introspection: ModuleType, arguments: dict[str, Any], expected: dict[str, Any]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--enable-x", **arguments)
    assert introspection.catalogue(parser) == {"enable-x": expected}


def test_names(introspection: ModuleType) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?")
    parser.add_argument("-x", "--enable-x", action=Paired)
    parser.add_argument("-t", "--tall-size", "--size", type=int)
    assert introspection.catalogue(parser) == {
        "enable-x": {"type": "switch", "negatable": True, "aliases": ["x"], "inverse": ["disable-x"]},
        "tall-size": {"type": "integer", "aliases": ["size", "t"]},
    }


def test_a_form_that_is_new(introspection: ModuleType) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pair", nargs=2)
    with pytest.raises(ValueError, match="nargs 2 is new"):
        introspection.catalogue(parser)


def test_every_catalogue_is_used() -> None:
    files = (ROOT / "plugins/module_utils/models/flags").glob("vllm_*.py")
    assert {file.stem for file in files} == {module.__name__.rpartition(".")[2] for module in MODULES}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.VERSION)
def test_the_catalogues_are_as_the_tool_writes_them(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has edited one."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = importlib.machinery.SourceFileLoader("catalogue_tool", str(ROOT / "tests/tools/catalogue"))
    spec = importlib.util.spec_from_loader("catalogue_tool", loader)
    assert spec
    tool = importlib.util.module_from_spec(spec)
    loader.exec_module(tool)
    assert Path(module.__file__).read_text() == tool.render(module.VERSION, module.FLAGS)
