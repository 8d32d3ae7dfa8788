# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drains: owner, reason and end, and the files that have them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import drains
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import Drain

NOW = datetime(2026, 12, 24, 18, 0, tzinfo=timezone(timedelta(hours=1)))
ALICE = Drain("alice@node1", "new disk", "2026-12-24T17:00:00Z", "2026-12-24T17:30:00Z")


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path)


def test_the_file_of_a_drain_has_owner_reason_and_end(paths: Paths) -> None:
    (outcome,) = drains.drain(paths, ["main"], ALICE)
    assert (outcome.drain, outcome.changed) == (ALICE, True)
    assert json.loads(paths.drain("main").read_text()) == {
        "schema": 1,
        "instance": "main",
        "owner": "alice@node1",
        "reason": "new disk",
        "since": "2026-12-24T17:00:00Z",
        "until": "2026-12-24T17:30:00Z",
    }
    assert paths.drain("main").stat().st_mode & 0o777 == 0o644
    assert drains.read(paths, "main", NOW) == ALICE
    assert drains.names(paths) == ["main"]


def test_a_drain_ends_by_itself(paths: Paths) -> None:
    drains.drain(paths, ["main"], ALICE)
    assert drains.read(paths, "main", NOW + timedelta(minutes=30)) is None
    assert drains.read(paths, "main", NOW + timedelta(minutes=29, seconds=59)) is not None


def test_the_same_drain_again_changes_nothing_and_keeps_since(paths: Paths) -> None:
    drains.drain(paths, ["main"], ALICE)
    later = Drain(ALICE.owner, ALICE.reason, "2026-12-24T17:10:00Z", ALICE.until)
    (outcome,) = drains.drain(paths, ["main"], later)
    assert (outcome.drain, outcome.changed) == (ALICE, False)
    longer = Drain(ALICE.owner, ALICE.reason, "2026-12-24T17:10:00Z", None)
    (outcome,) = drains.drain(paths, ["main"], longer)
    assert outcome.changed and outcome.drain == Drain(ALICE.owner, ALICE.reason, ALICE.since, None)


def test_a_drain_of_another_owner_stays_unless_forced(paths: Paths) -> None:
    drains.drain(paths, ["side"], ALICE)
    bob = Drain("bob@node1", "update", ALICE.since)
    with pytest.raises(drains.Held, match=r"^side is already drained by alice@node1 until .*: new disk\. .*--force$"):
        drains.drain(paths, ["main", "side"], bob)
    assert drains.names(paths) == ["side"], "all or none"
    assert [outcome.changed for outcome in drains.drain(paths, ["main", "side"], bob, force=True)] == [True, True]
    assert drains.read(paths, "side", NOW) == bob
    # An expired drain does not block another owner.
    drains.drain(paths, ["side"], ALICE, force=True)
    afterwards = Drain("bob@node1", "update", "2026-12-24T18:00:00Z")
    assert drains.drain(paths, ["side"], afterwards)[0].drain == afterwards


def test_only_the_owner_or_a_call_without_an_owner_removes_a_drain(paths: Paths) -> None:
    drains.drain(paths, ["main"], ALICE)
    assert drains.undrain(paths, "main", "bob@node1", NOW) == drains.Outcome("main", ALICE, False)
    assert drains.undrain(paths, "main", ALICE.owner, NOW) == drains.Outcome("main", None, True)
    assert drains.undrain(paths, "main", None, NOW) == drains.Outcome("main", None, False)
    drains.drain(paths, ["main"], ALICE)
    assert drains.undrain(paths, "main", None, NOW).changed
    # The removal of an expired drain's file does not count as a change.
    drains.drain(paths, ["main"], ALICE)
    assert not drains.undrain(paths, "main", None, NOW + timedelta(hours=1)).changed
    assert drains.names(paths) == []


DAMAGED = ["", "null", "{", "[]", '{"schema": 2}', '{"schema": 1, "owner": "a"}', "\0"]
WHOLE = {"schema": 1, "owner": "a", "reason": "r", "since": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    "text", [*DAMAGED, json.dumps({**WHOLE, "until": "tomorrow"}), json.dumps({**WHOLE, "until": 7})]
)
def test_a_damaged_drain_has_no_end(paths: Paths, text: str) -> None:
    paths.drains.mkdir(parents=True)
    paths.drain("main").write_text(text)
    found = drains.read(paths, "main", NOW)
    assert found is not None and found.until is None
    assert "inferctl undrain main removes it" in found.reason
    assert drains.undrain(paths, "main", None, NOW).changed
    assert drains.read(paths, "main", NOW) is None


@given(st.binary())
def test_a_file_with_any_bytes_is_a_drain(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    paths = Paths(tmp_path_factory.getbasetemp() / "bytes")
    paths.drains.mkdir(parents=True, exist_ok=True)
    paths.drain("main").write_bytes(raw)
    assert drains.read(paths, "main", NOW) is not None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("2h", 7200), ("1d", 86400), ("1h30m", 5400), ("007m", 420)],
)
def test_a_duration_is_parsed(text: str, seconds: int) -> None:
    assert drains.parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "30", "m", "0m", "-5m", "1.5h", "5 m", "5x", "5m3", "²m", "9" * 30 + "d"])
def test_a_text_that_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|longer"):
        drains.parse_duration(text)


def test_times_need_a_zone() -> None:
    assert drains.format_time(drains.parse_time("2026-12-24T18:00:00+01:00")) == "2026-12-24T17:00:00Z"
    with pytest.raises(ValueError, match="no time zone"):
        drains.parse_time("2026-12-24T18:00:00")
    with pytest.raises(ValueError, match="ISO 8601"):
        drains.parse_time("tomorrow")
