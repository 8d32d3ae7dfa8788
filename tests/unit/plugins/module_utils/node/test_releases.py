# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases on disk: kept once, immutable, linked as active and current."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.node import files, releases
from ansible_collections.baremetal.inference.plugins.module_utils.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.registry import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.release import (
    Rendered,
    Settings,
    StoredModel,
    render,
)


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path)


def release(number: int, dtype: str = "float32") -> Rendered:
    instance = Instance(name="main", model="tiny-a", port=5005, accelerator="cpu")
    settings = Settings(environment={"VLLM_API_KEY": "s3cret"})
    return render(instance, {"dtype": dtype}, StoredModel("/m/a", "r"), "image", settings, number=number)


def stage(paths: Paths, dtype: str) -> tuple[int, bool]:
    return releases.stage(paths, "main", release(0, dtype).release.id, lambda number: release(number, dtype))


def test_a_release_is_kept_once(paths: Paths) -> None:
    assert stage(paths, "float32") == (1, True)
    assert stage(paths, "float32") == (1, False)
    assert stage(paths, "half") == (2, True)
    assert stage(paths, "float32") == (1, False)
    assert releases.numbers(paths, "main") == [1, 2]
    assert releases.load(paths, "main", 2).engine_argv[-1] == "half"


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


def test_commit_remembers_what_was_proven(paths: Paths) -> None:
    stage(paths, "float32")
    releases.activate(paths, "main", 1)
    assert releases.commit(paths, "main", 1) is True
    assert releases.commit(paths, "main", 1) is False
    assert releases.current_number(paths, "main") == 1
    known = files.read_json(paths.known_good("main"))
    assert known["release"] == 1
    assert str(paths.unit("main")) in known["files"]


def test_a_damaged_release_names_its_file(paths: Paths) -> None:
    stage(paths, "float32")
    (paths.release("main", 1) / releases.RELEASE_FILE).write_text("{")
    with pytest.raises(releases.ReleaseError, match=re.escape(releases.RELEASE_FILE)):
        releases.load(paths, "main", 1)


def test_write_is_atomic_and_keeps_the_mode(tmp_path: Path) -> None:
    target = tmp_path / "deep/secret"
    assert files.write(target, "a", mode=0o600) is True
    assert files.write(target, "a", mode=0o600) is False
    assert files.write(target, "a", mode=0o644) is True
    assert files.write(target, "b", mode=0o600) is True
    assert target.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in target.parent.iterdir()] == ["secret"]
