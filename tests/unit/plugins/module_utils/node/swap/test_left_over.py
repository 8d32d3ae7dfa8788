# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The open work of a swap is reported until it is done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import gangs, releases, swaps
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.gangs import GangState, MemberState
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.swaps import Report, Swap
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap import left_over

from ...conftest import stage
from ..gang.world import OLD, gang

SINCE = "2026-11-25T12:00:00Z"
KEPT = "main_bridge could not be removed (busy): the next swap removes it"
UNPROVEN = "release 1 serves, but is not marked as proven (disk full): inferctl swap main --to 1"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """A swap has left a bridge, and a release that is not marked as proven."""
    paths = Paths(tmp_path)
    stage(paths, "main", 5005, "float32")
    report = Report(1, 2, "run", SINCE, SINCE, swaps.RETURNED, "no", kept_bridge="busy", unproven="disk full")
    swaps.end(paths, "main", report)
    files.write(paths.drain("main_bridge"), "")
    releases.activate(paths, "main", 1)
    return paths


def test_open_work_is_reported(paths: Paths) -> None:
    assert left_over.still(paths, "main") == [KEPT, UNPROVEN]


def test_work_that_is_done_meanwhile_is_not_reported(paths: Paths) -> None:
    files.write(paths.drain("main_bridge"), None)
    assert left_over.still(paths, "main") == [UNPROVEN]
    releases.commit(paths, "main", 1)
    assert left_over.still(paths, "main") == []


def test_a_new_release_without_a_mark_is_reported(paths: Paths) -> None:
    swaps.end(paths, "main", Report(1, 2, "run", SINCE, SINCE, swaps.DONE, unproven="disk full"))
    assert left_over.still(paths, "main") == [], "another release serves by now"
    stage(paths, "main", 5005, "float16")
    releases.activate(paths, "main", 2)
    assert left_over.still(paths, "main") == [UNPROVEN.replace("release 1", "release 2").replace("--to 1", "--to 2")]
    releases.commit(paths, "main", 2)
    assert left_over.still(paths, "main") == []


def test_during_the_next_swap_nothing_is_reported(paths: Paths) -> None:
    swaps.write(paths, "main", Swap(1, 2, "next", SINCE, step=swaps.BEGUN))
    assert left_over.still(paths, "main") == []


def test_without_a_report_nothing_is_left(paths: Paths) -> None:
    files.write(paths.swap_report("main"), None)
    assert left_over.still(paths, "main") == []


def test_members_that_are_behind_are_reported(paths: Paths) -> None:
    report = Report(1, 2, "run", SINCE, SINCE, swaps.RETURNED, "no", behind="gpu-1 is away")
    (words,) = left_over.words(report, "main")
    assert words.startswith("not all members of main have marked the release as proven") and "gpu-1 is away" in words


def test_members_stay_reported_until_they_have_marked_the_release(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader marks its own release even if a member has not marked the release in time."""
    files.write(paths.drain("main_bridge"), None)
    releases.commit(paths, "main", 1)
    report = Report(1, 2, "run", SINCE, SINCE, swaps.RETURNED, "no", behind="gpu-1 is away")
    swaps.end(paths, "main", report)
    known = releases.load(paths, "main", 1)
    monkeypatch.setattr(releases, "load", lambda *_asked: replace(known, gang=gang(0, digest=OLD)))

    def marked(current: int) -> list[str]:
        values: dict[str, Any] = {"active": 11, "current": current, "desired": 11, "releases": f"11:{OLD[:12]}"}
        follower = MemberState("gpu-1", 1, "10.0.0.2", gangs.SERVING, **values)
        leader = MemberState("gpu-0", 0, "10.0.0.1", gangs.SERVING)
        state = GangState("main", 0, 3, gangs.SERVING, SINCE, members=(leader, follower))
        files.write(paths.gang("main"), files.to_json(state.to_json()))
        return left_over.still(paths, "main")

    (words,) = marked(10)
    assert "have marked the release as proven (gpu-1 has not marked release 11)" in words
    assert marked(11) == []
