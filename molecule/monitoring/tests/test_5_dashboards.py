# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real Prometheus answers every query of every panel of the dashboards, as Grafana sends it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from load import Load
from node import Node, wait_for
from watcher import Watcher

DASHBOARDS = "/usr/local/share/inference/dashboards"

WITHOUT_DATA = {
    r"inference_gpu_|gpu_power_watts|_per_gpu:|_per_watt:": "no node has a GPU",
    r"inference_rdma_": "no node has an RDMA port",
    r"inference_lock_info": "no playbook works on a node",
    r'task!~"': "each engine makes text",
    r"draft_tokens_accepted:": "no engine has speculative decoding",
}
"""Metrics without series here, with the reason. Counts of GPUs have series: they are 0."""

FILTER = re.compile(r" (?:==|>) \d+$")
"""A comparison at the end of a query: it may leave no series, but the query without it must have series."""


@pytest.fixture(scope="module")
def busy(watcher: Watcher, load: Callable[[int], Load], saved: Node) -> Iterator[None]:
    """A fleet with data: served requests, a backup of a node, and a drained instance."""
    saved.run("inferctl drain main --reason test")
    running = load(2).start()
    try:
        wait_for("the drain is in Prometheus", lambda: ("InstanceDrained", saved.name) in watcher.fired(), 90)
        yield
    finally:
        running.stop()
        saved.run("inferctl undrain main")
    wait_for("the drain has ended", lambda: ("InstanceDrained", saved.name) not in watcher.fired(), 60)


def dashboards(node: Node) -> dict[str, dict[str, Any]]:
    """The dashboards on the monitoring host, by name."""
    names = node.run(f"ls {DASHBOARDS}").split()
    return {name: json.loads(node.run(f"cat {DASHBOARDS}/{name}")) for name in names}


def values(watcher: Watcher, document: dict[str, Any]) -> dict[str, str]:
    """All choices of each variable, as a part of an expression."""
    found: dict[str, str] = {}
    for variable in document["templating"]["list"]:
        if variable["type"] != "query":
            continue
        asked = re.fullmatch(r"label_values\((.+), (\w+)\)", filled(variable["query"]["query"], found))
        assert asked, variable
        choices = sorted({series["metric"][asked[2]] for series in watcher.query(asked[1])})
        assert choices, f"{document['title']}: nothing to choose for {variable['name']}"
        found[variable["name"]] = f"({'|'.join(choices)})"
    return found


def filled(query: str, chosen: dict[str, str]) -> str:
    """A query with the choices in place of its variables."""
    return re.sub(r"\$(\w+)", lambda match: chosen[match[1]], query)


def queries(watcher: Watcher, document: dict[str, Any]) -> list[str]:
    """All queries of a dashboard."""
    # A row of panels has no queries.
    asked = [target["expr"] for panel in document["panels"] for target in panel.get("targets", [])]
    asked += [annotation["expr"] for annotation in document["annotations"]["list"]]
    chosen = values(watcher, document)
    return list(dict.fromkeys(filled(query, chosen) for query in asked))


def answered(watcher: Watcher, query: str) -> bool:
    """Whether the query, or the query without FILTER, has a series. Fails if Prometheus rejects the query."""
    return bool(watcher.query(query) or (FILTER.search(query) and watcher.query(FILTER.sub("", query))))


def exceptions(query: str) -> list[str]:
    """The exceptions that match a query."""
    return [pattern for pattern in WITHOUT_DATA if re.search(pattern, query)]


def test_every_query_has_an_answer(watcher: Watcher, deb12: Node, busy: None) -> None:
    asked = {query for document in dashboards(deb12).values() for query in queries(watcher, document)}
    assert len(asked) > 70
    for query in filter(exceptions, asked):
        # Prometheus only needs to accept this query.
        answered(watcher, query)
    left = sorted(query for query in asked if not exceptions(query))
    # Rates need two samples, and some textfiles appear only every few minutes.
    deadline = time.monotonic() + 300
    while (left := [query for query in left if not answered(watcher, query)]) and time.monotonic() < deadline:
        time.sleep(5)
    assert left == []


def test_every_exception_matches_a_query(watcher: Watcher, deb12: Node) -> None:
    asked = {query for document in dashboards(deb12).values() for query in queries(watcher, document)}
    assert {pattern for query in asked for pattern in exceptions(query)} == set(WITHOUT_DATA)
