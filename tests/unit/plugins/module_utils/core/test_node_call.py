# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the implementation of a module comes from: the installed library, a sent library, or the collection itself."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import node_call
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.fleet import node_library


def library(word: str) -> dict[str, bytes]:
    """A library whose only call returns a word from another file of the library."""
    return {
        "__init__.py": b"",
        "node/__init__.py": b"",
        "node/calls/__init__.py": b"",
        "node/calls/words.py": b"from ...core import word\ndef run(module):\n    module.exit_json(word=word.WORD)\n",
        "core/__init__.py": b"",
        "core/word.py": f"WORD = {word!r}\n".encode(),
    }


def install(directory: Path, files: dict[str, bytes]) -> None:
    for path, content in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(content)


class Ended(Exception):
    """A call has ended."""


class Module:
    """Replaces AnsibleModule."""

    def __init__(self, tmpdir: Path, **wanted: Any) -> None:
        text = node_call.Wanted("words", {}, **wanted).to_text() if wanted else ""
        self.params: dict[str, Any] = {"node_call": text, "name": "main"}
        self.tmpdir = str(tmpdir)
        self.said: dict[str, Any] = {}

    def exit_json(self, **said: Any) -> None:
        self.said = said
        raise Ended

    def fail_json(self, **said: Any) -> None:
        self.exit_json(failed=True, **said)


def forget_imports() -> None:
    """As in a new process: on a node, each module has a process of its own."""
    for name in [name for name in sys.modules if name.split(".")[0] == node_call.PACKAGE]:
        del sys.modules[name]


@pytest.fixture(autouse=True)
def _as_in_a_process_of_its_own() -> Iterator[None]:
    before = sys.dont_write_bytecode
    yield
    sys.dont_write_bytecode = before
    forget_imports()


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """A node below a directory of the test, where this process is root."""
    found = Paths(tmp_path / "node")
    monkeypatch.setattr(node_call, "Paths", lambda: found)
    monkeypatch.setattr(node_call, "os", SimpleNamespace(**{**vars(os), "geteuid": lambda: 0}))
    return found


def call(tmp_path: Path, **wanted: Any) -> dict[str, Any]:
    """The result of the module `words`."""
    module = Module(tmp_path / "private", **wanted)
    with pytest.raises(Ended):
        node_call.run(module)
    assert module.params == {"name": "main"}
    return module.said


def sent(word: str) -> dict[str, str]:
    """What the action plugin sends to a node that does not have the library."""
    files = library(word)
    archive = base64.b64encode(node_library.pack(files)).decode()
    return {"digest": node_call.digest(files), "archive": archive}


def digest(word: str) -> str:
    return node_call.digest(library(word))


def test_a_fresh_node_asks_for_the_library(paths: Paths, tmp_path: Path) -> None:
    assert call(tmp_path, digest=digest("new")) == {"changed": False, node_call.MISSING: True}
    assert not paths.root.exists()


def test_the_installed_library_answers(paths: Paths, tmp_path: Path) -> None:
    install(paths.library, library("installed"))
    # Python's own byte code, of whatever version, is no part of a library.
    install(paths.library / "core/__pycache__", {"word.cpython-309.pyc": b"old"})
    assert call(tmp_path, digest=digest("installed")) == {"word": "installed"}


@pytest.mark.parametrize("other", ["older", "newer"])
def test_a_library_of_another_version_is_not_run(paths: Paths, tmp_path: Path, other: str) -> None:
    install(paths.library, library(other))
    assert call(tmp_path, digest=digest("this"))[node_call.MISSING]
    assert call(tmp_path, **sent("this")) == {"word": "this"}
    assert node_call.digest(node_call.read(paths.library)) == digest(other)


@pytest.mark.parametrize("damage", ["truncated", "lost", "foreign"])
def test_a_damaged_library_is_not_run(paths: Paths, tmp_path: Path, damage: str) -> None:
    install(paths.library, library("this"))
    if damage == "lost":
        (paths.library / "core/word.py").unlink()
    else:
        (paths.library / ("core/word.py" if damage == "truncated" else "core/other.py")).write_text("")
    assert call(tmp_path, digest=digest("this"))[node_call.MISSING]


def test_a_library_that_cannot_be_written_is_an_error_with_the_path(paths: Paths, tmp_path: Path) -> None:
    paths.shipped_library.parent.mkdir(parents=True)
    paths.shipped_library.write_text("a file in place of the directory")
    said = call(tmp_path, **sent("this"))
    assert said["failed"] and str(paths.shipped_library) in said["msg"]


def test_a_sent_library_is_kept_for_root_until_another_version_is_sent(paths: Paths, tmp_path: Path) -> None:
    for word in ("one", "two"):
        assert call(tmp_path, **sent(word)) == {"word": word}
        forget_imports()
        assert call(tmp_path, digest=digest(word)) == {"word": word}
        forget_imports()
    (kept,) = paths.shipped_library.iterdir()
    assert kept.name == f"{digest('two')}.zip"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert paths.shipped_library.stat().st_mode & 0o777 == 0o700
    node_call.forget(paths)
    node_call.forget(paths)
    assert not paths.shipped_library.exists()


def test_a_user_who_is_not_root_keeps_the_library_for_one_call(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_call, "os", SimpleNamespace(**{**vars(os), "geteuid": lambda: 1000}))
    assert call(tmp_path, **sent("mine")) == {"word": "mine"}
    assert [path.name for path in (tmp_path / "private").iterdir()] == [f"{digest('mine')}.zip"]
    assert not paths.shipped_library.exists()


@pytest.mark.parametrize("own", [True, False])
def test_the_controller_runs_its_own_collection(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: bool
) -> None:
    """Python writes byte code only if the files belong to this user."""
    user = tmp_path.stat().st_uid if own else tmp_path.stat().st_uid + 1
    monkeypatch.setattr(node_call, "os", SimpleNamespace(**{**vars(os), "geteuid": lambda: user}))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    install(tmp_path / "collection", library("collection"))
    install(paths.library, library("installed"))
    assert call(tmp_path, digest=digest("installed"), path=str(tmp_path / "collection")) == {"word": "collection"}
    assert bool(list(tmp_path.rglob("word.*.pyc"))) is own


def test_a_collection_that_the_user_cannot_read_is_not_used(paths: Paths, tmp_path: Path) -> None:
    assert call(tmp_path, digest=digest("this"), path=str(tmp_path / "nowhere"))[node_call.MISSING]


def test_before_a_job_in_the_background_only_the_library_is_sent(paths: Paths, tmp_path: Path) -> None:
    assert call(tmp_path, digest=digest("this"), only=True)[node_call.MISSING]
    assert call(tmp_path, **sent("this"), only=True) == {"changed": False}
    assert call(tmp_path, digest=digest("this")) == {"word": "this"}


def test_a_module_without_its_action_plugin_is_an_error(tmp_path: Path) -> None:
    said = call(tmp_path)
    assert said["failed"] and said["msg"].startswith("This module needs its action plugin")


def test_the_options_are_those_of_the_called_module() -> None:
    called: dict[str, Any] = {
        "argument_spec": {"name": {"type": "str"}},
        "required_if": [["state", "drained", ["reason"]]],
    }
    wanted = node_call.Wanted("words", called, "d1", only=True)
    assert node_call.Wanted.from_text(wanted.to_text()) == wanted
    found = node_call.specification({"node_call": wanted.to_text(), "name": "main"})
    assert found == {**called, "argument_spec": {**called["argument_spec"], **node_call.OPTIONS}}
    assert node_call.specification({}) == {"argument_spec": node_call.OPTIONS, "supports_check_mode": True}


# test_node_tool.py imports each file of the installed library without Ansible.
@pytest.mark.full
def test_the_library_needs_no_ansible(tmp_path: Path) -> None:
    """Every implementation is found in the library that this controller sends, by the standard library alone."""
    archive = tmp_path / "library.zip"
    archive.write_bytes(node_library.pack(node_library.read()))
    names = sorted(path.stem for path in (node_library.ROOT / node_library.CALLS).glob("[a-z]*.py"))
    assert "engine_facts" in names
    lines = [
        "import sys, types",
        f"package = types.ModuleType({node_call.PACKAGE!r})",
        f"package.__path__ = [{str(archive)!r}]",
        f"sys.modules[{node_call.PACKAGE!r}] = package",
        *(f"from {node_call.PACKAGE}.node.calls.{name} import run" for name in names),
    ]
    subprocess.run([sys.executable, "-I", "-S", "-c", "\n".join(lines)], check=True)
