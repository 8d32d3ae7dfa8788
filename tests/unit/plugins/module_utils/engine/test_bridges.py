# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bridges: whether a second engine fits, its start, its end, and what is left of it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import bridge_place, bridges, removal
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import drains, lock, releases

from ..conftest import stage

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
WISH = bridges.Wish("main", 1, 5105, ("2", "3"))
GIB = 1024


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


def test_it_is_drained_before_it_runs(paths: Paths, active: set[str]) -> None:
    assert bridges.start(paths, WISH, NOW, check=True) == (True, 1)
    assert not bridges.left(paths, "main") and active == set()
    assert bridges.start(paths, WISH, NOW, check=False) == (True, 1)
    assert active == {"vllm@main_bridge.service"} and bridges.left(paths, "main")
    made = releases.load(paths, "main_bridge", 1)
    assert (made.port, made.gpus, made.served_names) == (5105, ["2", "3"], ["main", "tiny-a"])
    drain = drains.read(paths, "main_bridge", NOW)
    assert drain is not None and drain.owner == drains.UPDATE
    assert bridges.start(paths, WISH, NOW, check=False) == (False, 1)


def test_one_that_runs_something_else_is_replaced(paths: Paths, active: set[str]) -> None:
    stage(paths, "main", 5005, dtype="bfloat16")
    bridges.start(paths, WISH, NOW, check=False)
    assert bridges.start(paths, bridges.Wish("main", 2, 5105, ("2", "3")), NOW, check=False) == (True, 2)
    assert "bfloat16" in releases.load(paths, "main_bridge", 2).engine_argv
    assert "bfloat16" in paths.unit("main_bridge").read_text()


def test_nothing_of_it_stays(paths: Paths, active: set[str]) -> None:
    before = {path for path in paths.root.rglob("*") if path.is_file()}
    assert bridges.remove(paths, "main", check=False) is False
    bridges.start(paths, WISH, NOW, check=False)
    assert bridges.remove(paths, "main", check=True) is True
    assert active == {"vllm@main_bridge.service"}
    assert bridges.remove(paths, "main", check=False) is True
    assert active == set() and not bridges.left(paths, "main")
    assert {path for path in paths.root.rglob("*") if path.is_file()} == before


def test_it_is_no_instance_of_its_own_and_noticed_without_a_lock(paths: Paths, active: set[str]) -> None:
    bridges.start(paths, WISH, NOW, check=False)
    assert bridges.instances(paths) == ["main"]
    holder = lock.Lock("a", "mira", "admin1", "update-model.yml", drains.format_time(NOW), lock.until(NOW, 300))
    lock.take(paths, holder, NOW)
    assert bridges.unattended(paths, NOW) == []
    assert bridges.unattended(paths, NOW + timedelta(seconds=301)) == ["main_bridge"]


def test_what_was_left_has_its_place(paths: Paths, active: set[str]) -> None:
    bridges.start(paths, WISH, NOW, check=False)
    assert bridges.place(paths, "main", 1, 1, 5105) == bridge_place.Place(("2", "3"))


def test_the_port_is_the_inventorys(paths: Paths) -> None:
    assert bridges.declared_port(paths, "main") is None
    for port in (None, 5105):
        files.write_json(paths.instance("main"), {"schema": 1, "release": 1, "bridge_port": port})
        assert bridges.declared_port(paths, "main") == port


@pytest.mark.parametrize(
    ("origin", "target", "available", "problem"),
    [
        (3 * GIB, 3 * GIB, 4 * GIB, ""),
        (3 * GIB, 3 * GIB, 2 * GIB, "has 2.0 GiB of memory left, 1.0 GiB too little"),
        # It fits beside the small one, but not beside another one of its own size.
        (1 * GIB, 8 * GIB, 9 * GIB, "has 9.0 GiB of memory left, 6.0 GiB too little"),
        (None, 3 * GIB, 4 * GIB, "nobody knows"),
        (3 * GIB, 3 * GIB, None, "nobody knows"),
    ],
)
def test_memory_of_the_host(origin: int | None, target: int, available: int | None, problem: str) -> None:
    found = bridge_place._in_memory(origin, target, available)
    assert problem in found and bool(problem) == bool(found)


def gpu(index: int, **more: Any) -> dict[str, Any]:
    return {"index": index, "uuid": f"GPU-{index}", "reported": True, "memory_total_mib": 80 * GIB, **more}


def test_gpus_that_nobody_has() -> None:
    node = [gpu(0), gpu(1), gpu(2, processes=[{"pid": 1}]), gpu(3), gpu(4)]
    assert bridge_place.free_gpus(["0", "GPU-1"], 2, node) == ("3", "4")
    assert bridge_place.free_gpus(["0", "1"], 3, node) == ()


@pytest.mark.parametrize(
    ("flags", "needed", "free", "problem"),
    [
        (("--kv-cache-memory-bytes", "8G", "--gpu-memory-utilization", "0.4"), 20 * GIB, 48 * GIB, ""),
        (("--gpu-memory-utilization", "0.4"), 20 * GIB, 48 * GIB, "its model needs kv-cache-memory-bytes"),
        # What the engine asks for before it starts, whatever it takes.
        (("--kv-cache-memory-bytes", "8G"), 20 * GIB, 60 * GIB, "GPU 0 has 67.2 GiB of memory too little"),
        (("--kv-cache-memory-bytes", "8G", "--gpu-memory-utilization", "0.4"), None, 48 * GIB, "nobody knows"),
        (("--kv-cache-memory-bytes", "8G", "--gpu-memory-utilization", "0.4"), 20 * GIB, None, "is not known"),
    ],
)
def test_the_same_gpus(
    paths: Paths, flags: tuple[str, ...], needed: int | None, free: int | None, problem: str
) -> None:
    release = releases.load(paths, "main", 1)
    release.engine_argv[:] = [*release.engine_argv, *flags]
    found = bridge_place._on_the_same(release, needed, [gpu(0, memory_free_mib=free), gpu(1, memory_free_mib=free)])
    assert problem in found and bool(problem) == bool(found)


def test_flags_of_a_command_line() -> None:
    line = ["serve", "/m", "--dtype", "float32", "--enforce-eager", "--no-async-scheduling", "--max-model-len=512"]
    assert bridge_place.entry_of([*line, "--seed", "1"]) == {
        "dtype": "float32",
        "enforce-eager": True,
        "async-scheduling": False,
        "max-model-len": "512",
        "seed": "1",
    }
