# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units of version 0.1.0 get today's start timeout, and nothing else changes."""

from __future__ import annotations

import dataclasses
import itertools
from datetime import UTC, datetime
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
    """Write the first `most` of the wanted files, or all. Returns the written files."""
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


def test_staging_leaves_the_timeout_to_the_renewal(paths: Paths) -> None:
    """releases.stage() does not update the known-good checksums."""
    for expected in (first, today):
        _staged, changed = releases.stage(paths, "main", today(0).release.id, today, pytest.fail)
        assert not changed and releases.text_of(paths, "main", 2).unit == expected(2).unit
        renew(paths)


def test_a_unit_that_was_edited_stays_wrong(paths: Paths) -> None:
    files.write(paths.unit("main"), first(2).unit + "# mine\n")
    renew(paths)
    (wrong,) = managed.verify(paths, "main")
    assert wrong.path == paths.unit("main") and wrong.source


def test_a_kept_unit_that_is_damaged_is_renewed_after_its_repair(paths: Paths) -> None:
    kept, damaged = paths.release("main", 2) / "vllm@main.service", first(2).unit + "# damaged\n"
    files.write(kept, damaged)
    assert renew(paths) == [paths.release("main", 1) / "vllm@main.service"] and files.text(kept) == damaged
    wrong = managed.verify(paths, "main")
    assert [one.path for one in wrong] == [kept]
    managed.repair(paths, "main", wrong, datetime(2026, 1, 1, tzinfo=UTC))
    assert renew(paths) == [kept, paths.unit("main"), paths.known_good("main")]
    assert managed.verify(paths, "main") == [] and files.text(kept) == today(2).unit


def test_a_unit_without_known_good_checksums_is_renewed(paths: Paths) -> None:
    paths.known_good("main").unlink()
    renew(paths)
    assert releases.text_of(paths, "main", 2).unit == today(2).unit and renew(paths) == []


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"start_timeout": "long"}'])
def test_a_damaged_release_is_left_alone(paths: Paths, damage: str) -> None:
    for number in (1, 2):
        files.write(paths.release("main", number) / renewal.RELEASE_FILE, damage)
    assert renewal.wanted(paths) == {}


def test_a_node_without_releases_has_no_unit_to_renew(tmp_path: Path) -> None:
    assert renewal.wanted(Paths(tmp_path)) == {}
