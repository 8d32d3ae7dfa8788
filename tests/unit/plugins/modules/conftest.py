# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls modules as Ansible does, with fakes of systemd."""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ansible.module_utils import _internal, basic
from ansible.module_utils.common import warnings
from ansible.module_utils.testing import patch_module_args

from ansible_collections.baremetal.inference.plugins.module_utils.backup import schedule
from ansible_collections.baremetal.inference.plugins.module_utils.backup.places import Places
from ansible_collections.baremetal.inference.plugins.module_utils.core import node_call, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import wait
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.node.calls import engine_release, engine_service
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

from ..backup_harness import TimerSystemd, longest_gap

PLUGINS = "ansible_collections.baremetal.inference.plugins."
MODULES = f"{PLUGINS}modules."
CALLS = f"{PLUGINS}module_utils.node.calls."

RunModule = Callable[..., dict[str, Any]]


@pytest.fixture
def run_module(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> RunModule:
    """Runs a module, or the module of an implementation, with these arguments in this process. Returns its result.

    For a module that the node's library runs, the module node_call runs, as with the action plugin.
    """
    # Once a test has imported a filter, Ansible would send warnings to the controller's screen.
    monkeypatch.setattr(_internal, "is_controller", False, raising=False)
    # A module that warned in another test would warn here too.
    monkeypatch.setattr(warnings, "_global_warnings", {})

    def run(module: ModuleType, check: bool = False, **arguments: Any) -> dict[str, Any]:
        if module.__name__.startswith(CALLS):
            # An implementation: a test may have replaced parts of it.
            monkeypatch.setattr(node_call, "implementation", lambda *_arguments, run=module.run: run)
            module = import_module(f"{MODULES}{module.__name__.removeprefix(CALLS)}")
        if hasattr(module, "SPECIFICATION"):
            wanted = node_call.Wanted(module.__name__.rpartition(".")[2], module.SPECIFICATION, "another digest")
            arguments[node_call.OPTION] = wanted.to_text()
            module = import_module(f"{MODULES}node_call")
        with patch_module_args({**arguments, "_ansible_check_mode": check}), pytest.raises(SystemExit):
            module.main()
        result: dict[str, Any] = json.loads(capsys.readouterr().out)
        return result

    return run


@pytest.fixture
def take(run_module: RunModule, monkeypatch: pytest.MonkeyPatch) -> RunModule:
    """Calls a module that the node's library runs. Returns the options that its implementation gets."""

    def call(module: ModuleType, **arguments: Any) -> dict[str, Any]:
        def answer(asked: Any) -> None:
            asked.exit_json(given=asked.params)

        monkeypatch.setattr(node_call, "implementation", lambda *_arguments: answer)
        given: dict[str, Any] = run_module(module, **arguments)["given"]
        return given

    return call


class Systemd:
    """A systemd in which all given services run."""

    def __init__(self, units: Iterable[str]) -> None:
        self.active = dict.fromkeys(units, "active")
        self.enabled = dict.fromkeys(self.active, "enabled")
        self.loaded = dict.fromkeys(self.active, "loaded")
        self.calls: list[str] = []

    def show(self, units: Iterable[str], properties: Iterable[str]) -> dict[str, dict[str, str]]:
        found = {"ActiveState": self.active, "UnitFileState": self.enabled, "LoadState": self.loaded}
        return {unit: {name: found[name][unit] for name in properties} for unit in units}

    def systemctl(self, *arguments: str) -> str:
        self.calls.append(" ".join(arguments))
        if arguments[0] == "stop":
            self.active[arguments[1]] = "inactive"
        if arguments[0] == "disable":
            self.enabled[arguments[1]] = "disabled"
        return ""


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Callable[[Iterable[str]], Systemd]:
    """Puts a systemd with these services in the place of the real one."""

    def have(units: Iterable[str]) -> Systemd:
        found = Systemd(units)
        monkeypatch.setattr(systemd, "show", found.show)
        monkeypatch.setattr(systemd, "systemctl", found.systemctl)
        return found

    return have


class Units:
    """A systemd in which every unit with a file is active."""

    def __init__(self, units: Path) -> None:
        self.units = units
        self.calls: list[str] = []

    def systemctl(self, *words: str) -> str:
        self.calls.append(" ".join(words))
        return ""

    def show(self, units: Iterable[str], _properties: Iterable[str]) -> dict[str, dict[str, str]]:
        return {unit: {"ActiveState": "active" if (self.units / unit).exists() else "inactive"} for unit in units}


@pytest.fixture
def two_instances(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """A node below a temporary root: `main` runs its first release, `other` has a release, and was never started."""
    paths = Paths(tmp_path)
    units = Units(paths.units)
    monkeypatch.setattr(systemd, "show", units.show)
    monkeypatch.setattr(systemd, "systemctl", units.systemctl)
    for number, name in enumerate(("main", "other")):
        stored = StoredModel(f"/mnt/models/{name}/ab12cd34ef56", "ab12cd34ef56")
        instance = Instance(name=name, model=f"{name}-model", port=5005 + number, accelerator="cpu")

        def rendered(release: int, instance: Instance = instance, stored: StoredModel = stored) -> Any:
            return render(instance, [], stored, "vllm@sha256:1", Settings(), number=release)

        releases.stage(paths, name, rendered(0).release.id, rendered, pytest.fail)
    releases.activate(paths, "main", 1)
    return paths


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """The files of the backup, below a directory of the test."""
    return Places(tmp_path)


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> TimerSystemd:
    """A systemd with the timers of the backup."""
    fake = TimerSystemd()
    monkeypatch.setattr(systemd, "show", fake.show)
    monkeypatch.setattr(systemd, "systemctl", fake.systemctl)
    monkeypatch.setattr(schedule, "longest_gap", longest_gap)
    return fake


@pytest.fixture
def call_backup(places: Places, monkeypatch: pytest.MonkeyPatch, run_module: RunModule) -> RunModule:
    """Runs a module of the backup with files below a directory of the test."""

    def run(module: ModuleType, check: bool = False, **arguments: Any) -> dict[str, Any]:
        monkeypatch.setattr(module, "Places", lambda: places)
        return run_module(module, check, **arguments)

    return run


MAIN, TARGET = "vllm@main.service", "inference.target"

STEPS = ("release", "started", "ready")


class UnitFiles:
    """A systemd that reads unit files only at a daemon-reload. A started engine is ready at once."""

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        self.loaded: dict[str, str] = {}
        self.active: set[str] = set()
        self.enabled: set[str] = set()
        self.calls: list[str] = []

    def text(self, unit: str) -> str:
        file = self.paths.units / unit
        return file.read_text() if file.exists() else ""

    def show(self, units: Iterable[str], properties: Iterable[str]) -> dict[str, dict[str, str]]:
        return {
            unit: {
                "LoadState": "loaded" if self.loaded.get(unit) else "not-found",
                "ActiveState": "active" if unit in self.active else "inactive",
                "SubState": "running" if unit in self.active else "dead",
                "UnitFileState": "enabled" if unit in self.enabled else "disabled" if self.text(unit) else "",
                "NeedDaemonReload": "yes" if self.loaded.get(unit, "") != self.text(unit) else "no",
            }
            for unit in units
        }

    def systemctl(self, verb: str, *arguments: str) -> str:
        self.calls.append(verb)
        units = [argument for argument in arguments if not argument.startswith("--")]
        if verb == "daemon-reload":
            self.loaded = {unit: self.text(unit) for unit in (MAIN, TARGET)}
        for unit in units:
            if not self.text(unit):
                raise systemd.SystemdError(f"systemctl {verb}: Unit {unit} not found.")
        change = {"start": self.active.update, "stop": self.active.difference_update, "enable": self.enabled.update}
        change.get(verb, lambda units: None)(units)
        return ""


class EngineNode:
    """A node below a temporary root, and the calls of site.yml."""

    def __init__(self, root: Path, run_module: RunModule) -> None:
        self.paths = Paths(root)
        self.systemd = UnitFiles(self.paths)
        self.warnings: list[str] = []
        self._run = run_module
        self.entry: dict[str, Any] = {"model": "/srv/tiny-a", "dtype": "float32"}
        self.models: dict[str, Any] = {"tiny-a": self.entry}
        self.model = "tiny-a"
        self.own: dict[str, Any] = {}
        """More keys of the instance."""
        self.places = {"tiny-a": {"path": "/mnt/models/tiny-a/abc", "revision": "abc"}}

    def call(self, step: str, check: bool, **more: Any) -> dict[str, Any]:
        module = engine_release if step == "release" else engine_service
        given = {
            "instances": [{"name": "main", "model": self.model, "port": 5005, "accelerator": "cpu", **self.own}],
            "models": self.models,
            "places": self.places,
            "image": "registry.example.com/vllm@sha256:00",
            "engine_version": "0.32.0",
            "user": pwd.getpwuid(os.getuid()).pw_name,
            "secret_environment": {"VLLM_API_KEY": "s3cret-value"},
            "settings": {"cache_path": str(self.paths.root / "cache")},
            **more,
        }
        arguments = given if step == "release" else {"names": ["main"], "state": step}
        result = self._run(module, check, **arguments)
        assert not result.get("failed"), result["msg"]
        return result

    def everything(self) -> dict[str, bytes | str]:
        """All files and links below the root."""
        found = [path for path in self.paths.root.rglob("*") if path.is_symlink() or path.is_file()]
        return {str(path): os.readlink(path) if path.is_symlink() else path.read_bytes() for path in found}

    @staticmethod
    def due(foreseen: dict[str, dict[str, Any]]) -> bool:
        """Whether role vllm would change anything: its preflight asks for the state `started` alone."""
        return bool(foreseen["release"]["due"] or foreseen["started"]["due"])

    def site(self) -> tuple[list[str], list[str]]:
        """One run of site.yml, which check mode must have predicted: the steps that changed something, and warnings."""
        before = self.everything()
        foreseen = {step: self.call(step, check=True) for step in STEPS}
        predicted = [step for step in STEPS if foreseen[step]["changed"]]
        assert self.everything() == before
        assert self.due(foreseen) is bool(predicted)
        self.systemd.calls.clear()
        self.warnings.clear()
        changed = [step for step in STEPS if self.call(step, check=False)["changed"]]
        assert predicted == changed
        return changed, list(self.warnings)


@pytest.fixture
def fresh_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_module: RunModule) -> EngineNode:
    """A node that has no engine yet."""
    node = EngineNode(tmp_path, run_module)
    for module in (engine_release, engine_service):
        monkeypatch.setattr(module, "Paths", lambda: node.paths)
    monkeypatch.setattr(systemd, "show", node.systemd.show)
    monkeypatch.setattr(systemd, "systemctl", node.systemd.systemctl)
    monkeypatch.setattr(wait, "last_words", lambda paths, name, retrying: "")
    # Ansible collects warnings for the whole process, and each version writes them in another form.
    monkeypatch.setattr(basic.AnsibleModule, "warn", lambda module, warning: node.warnings.append(warning))
    return node


@pytest.fixture
def serving_node(fresh_node: EngineNode) -> EngineNode:
    """A node that serves release 1."""
    assert fresh_node.site() == (list(STEPS), [])
    return fresh_node
