# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules that take things off a node: foreseen, done, and nothing to do the second time."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import Docker
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import removal
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.maintenance import docker_disk
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache, build
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import Store
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored import StoredModel
from ansible_collections.baremetal.inference.plugins.modules import (
    engine_removal,
    model_removal,
)

RunModule = Callable[..., dict[str, Any]]


class Manager:
    """A systemd that knows a node's unit files, and what else is active."""

    def __init__(self, units: Path) -> None:
        self.units = units
        self.active: set[str] = set()
        self.told: list[str] = []

    def systemctl(self, *words: str) -> str:
        if words[0] == "list-units":
            return "".join(f"{unit} loaded active running\n" for unit in fnmatch.filter(self.active, words[-1]))
        self.told.append(" ".join(words))
        return ""

    def show(self, units: Iterable[str], _properties: Iterable[str]) -> dict[str, dict[str, str]]:
        there = {path.name for path in self.units.glob("*")} | self.active
        return {unit: {"ActiveState": "active" if unit in there else "inactive"} for unit in units}


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Manager:
    manager = Manager(Paths(tmp_path).units)
    for name in ("systemctl", "show"):
        monkeypatch.setattr(systemd, name, getattr(manager, name))
    return manager


@pytest.fixture
def paths(tmp_path: Path, manager: Manager, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """A node with one instance that is started, and one that is not."""
    paths = Paths(tmp_path)
    for module in (engine_removal, model_removal):
        monkeypatch.setattr(module, "Paths", lambda: paths)
    monkeypatch.setattr(engine_removal, "Docker", lambda: Docker(tmp_path / "docker.sock"))
    monkeypatch.setattr(removal, "FORGET_SECONDS", 0)
    for number, name in enumerate(("main", "other")):
        stored = StoredModel(f"/mnt/models/{name}/ab12cd34ef56", "ab12cd34ef56")
        instance = Instance(name=name, model=f"{name}-model", port=5005 + number, accelerator="cpu")

        def rendered(release: int, instance: Instance = instance, stored: StoredModel = stored) -> Any:
            return render(instance, [], stored, "vllm@sha256:1", Settings(), number=release)

        releases.stage(paths, name, rendered(0).release.id, rendered, pytest.fail)
        (tmp_path / "cache" / name).mkdir(parents=True)
    releases.activate(paths, "main", 1)
    return paths


def test_an_instance_goes_with_its_cache(paths: Paths, run_module: RunModule) -> None:
    given = {"names": ["main"], "cache_path": str(paths.root / "cache")}
    foreseen = run_module(engine_removal, check=True, **given)
    assert foreseen["removed"] == ["main"] and paths.unit("main").exists()
    found = run_module(engine_removal, **given)
    assert found["removed"] == foreseen["removed"] and found["also"] == foreseen["also"]
    assert found["also"] == [str(paths.root / "cache/main")]
    assert not (paths.root / "cache/main").exists() and (paths.root / "cache/other").exists()
    assert run_module(engine_removal, **given)["changed"] is False


def test_its_container_and_image_go_with_it(
    paths: Paths, run_module: RunModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    (paths.root / "docker.sock").touch()
    asked: list[set[str]] = []

    def forget(_disk: docker_disk.Disk, before: set[str]) -> list[docker_disk.Item]:
        asked.append(before)
        return [docker_disk.Item("image", "vllm@sha256:1", 1)]

    monkeypatch.setattr(docker_disk.Disk, "forget", forget)
    monkeypatch.setattr(removal, "remove_container", lambda _docker, name: name == "main")
    found = run_module(engine_removal, names=["main"])
    assert found["also"] == ["container of main", "image vllm@sha256:1"]
    assert asked == [{"vllm@sha256:1"}]


# --- models


@pytest.fixture
def store(
    paths: Paths, tmp_path: Path, write_model: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> dict[str, Path]:
    """A store with one model that a release needs, and one that none does."""
    monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda *_given, **_more: None)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text("22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n")
    found = {}
    for fill, name in enumerate(("needed", "idle")):
        source = write_model(tmp_path / f"source-{name}", fill=fill)
        manifest, _problems = build(source, name, HashCache())
        assert manifest
        plan = Store(tmp_path / "models", HashCache()).plan(name, manifest)
        Store(tmp_path / "models", HashCache()).publish(plan, source)
        found[name] = plan.path
    for name in ("main", "other"):
        file = paths.release(name, 1) / releases.RELEASE_FILE
        file.write_text(file.read_text().replace(f"/mnt/models/{name}/ab12cd34ef56", str(found["needed"])))
        unit = paths.release(name, 1) / f"vllm@{name}.service"
        unit.write_text(unit.read_text().replace(f"/mnt/models/{name}/ab12cd34ef56", str(found["needed"])))
    releases.activate(paths, "main", 1)
    return found


def test_what_a_release_needs_stays(store: dict[str, Path], tmp_path: Path, run_module: RunModule) -> None:
    given = {"store": str(tmp_path / "models"), "models": ["needed", "idle"]}
    foreseen = run_module(model_removal, check=True, **given)
    assert foreseen["removed"] == [str(store["idle"])] and store["idle"].exists()
    found = run_module(model_removal, **given)
    assert found["removed"] == foreseen["removed"] and "release 1 of main" in found["kept"][0]
    assert not store["idle"].parent.exists() and store["needed"].is_dir()
    assert run_module(model_removal, **given)["changed"] is False


def test_other_models_are_not_looked_at(store: dict[str, Path], tmp_path: Path, run_module: RunModule) -> None:
    assert run_module(model_removal, store=str(tmp_path / "models"), models=["else"])["changed"] is False


def test_it_is_foreseen_what_those_need_that_leave(
    store: dict[str, Path], tmp_path: Path, run_module: RunModule
) -> None:
    given = {"store": str(tmp_path / "models"), "everything": True}
    assert run_module(model_removal, check=True, leaving=["main"], **given)["removed"] == [str(store["idle"])]
    everything = run_module(model_removal, check=True, leaving=["main", "other"], **given)
    assert sorted(everything["removed"]) == sorted(map(str, store.values()))


def test_an_empty_store_goes(store: dict[str, Path], paths: Paths, tmp_path: Path, run_module: RunModule) -> None:
    run_module(engine_removal, names=["main", "other"])
    (tmp_path / "models/.incoming/x").mkdir(parents=True)
    given = {"store": str(tmp_path / "models"), "everything": True}
    assert run_module(model_removal, **given)["changed"] is True
    assert not (tmp_path / "models").exists()
    assert run_module(model_removal, **given)["changed"] is False


def test_containers_of_those_that_leave_need_nothing() -> None:
    text = json.dumps([{"Name": "/vllm-main", "x": 1}, {"Name": "/app"}])
    assert json.loads(model_removal.without_containers(text, ["main"])) == [{"Name": "/app"}]
    assert model_removal.without_containers(text, []) == text
    assert model_removal.without_containers("", ["main"]) == ""
