# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bridges: their start, their removal, and a bridge that an update has left."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import bridge_place, bridges, removal
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import drains, lock, releases

from ..conftest import stage

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
WISH = bridges.Wish("main", 1, 5105, ("2", "3"))


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    paths = Paths(tmp_path)
    stage(paths, "main", 5005)
    return paths


@pytest.fixture
def active(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The units that systemd runs."""
    running: set[str] = set()

    def systemctl(verb: str, *arguments: str) -> str:
        units = [argument for argument in arguments if not argument.startswith("--")]
        {"start": running.update, "stop": running.difference_update}.get(verb, lambda units: None)(units)
        return ""

    def show(units: Iterable[str], _properties: Iterable[str]) -> dict[str, dict[str, str]]:
        return {unit: {"ActiveState": "active" if unit in running else "inactive"} for unit in units}

    monkeypatch.setattr(systemd, "systemctl", systemctl)
    monkeypatch.setattr(systemd, "show", show)
    monkeypatch.setattr(removal, "FORGET_SECONDS", 0)
    return running


def test_a_bridge_starts_drained(paths: Paths, active: set[str]) -> None:
    assert bridges.start(paths, WISH, NOW, check=True) == (True, 1)
    assert not bridges.left(paths, "main") and active == set()
    assert bridges.start(paths, WISH, NOW, check=False) == (True, 1)
    assert active == {"vllm@main_bridge.service"} and bridges.left(paths, "main")
    made = releases.load(paths, "main_bridge", 1)
    assert (made.port, made.gpus, made.served_names) == (5105, ["2", "3"], ["main", "tiny-a"])
    drain = drains.read(paths, "main_bridge", NOW)
    assert drain is not None and drain.owner == drains.UPDATE
    assert bridges.start(paths, WISH, NOW, check=False) == (False, 1)


def test_a_bridge_with_another_release_is_replaced(paths: Paths, active: set[str]) -> None:
    stage(paths, "main", 5005, dtype="bfloat16")
    bridges.start(paths, WISH, NOW, check=False)
    assert bridges.start(paths, bridges.Wish("main", 2, 5105, ("2", "3")), NOW, check=False) == (True, 2)
    assert "bfloat16" in releases.load(paths, "main_bridge", 2).engine_argv
    assert "bfloat16" in paths.unit("main_bridge").read_text()


def test_the_removal_leaves_no_file_of_a_bridge(paths: Paths, active: set[str]) -> None:
    before = {path for path in paths.root.rglob("*") if path.is_file()}
    assert bridges.remove(paths, "main", check=False) is False
    bridges.start(paths, WISH, NOW, check=False)
    assert bridges.remove(paths, "main", check=True) is True
    assert active == {"vllm@main_bridge.service"}
    assert bridges.remove(paths, "main", check=False) is True
    assert active == set() and not bridges.left(paths, "main")
    assert {path for path in paths.root.rglob("*") if path.is_file()} == before


def test_a_bridge_is_not_listed_as_an_instance_and_is_unattended_without_a_lock(paths: Paths, active: set[str]) -> None:
    bridges.start(paths, WISH, NOW, check=False)
    assert bridges.instances(paths) == ["main"]
    holder = lock.Lock(
        "a", "mira", "admin1", "baremetal.inference.update_model", drains.format_time(NOW), lock.until(NOW, 300)
    )
    lock.take(paths, holder, NOW)
    assert bridges.unattended(paths, NOW) == []
    assert bridges.unattended(paths, NOW + timedelta(seconds=301)) == ["main_bridge"]


def test_a_bridge_that_an_update_left_keeps_its_gpus(paths: Paths, active: set[str]) -> None:
    bridges.start(paths, WISH, NOW, check=False)
    assert bridges.place(paths, "main", 1, 1, 5105) == bridge_place.Place(("2", "3"))


def test_everything_that_a_bridge_lacks_is_named_at_once(
    paths: Paths, active: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for room, problem in (("", ""), ("no GPU of this node is free for it", ", and no GPU of this node is free for it")):
        monkeypatch.setattr(bridge_place, "place", lambda *_given, room=room: bridge_place.Place(problem=room))
        assert bridges.place(paths, "main", 1, 1, None).problem == f"it has no bridge_port{problem}"


def test_the_port_of_a_bridge_is_that_of_the_inventory(paths: Paths) -> None:
    assert bridges.declared_port(paths, "main") is None
    for port in (None, 5105):
        files.write_json(paths.instance("main"), {"schema": 1, "release": 1, "bridge_port": port})
        assert bridges.declared_port(paths, "main") == port
