# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules that take things off a node: foreseen, done, and nothing to do the second time."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import Docker
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import removal
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.maintenance import docker_disk
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored import StoredModel
from ansible_collections.baremetal.inference.plugins.modules import (
    engine_removal,
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
    for module in (engine_removal,):
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
