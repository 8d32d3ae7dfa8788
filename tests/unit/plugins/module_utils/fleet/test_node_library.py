# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The library that the controller hashes and sends: everything that nodes import, and nothing else."""

from __future__ import annotations

import ast
import base64
import io
import zipfile
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import node_call
from ansible_collections.baremetal.inference.plugins.module_utils.fleet import node_library


def by_syntax(path: str, text: str) -> set[str]:
    """The files that a file may import, as Python reads it."""
    found = set()
    for statement in ast.walk(ast.parse(text)):
        if isinstance(statement, ast.ImportFrom) and statement.level:
            parts = [*path.split("/")[: -statement.level], *(statement.module or "").split(".")]
            stem = "/".join(filter(None, parts))
            for place in (stem, *(f"{stem}/{alias.name}".lstrip("/") for alias in statement.names)):
                found |= {f"{place}.py", f"{place}/__init__.py"}
    return found


def test_imports_are_found_as_python_finds_them() -> None:
    texts = {str(path.relative_to(node_library.ROOT)): path.read_text() for path in node_library.ROOT.rglob("*.py")}
    there = set(texts)
    for name, text in texts.items():
        assert there & set(node_library.imported(name, text)) == there & by_syntax(name, text), name


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from . import b", "a/b.py"),
        ("from .b import c as d", "a/b/c.py"),
        ("from ..x.y import (\n    one,  # why\n    two as three,\n)", "x/y/two.py"),
        ("def f():\n    from ..x import y", "x/y.py"),
    ],
)
def test_each_form_of_an_import_is_found(text: str, found: str) -> None:
    assert found in set(node_library.imported("a/file.py", text))
    assert set(node_library.imported("a/file.py", text)) == by_syntax("a/file.py", text)


def test_imported_files_come_with_their_packages(tmp_path: Path) -> None:
    for path, text in {
        "node/__init__.py": "",
        "node/cli/__init__.py": "",
        "node/cli/entry.py": "from ...core.files import write",
        "node/calls/ask.py": "from ...core import systemd",
        "core/__init__.py": "",
        "core/files.py": "import os",
        "core/systemd.py": "",
        "core/other.py": "",
        "fleet/page.py": "",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert set(node_library.read(tmp_path)) == {
        "__init__.py",
        "node/__init__.py",
        "node/cli/__init__.py",
        "node/cli/entry.py",
        "node/calls/ask.py",
        "core/__init__.py",
        "core/files.py",
        "core/systemd.py",
    }


def test_the_library_has_only_the_files_that_nodes_need() -> None:
    found = node_library.read()
    assert {*node_library.STARTS, "node/calls/engine_facts.py", "core/paths.py"} <= set(found)
    assert not [path for path in found if path.startswith("fleet/")]
    # Nodes report what earlier runs have left, the site's CA, and when a certificate ends.
    needed = ("__init__", "authority", "certificates", "floating", "forms", "names", "places", "removal", "unit")
    services = [Path(path) for path in found if path.startswith(("gateway/", "monitoring/"))]
    assert {path.stem for path in services} == set(needed)
    for path in set(found) - {"__init__.py"}:
        assert found[path] == (node_library.ROOT / path).read_bytes()


def test_a_run_reads_and_packs_the_library_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = node_library.of_run(tmp_path)
    assert len(list(tmp_path.iterdir())) == 1, "the library is packed only for a node that needs the library"
    encoded = first.encoded()
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(encoded))) as archive:
        assert node_call.digest({name: archive.read(name) for name in archive.namelist()}) == first.digest
    monkeypatch.setattr(node_library, "read", lambda: pytest.fail("read again"))
    again = node_library.of_run(tmp_path)
    assert again == first and again.encoded() == encoded
    assert len(list(tmp_path.iterdir())) == 2


def test_the_same_files_give_the_same_archive() -> None:
    library = {"b.py": b"2", "a.py": b"1"}
    assert node_library.pack(library) == node_library.pack(dict(sorted(library.items())))


def test_different_files_have_different_digests() -> None:
    digests = [node_call.digest(one) for one in ({}, {"a": b""}, {"a": b"b"}, {"ab": b""}, {"a": b"", "b": b""})]
    assert len(set(digests)) == len(digests)
