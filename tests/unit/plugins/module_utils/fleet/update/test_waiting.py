# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operator reads about releases, instances and bridges that a run of the role leaves as they are."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update.waiting import lines

RELEASE: dict[str, Any] = {
    "name": "main",
    "state": "active",
    "active": 1,
    "wanted": 2,
    "pending": False,
    "staged": True,
    "pin": "",
    "differences": [],
}
STAGE: dict[str, Any] = {"releases": [RELEASE], "orphans": [], "bridges": []}


def test_a_node_on_which_nothing_waits_has_no_text() -> None:
    assert lines(STAGE, "node1") == []


def test_a_pending_release_is_named_with_its_differences() -> None:
    pending = {**RELEASE, "pending": True, "differences": ["-  --dtype float32", "+  --dtype float16"]}
    said = lines({**STAGE, "releases": [pending]}, "node1")
    assert said[0] == (
        "main on node1 serves release 1; release 2 is staged and pending. Nothing was restarted. Run"
        " baremetal.inference.update_model to swap to it."
    )
    assert said[1:] == pending["differences"]
    # An update swaps the release itself, so its text has no advice to run an update.
    said = lines({**STAGE, "releases": [pending]}, "node1", updates=True)
    assert said == ["main on node1 serves release 1; release 2 is staged and pending.", *pending["differences"]]
    # In check mode, the release is not on the node.
    said = lines({**STAGE, "releases": [{**pending, "staged": False}]}, "node1", updates=True)
    assert said[0] == (
        "main on node1 serves release 1. This is check mode: a real run would stage release 2, which then is pending."
    )


def test_a_pin_an_orphan_and_a_bridge_are_named_with_what_to_do() -> None:
    pinned = {**RELEASE, "pin": "release 1 instead of 2 (mira)"}
    said = lines({"releases": [pinned], "orphans": ["old", "gone"], "bridges": ["gone_bridge"]}, "node1")
    assert said[0] == "main on node1 stays with release 1 instead of 2 (mira)"
    assert said[1].startswith("node1 still has old, gone, which the inventory does not declare. Nothing was removed.")
    assert said[2].startswith("node1 still has gone_bridge, which served for an instance during an update")
    assert "ansible node1 -b -m baremetal.inference.engine_service" in said[2]


def test_a_gang_that_starts_without_all_its_nodes_is_named_before_the_run_waits() -> None:
    gang = {"name": "main", "nodes": ["node1", "node2", "node3"]}
    stage = {**STAGE, "releases": [{**RELEASE, "state": "inactive"}]}
    assert lines(stage, "node1", [gang], ["node1", "node3"]) == [
        "main on node1 starts only with all its nodes, and this run leaves out node2. If vllm@main does not run there,"
        " the engine waits: run baremetal.inference.site -l node1,node2,node3"
    ]
    assert lines(stage, "node1", [gang], gang["nodes"]) == []
    assert lines(stage, "node1", [{"name": "main"}], ["node1"]) == []
    assert lines(STAGE, "node1", [gang], ["node1"]) == [], "it serves"
