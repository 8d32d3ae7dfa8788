# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units of version 0.1.0 get today's start timeout, and nothing else changes."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import renewal, unit_text
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Rendered, Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import managed
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel


def today(number: int, dtype: str = "half") -> Rendered:
    instance = Instance(name="main", model="tiny-a", port=5005, accelerator="cpu")
    stored = StoredModel("/m/a", "r")
    return render(instance, ["--dtype", dtype], stored, "image", Settings(start_timeout=600), number=number)


def first(number: int, dtype: str = "half") -> Rendered:
    """The release as version 0.1.0 made it."""
    made = today(number, dtype)
    return dataclasses.replace(made, unit=unit_text.with_timeout(made.unit, unit_text.FIRST_TIMEOUT))


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """A node of version 0.1.0 with two releases; the second one has proved itself."""
    paths = Paths(tmp_path)
    for dtype in ("float32", "half"):
        identity = first(0, dtype).release.id
        releases.stage(paths, "main", identity, lambda number, dtype=dtype: first(number, dtype), pytest.fail)  # type: ignore[misc]
    releases.activate(paths, "main", 2)
    releases.commit(paths, "main", 2)
    return paths


def renew(paths: Paths, most: int | None = None) -> list[Path]:
    """Write at most so many of the wanted files. Returns the written files."""
    found = dict(itertools.islice(renewal.wanted(paths).items(), most))
    for path, text in found.items():
        files.write(path, text)
    return list(found)


def test_all_kept_releases_and_the_installed_unit_get_the_timeout(paths: Paths) -> None:
    kept = [paths.release("main", number) / "vllm@main.service" for number in (1, 2)]
    assert renew(paths) == [kept[0], kept[1], paths.unit("main"), paths.known_good("main")]
    for number, dtype in ((1, "float32"), (2, "half")):
        assert releases.text_of(paths, "main", number).unit == today(number, dtype).unit
    assert releases.installed(paths, "main", 2) and managed.verify(paths, "main") == []
    assert renew(paths) == [], "a second run changes nothing"


def test_a_run_that_is_cut_off_is_finished_by_the_next(paths: Paths) -> None:
    for _file in range(4):
        assert len(renew(paths, 1)) == 1
    assert managed.verify(paths, "main") == [] and renew(paths) == []


def test_site_leaves_the_timeout_to_this_module(paths: Paths) -> None:
    """releases.stage() does not keep the checksums."""
    for expected in (first, today):
        _staged, changed = releases.stage(paths, "main", today(0).release.id, today, pytest.fail)
        assert not changed and releases.text_of(paths, "main", 2).unit == expected(2).unit
        renew(paths)


def test_what_somebody_edited_stays_wrong(paths: Paths) -> None:
    files.write(paths.unit("main"), first(2).unit + "# mine\n")
    renew(paths)
    (wrong,) = managed.verify(paths, "main")
    assert wrong.path == paths.unit("main") and wrong.source


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"start_timeout": "long"}'])
def test_a_damaged_release_is_left_alone(paths: Paths, damage: str) -> None:
    for number in (1, 2):
        files.write(paths.release("main", number) / renewal.RELEASE_FILE, damage)
    assert renewal.wanted(paths) == {}


def test_a_node_without_releases(tmp_path: Path) -> None:
    assert renewal.wanted(Paths(tmp_path)) == {}
