# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module engine_service on a node, as site.yml calls it, and its bridges and removals."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import Docker
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import removal
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import wait
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import drains, releases, swaps
from ansible_collections.baremetal.inference.plugins.module_utils.maintenance import docker_disk
from ansible_collections.baremetal.inference.plugins.module_utils.node.calls import engine_service

from ....modules.conftest import MAIN, STEPS, TARGET, EngineNode, RunModule


def test_a_fresh_node_gets_its_engine_once(fresh_node: EngineNode) -> None:
    assert fresh_node.site() == (list(STEPS), [])
    assert fresh_node.systemd.calls == ["daemon-reload", "enable", "reset-failed", "start"]
    assert fresh_node.systemd.enabled == {MAIN, TARGET}
    assert releases.current_number(fresh_node.paths, "main") == 1
    assert fresh_node.site() == ([], [])
    assert fresh_node.systemd.calls == []


def test_a_stopped_instance_starts_with_the_desired_release(serving_node: EngineNode) -> None:
    serving_node.entry["dtype"] = "half"
    serving_node.systemd.active.clear()
    assert serving_node.site() == (list(STEPS), [])
    assert releases.current_number(serving_node.paths, "main") == 2


@pytest.mark.parametrize("pending", [False, True], ids=["as desired", "with a pending release"])
@pytest.mark.parametrize("name", ["unit", "env", "target"])
@pytest.mark.parametrize("damage", ["edited", "removed"])
def test_installed_files_of_a_serving_engine_are_repaired(
    serving_node: EngineNode, name: str, damage: str, pending: bool
) -> None:
    """Without these files, the engine could not start again. The repair changes neither the engine nor its release."""
    if pending:
        serving_node.entry["dtype"] = "half"
        serving_node.site()
    file = serving_node.paths.target if name == "target" else getattr(serving_node.paths, name)("main")
    sound = file.read_text()
    if damage == "removed":
        file.unlink()
    else:
        file.write_text("edited")
        # The operator has reloaded systemd after the edit, so systemd does not ask for a reload.
        serving_node.systemd.systemctl("daemon-reload")
    assert serving_node.site() == (["started"], [])
    assert serving_node.systemd.calls == ["daemon-reload"]
    assert file.read_text() == sound
    assert serving_node.systemd.loaded[MAIN] == serving_node.paths.unit("main").read_text()
    assert serving_node.site() == ([], [])


def test_a_disabled_unit_is_enabled(serving_node: EngineNode) -> None:
    serving_node.systemd.enabled.remove(MAIN)
    assert serving_node.site() == (["started"], [])
    assert serving_node.systemd.calls == ["enable"]


def test_a_unit_that_systemd_has_not_loaded_is_loaded(serving_node: EngineNode) -> None:
    """A run that was cut off between the write of the unit and the reload leaves such a unit."""
    serving_node.systemd.loaded[MAIN] = "older"
    assert serving_node.site() == (["started"], [])
    assert serving_node.systemd.calls == ["daemon-reload"]


def test_a_release_that_lost_its_proof_is_proven_again(serving_node: EngineNode) -> None:
    serving_node.paths.known_good("main").unlink()
    assert serving_node.site() == (["ready"], [])


def test_without_the_option_prove_check_mode_predicts_no_mark(serving_node: EngineNode, run_module: RunModule) -> None:
    serving_node.paths.known_good("main").unlink()
    given: dict[str, Any] = {"names": ["main"], "state": "ready", "prove": False}
    foreseen = run_module(engine_service, check=True, **given)
    assert foreseen["changed"] is run_module(engine_service, **given)["changed"] is False


def test_an_active_release_without_sound_files_is_a_warning(serving_node: EngineNode) -> None:
    """The module cannot repair the unit, so it only warns. The engine keeps running."""
    serving_node.entry["dtype"] = "half"
    serving_node.site()
    for file in serving_node.paths.release("main", 1).iterdir():
        file.write_text("")
    serving_node.paths.unit("main").unlink()
    changed, warnings = serving_node.site()
    assert changed == []
    assert [warning for warning in warnings if "main runs, but may not start again after its end" in warning]
    assert not serving_node.paths.unit("main").exists()
    serving_node.paths.active("main").unlink()
    _changed, warnings = serving_node.site()
    assert [warning for warning in warnings if "does not name its release" in warning]
    assert serving_node.systemd.active == {MAIN}


def test_an_instance_in_a_swap_is_neither_started_nor_proven(serving_node: EngineNode) -> None:
    """site.yml may run during an update, or after an update that was cut off."""
    serving_node.entry["dtype"] = "half"
    serving_node.call("release", check=False)
    swaps.begin(serving_node.paths, "main", swaps.Swap(1, 2, "run", "2026-11-21T03:00:00Z"))
    releases.activate(serving_node.paths, "main", 2)
    changed, warnings = serving_node.site()
    assert changed == []
    assert "See inferctl status" in warnings[0]
    assert releases.current_number(serving_node.paths, "main") == 1
    serving_node.systemd.active.clear()
    assert serving_node.site()[0] == []
    assert MAIN not in serving_node.systemd.active
    swaps.end(serving_node.paths, "main")
    assert serving_node.site()[0] == ["started", "ready"]
    assert releases.current_number(serving_node.paths, "main") == 2


@pytest.fixture
def removable(two_instances: Paths, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """The node with two instances, each of which has a compile cache."""
    monkeypatch.setattr(engine_service, "Paths", lambda: two_instances)
    monkeypatch.setattr(engine_service, "Docker", lambda: Docker(two_instances.root / "docker.sock"))
    monkeypatch.setattr(removal, "FORGET_SECONDS", 0)
    for name in ("main", "other"):
        (two_instances.root / "cache" / name).mkdir(parents=True)
    return two_instances


def test_an_instance_is_removed_with_its_cache(removable: Paths, run_module: RunModule) -> None:
    given = {"names": ["main"], "state": "absent", "cache_path": str(removable.root / "cache")}
    foreseen = run_module(engine_service, check=True, **given)
    assert foreseen["removed"] == ["main"] and removable.unit("main").exists()
    found = run_module(engine_service, **given)
    assert found["removed"] == foreseen["removed"] and found["also"] == foreseen["also"]
    assert found["also"] == [str(removable.root / "cache/main")]
    assert not (removable.root / "cache/main").exists() and (removable.root / "cache/other").exists()
    assert run_module(engine_service, **given)["changed"] is False


def test_an_instance_is_removed_with_its_container_and_image(
    removable: Paths, run_module: RunModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    (removable.root / "docker.sock").touch()
    asked: list[set[str]] = []

    def forget(_disk: docker_disk.Disk, before: set[str]) -> list[docker_disk.Item]:
        asked.append(before)
        return [docker_disk.Item("image", "vllm@sha256:1", 1)]

    monkeypatch.setattr(docker_disk.Disk, "forget", forget)
    monkeypatch.setattr(removal, "remove_container", lambda _docker, name: name == "main")
    found = run_module(engine_service, names=["main"], state="absent")
    assert found["also"] == ["container of main", "image vllm@sha256:1"]
    assert asked == [{"vllm@sha256:1"}]


def test_a_bridge_is_started_drained_and_removed_alone(
    removable: Paths, run_module: RunModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The removal of the bridge keeps the cache, image and model that it shares with its instance."""
    (removable.root / "docker.sock").touch()
    monkeypatch.setattr(docker_disk.Disk, "forget", lambda *asked: pytest.fail("images were removed"))
    monkeypatch.setattr(removal, "remove_container", lambda *asked: pytest.fail("a container was removed"))
    given = {"names": ["main"], "bridge": {"release": 1, "port": 5105}}
    assert run_module(engine_service, check=True, **given)["changed"] and not removable.releases("main_bridge").exists()
    found = run_module(engine_service, **given)
    assert (found["changed"], found["bridge"], found["release"]) == (True, "main_bridge", 1)
    bridge = releases.load(removable, "main_bridge", 1)
    assert (bridge.port, bridge.model) == (5105, "main-model")
    drain = drains.read(removable, "main_bridge", datetime.now(UTC))
    assert drain and drain.owner == drains.UPDATE
    assert run_module(engine_service, **given)["changed"] is False
    gone = {"names": ["main_bridge"], "state": "absent", "cache_path": str(removable.root / "cache")}
    foreseen = run_module(engine_service, check=True, **gone)
    assert foreseen["removed"] == ["main_bridge"] and removable.releases("main_bridge").exists()
    found = run_module(engine_service, **gone)
    assert (found["removed"], found["also"]) == (["main_bridge"], [])
    assert not removable.releases("main_bridge").exists() and removable.releases("main").exists()
    assert run_module(engine_service, **gone)["changed"] is False


def test_a_bridge_is_removed_with_its_instance(removable: Paths, run_module: RunModule) -> None:
    run_module(engine_service, names=["main"], bridge={"release": 1, "port": 5105})
    assert run_module(engine_service, names=["main"], state="absent")["removed"] == ["main", "main_bridge"]


@pytest.mark.parametrize("given", [{"names": ["main", "other"]}, {"names": ["main"], "state": "stopped"}])
def test_a_bridge_needs_one_name_and_the_state_started(
    removable: Paths, run_module: RunModule, given: dict[str, Any]
) -> None:
    said = run_module(engine_service, bridge={"release": 1, "port": 5105}, **given)
    assert said["failed"] and "give one name, and the state started" in said["msg"]
    assert not removable.releases("main_bridge").exists()


def test_a_bridge_of_a_missing_release_is_an_error(removable: Paths, run_module: RunModule) -> None:
    said = run_module(engine_service, names=["main"], bridge={"release": 9, "port": 5105})
    assert said["failed"] and str(removable.release("main", 9)) in said["msg"]


def test_a_stopped_instance_stays_installed(serving_node: EngineNode, run_module: RunModule) -> None:
    given = {"names": ["main"], "state": "stopped"}
    assert run_module(engine_service, check=True, **given)["changed"] and serving_node.systemd.active == {MAIN}
    assert run_module(engine_service, **given)["changed"] and serving_node.systemd.active == set()
    assert serving_node.paths.unit("main").exists()
    assert run_module(engine_service, **given)["changed"] is False


@pytest.mark.parametrize("state", ["loading", "ready"])
def test_an_engine_that_loads_is_due(serving_node: EngineNode, monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    """The module starts nothing, but the run must wait for an engine that loads."""
    monkeypatch.setattr(wait, "outcomes", lambda _paths, names: [wait.Outcome(name, state) for name in names])
    found = serving_node.call("started", check=True)
    assert (found["changed"], found["due"]) == (False, state == "loading")


def test_a_wait_that_ends_too_early_names_the_engines_that_still_load(
    serving_node: EngineNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wait, "wait_ready", lambda *_given: [wait.Outcome("main", "loading", status="weights: 50 %")])
    assert serving_node.call("ready", check=False)["msg"] == "still loading: main: weights: 50 %"
