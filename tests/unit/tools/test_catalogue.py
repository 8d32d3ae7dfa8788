# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make catalogue` reads an argument parser: here, a parser with every kind of flag that vLLM has."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.flags import object_keys, versions

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def introspection() -> Iterator[ModuleType]:
    """The script that runs in the image; it rewrites the command line that it finds there."""
    with pytest.MonkeyPatch.context() as patch:
        # A name must be there: a script that was imported before does not rewrite the command line again.
        patch.setattr(sys, "argv", ["engine_flags"])
        import engine_flags

        yield engine_flags


class Paired(argparse.BooleanOptionalAction):
    """--enable-x with --disable-x."""

    def __init__(self, option_strings: list[str], dest: str, **kwargs: Any) -> None:
        super().__init__(option_strings, dest, **kwargs)
        self.option_strings = [*self.option_strings, option_strings[-1].replace("enable", "disable")]

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        setattr(namespace, self.dest, not str(option).startswith(("--no-", "--disable-")))


class Own(argparse.Action):
    """An action that reads its values itself."""


def or_none(convert: Any) -> Any:
    return lambda text: None if text in ("", "None") else convert(text)


def size(text: str) -> int:
    return int(text.removesuffix("k"))


def size_or_auto(text: str) -> int:
    return -1 if text == "auto" else size(text)


def structure(text: str) -> Any:
    """Like a data class with a required key: the empty object is refused, too."""
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
def test_each_kind_of_flag_has_its_facts(
    introspection: ModuleType, arguments: dict[str, Any], expected: dict[str, Any]
) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--enable-x", **arguments)
    assert introspection.catalogue(parser) == {"enable-x": expected}


def test_a_flag_has_aliases_and_inverse_names(introspection: ModuleType) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?")
    parser.add_argument("-x", "--enable-x", action=Paired)
    parser.add_argument("-t", "--tall-size", "--size", type=int)
    assert introspection.catalogue(parser) == {
        "enable-x": {"type": "switch", "negatable": True, "aliases": ["x"], "inverse": ["disable-x"]},
        "tall-size": {"type": "integer", "aliases": ["size", "t"]},
    }


def test_an_unknown_form_is_an_error(introspection: ModuleType) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pair", nargs=2)
    with pytest.raises(ValueError, match="nargs 2 is unknown"):
        introspection.catalogue(parser)


@pytest.fixture(scope="module")
def tool(script: Callable[[str], ModuleType]) -> ModuleType:
    """The script behind `make catalogue`."""
    return script("catalogue")


def loaded(text: str) -> SimpleNamespace:
    """A module of data from its text."""
    names: dict[str, Any] = {}
    exec(text, names)  # The text is the tool's own.
    return SimpleNamespace(**names)


def test_every_catalogue_is_used() -> None:
    files = (ROOT / "plugins/module_utils/models/flags").glob("vllm_*.py")
    modules = (versions.BASE, *versions.DELTAS)
    assert {file.stem for file in files} == {module.__name__.rpartition(".")[2] for module in modules}


def test_the_catalogues_are_as_the_tool_writes_them(tool: ModuleType) -> None:
    """Nothing but the tool has changed a catalogue."""
    modules = (versions.BASE, *versions.DELTAS)
    texts = {module.__name__.rpartition(".")[2]: Path(module.__file__ or "").read_text() for module in modules}
    assert tool.texts(versions.known()) == texts


OLD: versions.Flags = {
    "gone": {"type": "text"},
    "kept": {"type": "switch"},
    "limited": {"type": "text", "choices": ["a", "c"]},
    "ordered": {"type": "text", "choices": ["z", "a"]},
    "other": {"type": "text", "choices": ["a"]},
    "reordered": {"type": "text", "choices": ["b", "a", "c"]},
    "sized": {"type": "integer", "aliases": ["s"]},
}
NEW: versions.Flags = {
    "fresh": {"type": "json"},
    "kept": {"type": "switch"},
    "limited": {"type": "text", "choices": ["a", "b"]},
    "ordered": {"type": "text", "choices": ["z", "a", "b"]},
    "other": {"type": "text", "choices": ["b"]},
    "reordered": {"type": "text", "choices": ["c", "b", "a"]},
    "sized": {"type": "size", "optional": True},
}


def test_a_later_version_is_written_as_its_differences(tool: ModuleType) -> None:
    assert tool.differences(OLD, NEW) == {
        "ADDED": {"fresh": {"type": "json"}},
        "REMOVED": ["gone"],
        "CHANGED": {
            "other": {"choices": ["b"]},
            "reordered": {"choices": ["c", "b", "a"]},
            "sized": {"type": "size", "aliases": None, "optional": True},
        },
        "ADDED_VALUES": {"limited": {"choices": ["b"]}, "ordered": {"choices": ["b"]}},
        "REMOVED_VALUES": {"limited": {"choices": ["c"]}},
    }


def test_written_catalogues_are_read_as_the_same_flags(tool: ModuleType) -> None:
    texts = tool.texts({"1.10.0": NEW, "1.9.0": OLD})
    assert list(texts) == ["vllm_1_9_0", "vllm_1_10_0"]
    base, delta = map(loaded, texts.values())
    assert (base.VERSION, base.FLAGS) == ("1.9.0", OLD)
    assert delta.VERSION == "1.10.0"
    assert versions.apply(base.FLAGS, delta) == NEW
    # The other way round, what was added is removed.
    _base, back = map(loaded, tool.texts({"1.9.0": NEW, "1.10.0": OLD}).values())
    assert versions.apply(NEW, back) == OLD


def test_a_version_between_two_others_changes_the_later_one_too(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "versions.py").write_text("from . import vllm_1_8_0, vllm_1_10_0")
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "CATALOGUES", folder)
    asked = {"version": "1.9.0", "flags": OLD, "keys": {}}
    monkeypatch.setattr(tool, "ask", lambda image, question=None: asked)
    monkeypatch.setattr(versions, "known", lambda: {"1.8.0": OLD, "1.10.0": NEW})
    monkeypatch.setattr(sys, "argv", ["catalogue", "image"])
    assert tool.main() == 0
    found = {name: loaded((folder / f"{name}.py").read_text()) for name in ("vllm_1_8_0", "vllm_1_9_0", "vllm_1_10_0")}
    assert found["vllm_1_8_0"].FLAGS == OLD
    assert (found["vllm_1_9_0"].ADDED, found["vllm_1_9_0"].CHANGED) == ({}, {})
    assert list(found["vllm_1_10_0"].ADDED) == ["fresh"]
    said = capsys.readouterr().out
    assert "BASE vllm_1_8_0, DELTAS vllm_1_9_0, vllm_1_10_0" in said
    assert tool.main() == 0
    assert capsys.readouterr().out.count("unchanged") == 4


@pytest.mark.parametrize("version", ["0.99.0rc1", "0.99.1.dev5+g1a2b", "dev"])
def test_a_version_that_is_not_only_numbers_is_refused(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], version: str
) -> None:
    monkeypatch.setattr(tool, "ask", lambda image, question=None: {"version": version, "flags": OLD, "keys": {}})
    monkeypatch.setattr(tool, "write", lambda *_file: pytest.fail("no file must change"))
    monkeypatch.setattr(sys, "argv", ["catalogue", "image"])
    assert tool.main() == 1
    assert f"catalogue: image: the version of vLLM is {version!r}" in capsys.readouterr().err


def test_the_keys_of_objects_are_written_as_they_are(tool: ModuleType) -> None:
    """`make catalogue` would write the same module again."""
    flags = versions.known()[object_keys.VERSION]
    keys = {name: list(known) for name, known in object_keys.KEYS.items()}
    answer = {
        "version": object_keys.VERSION,
        "keys": {**keys, "cache-config": ["block_size"]},
        "choices": {**{name: object_keys.CHOICES.get(name, {}) for name in keys}, "cache-config": {}},
    }
    text = tool.objects_text(answer, flags)
    assert text == (ROOT / "plugins/module_utils/models/flags/object_keys.py").read_text()
