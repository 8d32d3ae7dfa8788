# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases on disk: kept once, immutable, linked as active and current."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import (
    Beside,
    Rendered,
    Settings,
    render,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import history, pins, releases, swaps
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path)


def release(number: int, dtype: str = "float32") -> Rendered:
    instance = Instance(name="main", model="tiny-a", port=5005, accelerator="cpu")
    settings = Settings(environment={"VLLM_API_KEY": "s3cret"})
    return render(instance, ["--dtype", dtype], StoredModel("/m/a", "r"), "image", settings, number=number)


def stage(paths: Paths, dtype: str, warn: Callable[[str], None] = pytest.fail, check: bool = False) -> tuple[int, bool]:
    """The number of the release that was staged, and whether that wrote anything."""
    identity = release(0, dtype).release.id
    staged, changed = releases.stage(paths, "main", identity, lambda number: release(number, dtype), warn, check=check)
    return staged.release.number, changed


def test_a_release_is_kept_once(paths: Paths) -> None:
    assert stage(paths, "float32") == (1, True)
    assert stage(paths, "float32") == (1, False)
    assert stage(paths, "half") == (2, True)
    assert stage(paths, "float32") == (1, False)
    assert releases.numbers(paths, "main") == [1, 2]
    assert releases.load(paths, "main", 2).engine_argv[-1] == "half"


def test_only_the_container_of_a_kept_release_may_become_read_only(paths: Paths) -> None:
    stage(paths, "float32")

    def rendered(number: int) -> Rendered:
        arguments, stored = ["--dtype", "float32"], StoredModel("/m/a", "r")
        instance = Instance(name="main", model="tiny-a", port=5005, accelerator="cpu")
        settings, beside = Settings(environment={"VLLM_API_KEY": "s3cret"}), Beside(read_only=True)
        return render(instance, arguments, stored, "image", settings, beside=beside, number=number, created="later")

    identity = rendered(0).release.id
    for check, expected in ((True, True), (False, True), (False, False)):
        assert releases.stage(paths, "main", identity, rendered, pytest.fail, check=check)[1] is expected
    (kept,) = [releases.load(paths, "main", number) for number in releases.numbers(paths, "main")]
    assert (kept.read_only, kept.created, kept.id) == (True, "", identity)
    assert "--read-only" in releases.text_of(paths, "main", 1).unit and "--read-only" in kept.container_argv


def test_a_write_that_was_cut_off_leaves_no_release(paths: Paths) -> None:
    (paths.releases("main") / ".1.new").mkdir(parents=True)
    assert releases.numbers(paths, "main") == []
    assert stage(paths, "half") == (1, True)


def test_activate_installs_unit_and_secret_environment(paths: Paths) -> None:
    stage(paths, "float32")
    assert releases.active_number(paths, "main") is None
    assert releases.activate(paths, "main", 1) is True
    assert releases.activate(paths, "main", 1) is False
    assert "supervise main --release 1" in paths.unit("main").read_text()
    assert paths.env("main").stat().st_mode & 0o777 == 0o600
    assert (paths.release("main", 1) / releases.ENV_FILE).stat().st_mode & 0o777 == 0o600
    assert releases.active_number(paths, "main") == 1
    assert releases.current_number(paths, "main") is None


def test_commit_records_the_checksums_of_the_proven_release(paths: Paths) -> None:
    stage(paths, "float32")
    releases.activate(paths, "main", 1)
    assert releases.commit(paths, "main", 1) is True
    assert releases.commit(paths, "main", 1) is False
    assert releases.current_number(paths, "main") == 1
    known = files.read_json(paths.known_good("main"))
    assert known["release"] == 1
    kept = list(paths.release("main", 1).iterdir())
    assert sorted(known["files"]) == sorted(map(str, [paths.unit("main"), paths.env("main"), *kept]))


def test_changes_after_the_proof_are_not_proven(paths: Paths) -> None:
    """The known-good checksums must not cover a release that is only staged, or later damage."""
    stage(paths, "float32")
    releases.activate(paths, "main", 1)
    releases.commit(paths, "main", 1)
    before = paths.known_good("main").read_text()
    stage(paths, "half")
    files.write_json(paths.instance("main"), {"release": 2})
    paths.env("main").write_text("damaged")
    assert releases.proven(paths, "main", 1)
    assert releases.commit(paths, "main", 1) is False
    assert paths.known_good("main").read_text() == before
    releases.activate(paths, "main", 2)
    assert not releases.proven(paths, "main", 2)
    assert releases.commit(paths, "main", 2) is True
    paths.known_good("main").write_text("")
    assert releases.commit(paths, "main", 2) is True
    assert releases.proven(paths, "main", 2)


DAMAGE = [b"", b"{", b"null", b'{"schema": 1}', b"\xff\xfe"]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_release_is_left_out_and_named(paths: Paths, damage: bytes) -> None:
    """Despite the damage, the wanted release is staged, under a number of its own."""
    stage(paths, "float32")
    stage(paths, "half")
    file = paths.release("main", 2) / releases.RELEASE_FILE
    file.write_bytes(damage)
    with pytest.raises(releases.ReleaseError, match=re.escape(f"{file} cannot be used (")):
        releases.load(paths, "main", 2)
    warnings: list[str] = []
    assert stage(paths, "float32", warnings.append) == (1, False)
    assert stage(paths, "half", warnings.append, check=True) == (3, True)
    assert stage(paths, "half", warnings.append) == (3, True)
    assert len(warnings) == 3
    assert all(warning.startswith(f"{file} cannot be used (") for warning in warnings)
    # The sound release is newer than the damaged one, and is found first.
    assert stage(paths, "half") == (3, False)


@pytest.mark.parametrize("name", ["vllm@main.service", releases.ENV_FILE])
def test_a_damaged_file_of_a_kept_release_is_repaired(paths: Paths, name: str) -> None:
    stage(paths, "float32")
    file = paths.release("main", 1) / name
    sound = file.read_text()
    file.write_text("")
    with pytest.raises(releases.ReleaseError, match=re.escape(f"{file} cannot be used (is empty)")):
        releases.activate(paths, "main", 1)
    assert not paths.unit("main").exists() and not paths.env("main").exists()
    assert stage(paths, "float32", check=True) == (1, True)
    assert file.read_text() == ""
    assert stage(paths, "float32") == (1, True)
    assert file.read_text() == sound
    assert stage(paths, "float32") == (1, False)


def test_installed_is_false_where_activate_would_write(paths: Paths) -> None:
    stage(paths, "float32")
    stage(paths, "half")
    assert not releases.installed(paths, "main", 1)
    releases.activate(paths, "main", 1)
    assert releases.installed(paths, "main", 1)
    assert not releases.installed(paths, "main", 2)
    for file in (paths.unit("main"), paths.env("main")):
        file.write_bytes(b"\xff")
        assert not releases.installed(paths, "main", 1)
        assert releases.activate(paths, "main", 1) is True
    paths.env("main").chmod(0o644)
    assert not releases.installed(paths, "main", 1)


def numbered(paths: Paths, *served: int) -> None:
    """Ten releases, the last of which is desired; `served` are those that have served, in this order."""
    for number in range(1, 11):
        files.write(paths.release("main", number) / "release.json", "{}")
    files.write_json(paths.instance("main"), {"release": 10})
    for number in served:
        history.add(paths, "main", history.Served(number, "2026-01-01T00:00:00Z"))


def left(paths: Paths, keep: int) -> list[int]:
    going = [number for _name, number in history.superseded(paths, keep)]
    return [number for number in releases.numbers(paths, "main") if number not in going]


def test_all_but_the_last_served_and_the_newest_releases_are_superseded(paths: Paths) -> None:
    numbered(paths, 1, 2, 3, 2, 4)
    assert left(paths, 0) == list(range(1, 11))
    # `keep` releases that served last, each counted once, and the `keep` newest releases.
    assert left(paths, 1) == [4, 10]
    assert left(paths, 2) == [2, 4, 9, 10]
    assert left(paths, 10) == list(range(1, 11))


def test_a_release_in_use_is_never_superseded(paths: Paths) -> None:
    numbered(paths)
    files.link(paths.active("main"), "3")
    files.link(paths.current("main"), "4")
    pins.settle(paths, "main", 5, "a rollback", "2026-01-01T00:00:00Z", back=True)
    swaps.begin(paths, "main", swaps.Swap(6, 7, "run", "2026-01-01T00:00:00Z"))
    assert left(paths, 1) == [3, 4, 5, 6, 7, 10]


def test_a_release_is_removed_as_a_whole(paths: Paths) -> None:
    numbered(paths)
    releases.remove(paths, "main", 2)
    assert releases.numbers(paths, "main") == [1, *range(3, 11)]
    assert not list(paths.releases("main").glob(".*"))
