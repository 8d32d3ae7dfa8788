# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A command is installed with its part of the library, and removed with it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import node_library

BASE_NAME = node_library.BASE
START = f"{BASE_NAME}core.exposition"


def test_sources_are_what_a_module_imports_with_its_packages() -> None:
    found = node_library.sources(f"{BASE_NAME}core.gather_subset", f"{BASE_NAME}core.node_library")
    names = {name.removeprefix(BASE_NAME) for name in found if name.startswith(BASE_NAME)}
    assert names == {"core", "core.gather_subset", "core.node_library", "core.files"}
    with pytest.raises(ImportError):
        node_library.sources(f"{BASE_NAME}core.nowhere")


def test_only_modules_count_as_imports() -> None:
    name = f"{BASE_NAME}backup.state"
    text = "from ..core import files\nfrom . import repository\nfrom .places import JOBS\nimport os\n"
    found = {imported.removeprefix(BASE_NAME) for imported in node_library.imported(name, text)}
    assert {"core.files", "backup.repository", "backup.places"} <= found
    assert "backup.places.JOBS" not in found, "a name in a module is no module"


def plan(root: Path, present: bool = True) -> node_library.Plan:
    return node_library.plan(START, root / "lib/tool", root / "bin/tool", present)


def test_a_command_is_installed_once_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # tests/tools/controller sets PYTHONPYCACHEPREFIX, which moves byte code elsewhere.
    monkeypatch.setattr(sys, "pycache_prefix", None)
    first = plan(tmp_path)
    library, command = tmp_path / "lib/tool", tmp_path / "bin/tool"
    parts = ["__init__.py", "core/__init__.py", "core/exposition.py"]
    assert first.files == sorted(map(str, [command, *(library / part for part in parts)]))
    assert list(first.wanted)[-1] == command, "the command comes last"
    first.apply()
    assert command.stat().st_mode & 0o777 == 0o755 and "from tool.core.exposition import main" in command.read_text()
    assert list((library / "core/__pycache__").glob("exposition.*.pyc"))
    code = f"import sys; sys.path.insert(0, {str(library.parent)!r}); import tool.core.exposition"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)
    again = plan(tmp_path)
    assert again.files == [] and again.diff["before"] == again.diff["after"]
    gone = plan(tmp_path, present=False)
    assert gone.files == first.files and gone.diff["after"] == ""
    gone.apply()
    assert not library.exists() and not command.exists()
    assert plan(tmp_path, present=False).files == []


def test_the_whole_library_is_copied_from_the_running_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The running library is a directory on the node, or an archive that was sent."""
    directory = tmp_path / "sent"
    texts = {"__init__.py": "", "core/__init__.py": "", "core/other.py": "OTHER = 1\n"}
    for path, text in texts.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    with zipfile.ZipFile(tmp_path / "sent.zip", "w") as archive:
        for path, text in texts.items():
            archive.writestr(path, text)
    for place in (directory, tmp_path / "sent.zip"):
        monkeypatch.setattr(node_library, "__file__", str(place / "core/node_library.py"))
        assert node_library.own() == texts
    found = node_library.plan(START, tmp_path / "lib/tool", tmp_path / "bin/tool", whole=True)
    wanted = {tmp_path / "lib/tool" / path: (text, 0o644) for path, text in texts.items()}
    assert {path: found.wanted[path] for path in wanted} == wanted
    assert set(found.wanted) - set(wanted) == {tmp_path / "bin/tool"}


def test_a_directory_without_wanted_files_is_removed(tmp_path: Path) -> None:
    plan(tmp_path).apply()
    stray = tmp_path / "lib/tool/old/deep/part.py"
    stray.parent.mkdir(parents=True)
    stray.write_text("")
    (stray.parent / "__pycache__").mkdir()
    (tmp_path / "lib/tool/core/exposition.py").chmod(0o600)
    found = plan(tmp_path)
    assert found.stale == [stray] and found.changed == [tmp_path / "lib/tool/core/exposition.py"]
    found.apply()
    assert not (tmp_path / "lib/tool/old").exists() and (tmp_path / "lib/tool/core").is_dir()
    assert plan(tmp_path).files == []
