# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The deaths of an engine: which requests were in flight, and which deaths are the fault of its node."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import format_time
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import deaths
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.deaths import (
    Death,
    Deaths,
    Request,
    Seen,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.state import State, Step

from .conftest import NOW

DEADLY = Request("req-7", "bob", "/v1/chat/completions", 502)


def seen(node: str, age: float, *keys: str, name: str = "main", requests: tuple[Request, ...] = ()) -> Seen:
    return Seen(name, node, age, keys, requests)


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def test_deaths_count_for_an_hour(paths: Paths) -> None:
    for minutes in (70, 50, 10):
        deaths.record(paths, "main", ago(minutes))
    assert deaths.read(paths, "main").recent(NOW).faults == 2
    assert paths.deaths("main").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["7", "{", '{"deaths": [7]}', '{"deaths": [{"time": "soon"}]}', '{"deaths": 7}'])
def test_a_damaged_record_counts_as_no_deaths(paths: Paths, text: str) -> None:
    deaths.record(paths, "main", NOW)
    paths.deaths("main").write_text(text)
    assert deaths.read(paths, "main") == Deaths()


def test_deaths_recorded_by_an_earlier_version_count(paths: Paths) -> None:
    deaths.record(paths, "main", NOW)
    paths.deaths("main").write_text(json.dumps({"schema": 1, "times": [format_time(NOW)]}))
    deaths.record(paths, "main", NOW)
    assert deaths.read(paths, "main").own == (Death(format_time(NOW)), Death(format_time(NOW)))


def test_the_last_fault_was_a_death_if_no_step_came_later() -> None:
    known = State("main", steps=(Step("2026-05-04T02:00:00Z", "restart", "hung", "r"),))
    died = [Deaths((Death(f"2026-05-04T{time}Z"),)) for time in ("01:59:59", "02:00:00")]
    assert [deaths.died_last(each, known) for each in (Deaths(), *died)] == [False, False, True]
    assert deaths.died_last(died[0], State("main"))


def test_a_death_has_the_requests_of_all_gateways(paths: Paths) -> None:
    """The gateways also know earlier deaths and deaths of other engines, whose requests do not count."""
    other = Request("req-8", "alice", "/v1/embeddings", None)
    reported = [
        seen("node1", 1800, "carol"),
        seen("node1", 2.5, "bob", requests=(DEADLY,)),
        seen("node1", 2.6, "bob", "alice", requests=(DEADLY, other)),
        seen("node1", 2.5, "dave", name="side"),
    ]
    death = deaths.record(paths, "main", NOW, reported, "node1")
    assert death == Death(format_time(NOW), ("bob", "alice"), (DEADLY, other))
    assert deaths.read(paths, "main") == Deaths((death,))
    assert "req-7" in paths.deaths("main").read_text()
    assert str(DEADLY) == "req-7 (key bob, /v1/chat/completions)"


def test_reports_of_the_same_death_elsewhere_are_merged(paths: Paths) -> None:
    deaths.record(paths, "main", ago(1), [seen("node2", 100, "bob"), seen("node2", 104, "alice")], "node1")
    # The gateways report the death again a minute later, and their times differ by a second.
    deaths.record(paths, "main", NOW, [seen("node2", 161, "bob"), seen("node3", 20, "bob", name="side")], "node1")
    known = deaths.read(paths, "main")
    assert [(each.name, each.node, sorted(each.keys)) for each in known.elsewhere] == [
        ("main", "node2", ["alice", "bob"]),
        ("side", "node3", ["bob"]),
    ]


def test_deaths_by_a_key_that_kills_engines_elsewhere_are_no_faults(paths: Paths) -> None:
    """The first death counts as a fault, since no other node has had a death with this key."""
    own = [seen("node1", 2, "bob")]
    deaths.record(paths, "main", ago(20), own, "node1")
    assert deaths.read(paths, "main").faults == 1
    deaths.record(paths, "main", ago(10), [*own, seen("node2", 300, "bob")], "node1")
    deaths.record(paths, "main", NOW, [*own, seen("node2", 900, "bob"), seen("node2", 200, "bob", "x")], "node1")
    known = deaths.read(paths, "main")
    assert (known.faults, known.by_key) == (1, {"bob": 3})
    # A death elsewhere more than an hour ago excuses no death here.
    assert known.recent(NOW + timedelta(minutes=55)).faults == 0
    assert known.recent(NOW + timedelta(minutes=58)).faults == 1


def test_a_broken_node_is_not_excused_by_a_client_with_much_traffic(paths: Paths) -> None:
    """The client's requests are in flight at every death, but this node has more deaths than the others."""
    for minutes in (30, 20, 10, 0):
        reported = [seen("node1", 2, "portal"), seen("node2", 2400 - 60 * minutes, "portal")]
        deaths.record(paths, "main", ago(minutes), reported, "node1")
    assert deaths.read(paths, "main").faults == 3


def test_deaths_elsewhere_with_another_key_excuse_no_death(paths: Paths) -> None:
    deaths.record(paths, "main", NOW, [seen("node1", 2, "bob"), seen("node2", 60, "alice"), seen("node3", 9)], "node1")
    assert deaths.read(paths, "main").faults == 1


def test_the_oldest_deaths_are_dropped(paths: Paths) -> None:
    for minutes in range(deaths.KEPT + 1, 0, -1):
        deaths.record(paths, "main", ago(minutes), [seen(f"n{minutes}", 1, "bob")], "node1")
    known = deaths.read(paths, "main")
    assert len(known.own) == len(known.elsewhere) == deaths.KEPT
    assert known.own[-1].time == format_time(ago(1)) and known.elsewhere[-1].node == "n1"
