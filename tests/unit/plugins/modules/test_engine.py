# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules engine_release and engine_service on one node, as site.yml calls them: predicted, done, done again."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import wait
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases, swaps
from ansible_collections.baremetal.inference.plugins.modules import engine_release, engine_service

MAIN, TARGET = "vllm@main.service", "inference.target"

STEPS = ("release", "started", "ready")

RunModule = Callable[..., dict[str, Any]]


class Systemd:
    """Units as systemd sees them: their files are read when it is told to, and an engine that is started is ready."""

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


class Node:
    """A node below a temporary root, and the calls of site.yml."""

    def __init__(self, root: Path, run_module: RunModule) -> None:
        self.paths = Paths(root)
        self.systemd = Systemd(self.paths)
        self.warnings: list[str] = []
        self._run = run_module
        self.entry: dict[str, Any] = {"model": "/srv/tiny-a", "dtype": "float32"}
        self.models: dict[str, Any] = {"tiny-a": self.entry}
        self.model = "tiny-a"

    def call(self, step: str, check: bool) -> dict[str, Any]:
        module = engine_release if step == "release" else engine_service
        given = {
            "instances": [{"name": "main", "model": self.model, "port": 5005, "accelerator": "cpu"}],
            "models": self.models,
            "catalog": {"tiny-a": {"path": "/mnt/models/tiny-a/abc", "revision": "abc"}},
            "image": "registry.example.com/vllm@sha256:00",
            "engine_version": "0.32.0",
            "user": pwd.getpwuid(os.getuid()).pw_name,
            "secret_environment": {"VLLM_API_KEY": "s3cret-value"},
            "settings": {"cache_path": str(self.paths.root / "cache")},
        }
        arguments = given if step == "release" else {"names": ["main"], "state": step}
        result = self._run(module, check, **arguments)
        assert not result.get("failed"), result["msg"]
        return result

    def everything(self) -> dict[str, bytes | str]:
        """All files and links below the root."""
        found = [path for path in self.paths.root.rglob("*") if path.is_symlink() or path.is_file()]
        return {str(path): os.readlink(path) if path.is_symlink() else path.read_bytes() for path in found}

    def site(self) -> tuple[list[str], list[str]]:
        """One run of site.yml, which check mode must have predicted: the steps that changed something, and warnings."""
        before = self.everything()
        predicted = [step for step in STEPS if self.call(step, check=True)["changed"]]
        assert self.everything() == before
        self.systemd.calls.clear()
        self.warnings.clear()
        changed = [step for step in STEPS if self.call(step, check=False)["changed"]]
        assert predicted == changed
        return changed, list(self.warnings)


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_module: RunModule) -> Node:
    node = Node(tmp_path, run_module)
    for module in (engine_release, engine_service):
        monkeypatch.setattr(module, "Paths", lambda: node.paths)
    monkeypatch.setattr(systemd, "show", node.systemd.show)
    monkeypatch.setattr(systemd, "systemctl", node.systemd.systemctl)
    monkeypatch.setattr(wait, "last_words", lambda paths, name, retrying: "")
    # Ansible collects them for the whole process, and writes them in another way in each version.
    monkeypatch.setattr(basic.AnsibleModule, "warn", lambda module, warning: node.warnings.append(warning))
    return node


@pytest.fixture
def node(fresh: Node) -> Node:
    """A node that serves release 1."""
    assert fresh.site() == (list(STEPS), [])
    return fresh


def test_a_release_keeps_the_flags_of_its_model(node: Node) -> None:
    release = releases.load(node.paths, "main", 1)
    assert (release.flags, release.arguments) == ({"dtype": "float32"}, ["--dtype", "float32"])


def test_a_release_of_the_first_version_stays_as_it_is(node: Node) -> None:
    """That version kept argv alone. What serves is not written anew for data that a later version adds."""
    file = node.paths.release("main", 1) / "release.json"
    old = {key: value for key, value in files.read_json(file).items() if key not in ("flags", "arguments", "settings")}
    files.write(file, files.to_json(old))
    before = node.everything()
    assert node.site() == ([], [])
    assert node.everything() == before


def test_a_fresh_node(fresh: Node) -> None:
    assert fresh.site() == (list(STEPS), [])
    assert fresh.systemd.calls == ["daemon-reload", "enable", "reset-failed", "start"]
    assert fresh.systemd.enabled == {MAIN, TARGET}
    assert releases.current_number(fresh.paths, "main") == 1
    assert fresh.site() == ([], [])
    assert fresh.systemd.calls == []


def test_what_serves_is_not_restarted(node: Node) -> None:
    node.entry["dtype"] = "half"
    assert node.site() == (["release"], [])
    (release,) = node.call("release", check=False)["releases"]
    assert (release["active"], release["release"], release["pending"]) == (1, 2, True)
    assert release["differences"] == ["-     float32", "+     half"]
    assert node.systemd.calls == []


def test_what_would_be_staged_is_named_with_its_model(node: Node) -> None:
    (staged,) = node.call("release", check=True)["releases"]
    assert (staged["model"], staged["model_path"]) == ("tiny-a", "/mnt/models/tiny-a/abc")


def test_what_is_stopped_starts_with_the_release_that_is_wanted(node: Node) -> None:
    node.entry["dtype"] = "half"
    node.systemd.active.clear()
    assert node.site() == (list(STEPS), [])
    assert releases.current_number(node.paths, "main") == 2


def test_a_variant_is_served_from_the_weights_of_its_base(node: Node) -> None:
    """Under its own name and with its own flags; the node keeps both entries."""
    node.models["short"] = {"base": "tiny-a", "max-model-len": 128}
    node.model = "short"
    node.systemd.active.clear()
    assert node.site() == (list(STEPS), [])
    release = files.read_json(node.paths.release("main", 2) / releases.RELEASE_FILE)
    assert release["engine_argv"][:5] == ["serve", "/mnt/models/tiny-a/abc", "--served-model-name", "main", "short"]
    assert release["engine_argv"][-4:] == ["--dtype", "float32", "--max-model-len", "128"]
    assert (release["model"], release["revision"]) == ("short", "abc")
    assert sorted(files.read_json(node.paths.registry)["models"]) == ["short", "tiny-a"]


@pytest.mark.parametrize("pending", [False, True], ids=["as desired", "with a pending release"])
@pytest.mark.parametrize("name", ["unit", "env", "target"])
@pytest.mark.parametrize("damage", ["edited", "removed"])
def test_installed_files_of_what_serves_are_repaired(node: Node, name: str, damage: str, pending: bool) -> None:
    """Without them the engine would not come back after its end. It goes on serving, and with what it serves now."""
    if pending:
        node.entry["dtype"] = "half"
        node.site()
    file = node.paths.target if name == "target" else getattr(node.paths, name)("main")
    sound = file.read_text()
    if damage == "removed":
        file.unlink()
    else:
        file.write_text("edited")
        # The operator made it work at once; systemd does not miss anything.
        node.systemd.systemctl("daemon-reload")
    assert node.site() == (["started"], [])
    assert node.systemd.calls == ["daemon-reload"]
    assert file.read_text() == sound
    assert node.systemd.loaded[MAIN] == node.paths.unit("main").read_text()
    assert node.site() == ([], [])


def test_what_was_disabled_is_enabled(node: Node) -> None:
    node.systemd.enabled.remove(MAIN)
    assert node.site() == (["started"], [])
    assert node.systemd.calls == ["enable"]


def test_a_unit_that_systemd_has_not_read_is_read(node: Node) -> None:
    """A run was cut off after it had written the unit."""
    node.systemd.loaded[MAIN] = "older"
    assert node.site() == (["started"], [])
    assert node.systemd.calls == ["daemon-reload"]


def test_a_lost_mark_is_set_again(node: Node) -> None:
    node.paths.known_good("main").unlink()
    assert node.site() == (["ready"], [])


@pytest.mark.parametrize("damage", [b"", b"\xff", b'{"schema": 1}'])
def test_damaged_state_files_are_written_anew(node: Node, damage: bytes) -> None:
    files_of_ours = (node.paths.instance("main"), node.paths.registry)
    sound = [file.read_bytes() for file in files_of_ours]
    for file in files_of_ours:
        file.write_bytes(damage)
    assert node.site() == (["release"], [])
    assert [file.read_bytes() for file in files_of_ours] == sound


def test_a_damaged_release_that_serves(node: Node) -> None:
    """The same is staged under a new number, which replaces it when the engine is down for the lack of its release."""
    file = node.paths.release("main", 1) / releases.RELEASE_FILE
    file.write_text("")
    changed, warnings = node.site()
    assert changed == ["release"]
    assert warnings and all(warning.startswith(f"{file} cannot be used (") for warning in warnings)
    (release,) = node.call("release", check=False)["releases"]
    assert (release["active"], release["release"], release["differences"]) == (1, 2, [])
    node.systemd.active.clear()
    changed, _warnings = node.site()
    assert changed == ["started", "ready"]
    assert files.read_json(node.paths.known_good("main"))["release"] == 2


def test_an_active_release_that_lost_everything(node: Node) -> None:
    """Nothing tells what serves; that is said, and the rest of the run goes on."""
    node.entry["dtype"] = "half"
    node.site()
    for file in node.paths.release("main", 1).iterdir():
        file.write_text("")
    node.paths.unit("main").unlink()
    changed, warnings = node.site()
    assert changed == []
    assert [warning for warning in warnings if "main runs, but may not come back after its end" in warning]
    assert not node.paths.unit("main").exists()
    node.paths.active("main").unlink()
    _changed, warnings = node.site()
    assert [warning for warning in warnings if "does not tell which release" in warning]
    assert node.systemd.active == {MAIN}


def test_what_an_update_is_at_is_neither_started_nor_proven(node: Node) -> None:
    """site.yml beside an update, or after one that was cut off."""
    node.entry["dtype"] = "half"
    node.call("release", check=False)
    swaps.begin(node.paths, "main", swaps.Swap(1, 2, "run", "2026-11-21T03:00:00Z"))
    releases.activate(node.paths, "main", 2)
    changed, warnings = node.site()
    assert changed == []
    assert "run update-model.yml again" in warnings[0]
    assert releases.current_number(node.paths, "main") == 1
    node.systemd.active.clear()
    assert node.site()[0] == []
    assert MAIN not in node.systemd.active
    swaps.end(node.paths, "main")
    assert node.site()[0] == ["started", "ready"]
    assert releases.current_number(node.paths, "main") == 2
