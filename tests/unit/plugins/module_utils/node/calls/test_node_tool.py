# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module node_tool installs a library that runs without Ansible, installs it once, and removes all of it."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, node_library, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.version import VERSION
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Rendered, Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.fleet import node_library as fleet
from ansible_collections.baremetal.inference.plugins.module_utils.node.calls import model_variants, node_tool
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

ROOT = Path(__file__).resolve().parents[6]
LIBRARY = ROOT / "plugins/module_utils"

TEMPLATE = "{% for message in messages %}<{{ message.role }}>{{ message.content }}{% endfor %}"

RunModule = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def sent() -> dict[str, str]:
    """The library that the controller sends."""
    return {path: content.decode() for path, content in fleet.read().items()}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_module: RunModule, sent: dict[str, str]) -> RunModule:
    """Call the module with files below tmp_path and a part of the library: compiling all of it takes a second."""
    part = {path: text for path, text in sent.items() if path.startswith("core/")}
    monkeypatch.setattr(node_library, "own", lambda: part)
    monkeypatch.setattr(node_tool, "Paths", lambda: Paths(tmp_path))
    return partial(run_module, node_tool)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, sent: dict[str, str]) -> Path:
    """The root of a node with the whole library. Tests change nothing there."""
    root = tmp_path_factory.mktemp("installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(node_library, "own", lambda: sent)
        assert node_tool.install(Paths(root), check=False)["changed"] is True
    return root


def test_the_installed_library_runs_without_ansible(installed: Path) -> None:
    """Every part of the library is there, and needs only the standard library."""
    command = [sys.executable, "-I", str(installed / "usr/local/bin/inferctl"), "--version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout == f"inferctl {VERSION}\n"
    parts = [path for path in (installed / "usr/local/lib/inference").rglob("*.py") if path.name != "__init__.py"]
    names = [".".join(path.relative_to(installed / "usr/local/lib").with_suffix("").parts) for path in parts]
    script = f"import sys; sys.path.insert(0, {str(installed / 'usr/local/lib')!r}); import {', '.join(names)}"
    subprocess.run([sys.executable, "-I", "-S", "-c", script], check=True)


def test_all_that_the_command_imports_is_installed_unchanged(installed: Path) -> None:
    library = installed / "usr/local/lib/inference"
    found = {path.relative_to(library) for path in library.rglob("*.py")}
    for package in ("node/doctor", "node/recovery", "hardware/gpu", "hardware/rdma", "models/fit", "models/flags"):
        there = {path.relative_to(LIBRARY) for path in (LIBRARY / package).glob("*.py")}
        assert len(there & found) > 3, package
    for path in found:
        assert (library / path).read_text() == (LIBRARY / path).read_text(), path


def test_the_code_for_the_engines_image_renders_prompts(installed: Path, tmp_path: Path) -> None:
    code = model_variants.CODE.format(seconds=60, directory=str(installed / "usr/local/lib"), package="inference")
    asked = {"texts": {"chat_template.jinja": TEMPLATE}, "prompt": "Be kind.", "policy": "always", "where": "models.a"}
    command = [sys.executable, "-c", code]
    answer = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, cwd=tmp_path, check=True)
    assert "Be kind." in json.loads(answer.stdout)["files"]["chat_template.jinja"]


def test_the_version_of_inferctl_is_that_of_the_collection() -> None:
    assert yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"] == VERSION


def test_a_second_run_changes_nothing_and_check_mode_writes_nothing(
    run: RunModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tests of a controller in a container keep their byte code elsewhere.
    monkeypatch.setattr(sys, "pycache_prefix", None)
    predicted = run(check=True)
    assert predicted["changed"] is True and predicted["version"] == VERSION
    assert list(tmp_path.iterdir()) == []
    assert run()["files"] == predicted["files"]
    assert (tmp_path / "usr/local/bin/inferctl").stat().st_mode & 0o777 == 0o755
    # The byte code is installed, too, since services cannot write any in their sandbox. Damaged byte code is no change.
    (code,) = (tmp_path / "usr/local/lib/inference/core/__pycache__").glob("paths.*.pyc")
    code.write_bytes(b"\0\xff")
    again = run()
    assert again["changed"] is False
    assert again["diff"]["before"] == again["diff"]["after"]


def test_damaged_files_are_repaired_and_other_files_removed(run: RunModule, tmp_path: Path) -> None:
    run()
    library = tmp_path / "usr/local/lib/inference"
    (library / "core/paths.py").write_text("broken")
    (library / "old/__pycache__").mkdir(parents=True)
    (library / "old/__pycache__/part.cpython-311.pyc").write_text("")
    for stray in ("core/stray.py", "old/part.py"):
        (library / stray).write_text("")
    (tmp_path / "usr/local/bin/inferctl").chmod(0o644)
    wrong = (library / "core/paths.py", library / "core/stray.py", library / "old/part.py")
    expected = [str(tmp_path / "usr/local/bin/inferctl"), *map(str, wrong)]
    assert run(check=True)["files"] == expected
    result = run()
    assert result["files"] == expected
    assert "old/part.py" in result["diff"]["before"]
    assert "old/part.py" not in result["diff"]["after"]
    assert not (library / "old").exists() and not (library / "core/stray.py").exists()
    assert run()["changed"] is False


class Systemd:
    """A fake systemd: a unit is active if its file exists."""

    def __init__(self, units: Path) -> None:
        self.units = units
        self.calls: list[str] = []

    def systemctl(self, *words: str) -> str:
        if words[0] != "list-units":
            self.calls.append(" ".join(words))
        return ""

    def show(self, units: Iterable[str], _properties: Iterable[str]) -> dict[str, dict[str, str]]:
        there = {path.name for path in self.units.glob("*")}
        return {unit: {"ActiveState": "active" if unit in there else "inactive"} for unit in units}


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    manager = Systemd(Paths(tmp_path).units)
    for name in ("systemctl", "show"):
        monkeypatch.setattr(systemd, name, getattr(manager, name))
    return manager


def test_the_state_absent_removes_command_and_library(run: RunModule, tmp_path: Path, manager: Systemd) -> None:
    run()
    assert run(state="absent", check=True)["changed"] is True
    assert (tmp_path / "usr/local/bin/inferctl").exists()
    assert run(state="absent")["changed"] is True
    assert not (tmp_path / "usr/local/lib/inference").exists()
    assert not (tmp_path / "usr/local/bin/inferctl").exists()
    assert run(state="absent")["changed"] is False


def test_a_node_with_an_instance_is_refused(run: RunModule, tmp_path: Path, manager: Systemd) -> None:
    paths = Paths(tmp_path)
    instance = Instance(name="main", model="main-model", port=5005, accelerator="cpu")
    stored = StoredModel("/mnt/models/main/ab12cd34ef56", "ab12cd34ef56")

    def rendered(number: int) -> Rendered:
        return render(instance, [], stored, "vllm@sha256:1", Settings(), number=number)

    releases.stage(paths, "main", rendered(0).release.id, rendered, pytest.fail)
    said = run(state="absent")["msg"]
    assert (
        "the node still has main: remove each instance first, with baremetal.inference.decommission -e instance=main"
        in said
        and "again" not in said
    )
    assert manager.calls == []
    assert run(state="absent", check=True)["changed"] is True


def test_the_state_absent_removes_units_metrics_and_directories(
    run: RunModule, tmp_path: Path, manager: Systemd
) -> None:
    paths = Paths(tmp_path)
    kept = paths.state / "docker-daemon.json"
    units = [paths.agent_unit, *paths.metrics_units.values(), *paths.recovery_units.values()]
    metrics = [paths.metrics("gpus"), paths.probe_metrics]
    library = [paths.command, paths.library / "x.py"]
    for path in (*units, *metrics, *library, paths.target, kept, paths.etc / "doctor.json", tmp_path / "cache/main/x"):
        files.write(path, "x")
    given = {"state": "absent", "keep": [str(kept)], "directories": [str(tmp_path / "cache")]}
    foreseen = run(check=True, **given)
    assert manager.calls == [] and all(path.exists() for path in units)
    found = run(**given)
    assert found["files"] == foreseen["files"] and found["changed"]
    assert set(map(str, [*units, paths.command, paths.library, paths.etc, paths.target, *metrics])) < set(
        found["files"]
    )
    assert found["diff"] == foreseen["diff"] and str(paths.agent_unit) in found["diff"]["before"]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [kept]
    assert not (tmp_path / "cache").exists()
    assert run(**given)["changed"] is False


def test_an_error_half_way_asks_to_run_again(
    run: RunModule, tmp_path: Path, manager: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write(Paths(tmp_path).agent_unit, "x")

    def fails(*words: str) -> str:
        raise systemd.SystemdError(f"systemctl {' '.join(words)}: no")

    monkeypatch.setattr(systemd, "systemctl", fails)
    assert "no. Correct this and run again: the removal continues" in run(state="absent")["msg"]


def test_parts_import_relatively(sent: dict[str, str]) -> None:
    """On a node, the package has another name."""
    for name, text in sent.items():
        # Only files with the word `ansible` are parsed, since parsing all files takes a second.
        tree = ast.parse(text if "ansible" in text else "")
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        absolute = [node.module for node in imports if node.level == 0 and str(node.module).startswith("ansible")]
        assert not absolute, name
