# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`inferctl releases`: roles, measurements and problems of each release, and swap and lock of the node."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import history, lock, pins, swaps
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.history import Served
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.lock import Lock

from ...conftest import stage
from .conftest import Run, RunJson

NIGHT = "2026-05-04T03:00:00Z"
NOW = datetime(2026, 5, 4, 3, 0, tzinfo=UTC)

LOCK = Lock("run7", "alice", "control", "baremetal.inference.update_model", NIGHT, "2026-05-04T04:00:00Z")


@pytest.fixture
def main(paths: Paths) -> Paths:
    """Instance main has served release 1, the inventory asks for release 2, and a rollback keeps 1."""
    stage(paths, "main", 5005, "half")
    files.write_json(paths.instance("main"), {"schema": 1, "release": 2})
    history.add(paths, "main", Served(1, NIGHT, 41.6, 87.4))
    pins.settle(paths, "main", 1, "too slow", NIGHT, back=True)
    return paths


def test_the_newest_release_is_on_top_with_roles_and_measurements(main: Paths, run: Run) -> None:
    code, out, errors = run("releases", "main")
    assert (code, errors) == (0, "")
    name, second, first, pinned = out.splitlines()
    assert name == "main"
    assert second.split()[:3] == ["2", "tiny-a", "ab12cd34ef56"] and second.endswith("(desired)")
    assert "served since" not in second
    assert first.split()[0] == "1" and " image image  made " in first
    assert first.endswith(f"served since {NIGHT}  loaded in 42 s  87 tokens/s  (active, current, pinned)")
    assert pinned == f"  pinned: release 1 instead of 2 since {NIGHT}: too slow"


def test_without_a_name_all_instances_are_shown(run: Run) -> None:
    _code, out, _errors = run("releases")
    assert [line for line in out.splitlines() if not line.startswith(" ")] == ["main", "side"]
    assert out.count("(active, current, desired)") == 2


def test_a_swap_and_the_lock_are_shown(paths: Paths, run: Run) -> None:
    swaps.begin(paths, "main", swaps.Swap(1, 2, "run7", NIGHT))
    swaps.begin(paths, "side", swaps.Swap(None, 1, "run7", NIGHT))
    lock.take(paths, LOCK, NOW)
    _code, out, _errors = run("releases")
    assert "  being swapped: release 1 for 2, by run run7\n" in out
    assert "  being swapped: nothing for 1, by run run7\n" in out
    assert out.endswith(f"locked by {LOCK}\n")


def test_a_damaged_release_is_named_and_hides_no_other(main: Paths, run: Run, run_json: RunJson) -> None:
    (main.releases("main") / "2/release.json").write_text("{")
    code, out, _errors = run("releases", "main")
    assert code == 0
    assert "release.json" in out.splitlines()[1] and out.splitlines()[2].split()[1] == "tiny-a"
    first, second = run_json("releases", "main")[1]["instances"][0]["releases"]
    assert (first["problem"], second["model"], second["roles"]) == ("", "", ["desired"])
    assert "release.json" in second["problem"]


def test_json_has_releases_pin_and_lock(main: Paths, run_json: RunJson) -> None:
    code, document = run_json("releases", "main")
    assert (code, document["lock"]) == (0, None)
    (instance,) = document["instances"]
    assert (instance["name"], instance["swap"], instance["pin"]["release"]) == ("main", None, 1)
    first, second = instance["releases"]
    assert (first["release"], first["served_since"], first["load_seconds"]) == (1, NIGHT, 41.6)
    assert (first["tokens_per_second"], first["image"], first["revision"]) == (87.4, "image", "ab12cd34ef56")
    assert (second["release"], second["served_since"], second["tokens_per_second"]) == (2, None, None)
    lock.take(main, LOCK, NOW)
    assert run_json("releases")[1]["lock"]["run_id"] == "run7"


def test_a_damaged_lock_is_an_error_and_hides_no_release(paths: Paths, run: Run) -> None:
    files.write(paths.lock, "{")
    for arguments in (["releases"], ["releases", "--json"]):
        code, out, errors = run(*arguments)
        assert code == 1 and str(paths.lock) in errors and "side" in out


def test_a_damaged_desired_state_is_an_error_and_hides_no_release(main: Paths, run: Run, run_json: RunJson) -> None:
    files.write(main.instance("main"), "{")
    code, out, errors = run("releases")
    assert code == 1 and errors.count("inferctl: ") == 1 and str(main.instance("main")) in errors
    assert [line for line in out.splitlines() if not line.startswith(" ")] == ["main", "side"]
    assert "(active, current)" in out and "(active, current, desired)" in out
    code, document = run_json("releases")
    damaged, sound = document["instances"]
    assert code == 1 and str(main.instance("main")) in damaged["problem"] and sound["problem"] == ""
    assert [each["roles"] for each in damaged["releases"]] == [["active", "current"], []] and damaged["pin"] is None


def test_an_unknown_instance_is_wrong_usage(run: Run) -> None:
    code, _out, errors = run("releases", "mian")
    assert code == 2 and "did you mean 'main'?" in errors
