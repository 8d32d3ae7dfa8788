# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module node_tool: what it installs runs on its own, and it installs it once."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.core import node_library
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.modules import model_variants, node_tool

ROOT = Path(__file__).resolve().parents[4]
LIBRARY = ROOT / "plugins/module_utils"

TEMPLATE = "{% for message in messages %}<{{ message.role }}>{{ message.content }}{% endfor %}"

RunModule = Callable[..., dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_module: RunModule) -> RunModule:
    """Call the module with files below tmp_path."""
    monkeypatch.setattr(node_tool.paths, "Paths", lambda: Paths(tmp_path))
    return partial(run_module, node_tool)


def test_what_is_installed_runs_on_its_own(run: RunModule, tmp_path: Path) -> None:
    """With the standard library alone: every part is there, and none imports Ansible."""
    result = run()
    assert result["changed"] is True
    command = [sys.executable, "-I", str(tmp_path / "usr/local/bin/inferctl"), "--version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout == f"inferctl {result['version']}\n"
    parts = [path for path in (tmp_path / "usr/local/lib/inference").rglob("*.py") if path.name != "__init__.py"]
    names = [".".join(path.relative_to(tmp_path / "usr/local/lib").with_suffix("").parts) for path in parts]
    script = f"import sys; sys.path.insert(0, {str(tmp_path / 'usr/local/lib')!r}); import {', '.join(names)}"
    subprocess.run([sys.executable, "-I", "-S", "-c", script], check=True)


def test_all_that_the_command_imports_is_installed_unchanged(run: RunModule, tmp_path: Path) -> None:
    run()
    library = tmp_path / "usr/local/lib/inference"
    installed = {path.relative_to(library) for path in library.rglob("*.py")}
    for package in ("node/doctor", "node/recovery", "hardware/gpu", "hardware/rdma", "models/fit", "models/flags"):
        there = {path.relative_to(LIBRARY) for path in (LIBRARY / package).glob("*.py")}
        assert len(there & installed) > 3, package
    for path in installed:
        assert (library / path).read_text() == (LIBRARY / path).read_text(), path


def test_the_engines_image_finds_there_what_renders_prompts(run: RunModule, tmp_path: Path) -> None:
    run()
    code = model_variants.CODE.format(seconds=60, directory=str(tmp_path / "usr/local/lib"), package="inference")
    asked = {"texts": {"chat_template.jinja": TEMPLATE}, "prompt": "Be kind.", "policy": "always", "where": "models.a"}
    command = [sys.executable, "-c", code]
    answer = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, cwd=tmp_path, check=True)
    assert "Be kind." in json.loads(answer.stdout)["files"]["chat_template.jinja"]


def test_the_version_is_the_collections() -> None:
    assert yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"] == node_tool.inferctl.VERSION


def test_a_second_run_changes_nothing_and_check_mode_writes_nothing(run: RunModule, tmp_path: Path) -> None:
    predicted = run(check=True)
    assert predicted["changed"] is True
    assert list(tmp_path.iterdir()) == []
    assert run()["files"] == predicted["files"]
    assert (tmp_path / "usr/local/bin/inferctl").stat().st_mode & 0o777 == 0o755
    # Byte code comes with it, for the sandbox of services keeps theirs; whatever becomes of it changes nothing.
    (code,) = (tmp_path / "usr/local/lib/inference/core/__pycache__").glob("paths.*.pyc")
    code.write_bytes(b"\0\xff")
    again = run()
    assert again["changed"] is False
    assert again["diff"]["before"] == again["diff"]["after"]


def test_damage_and_strays_are_repaired(run: RunModule, tmp_path: Path) -> None:
    run()
    library = tmp_path / "usr/local/lib/inference"
    (library / "core/paths.py").write_text("broken")
    (library / "old/__pycache__").mkdir(parents=True)
    (library / "old/__pycache__/part.cpython-311.pyc").write_text("")
    (library / "old/part.py").write_text("")
    (tmp_path / "usr/local/bin/inferctl").chmod(0o644)
    expected = [str(tmp_path / "usr/local/bin/inferctl"), str(library / "core/paths.py"), str(library / "old/part.py")]
    assert run(check=True)["files"] == expected
    result = run()
    assert result["files"] == expected
    assert "old/part.py" in result["diff"]["before"]
    assert "old/part.py" not in result["diff"]["after"]
    assert not (library / "old").exists()
    assert not (library / "old_part.py").exists()
    assert run()["changed"] is False


def test_absent_leaves_nothing(run: RunModule, tmp_path: Path) -> None:
    run()
    assert run(state="absent", check=True)["changed"] is True
    assert (tmp_path / "usr/local/bin/inferctl").exists()
    assert run(state="absent")["changed"] is True
    assert not (tmp_path / "usr/local/lib/inference").exists()
    assert not (tmp_path / "usr/local/bin/inferctl").exists()
    assert run(state="absent")["changed"] is False


def test_parts_import_relatively() -> None:
    """On a node the package has another name."""
    for name, text in node_library.sources(node_tool.inferctl.__name__, *node_tool.ALSO).items():
        imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
        absolute = [node.module for node in imports if node.level == 0 and str(node.module).startswith("ansible")]
        assert not absolute, name
