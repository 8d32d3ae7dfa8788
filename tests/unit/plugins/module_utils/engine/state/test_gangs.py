# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state file of a gang."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import gangs
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.gangs import GangState, MemberState

STATE = GangState(
    "big",
    0,
    4,
    gangs.WAITING,
    "2026-11-26T04:00:00Z",
    "waits for gpu-2 (rank 2)",
    members=(
        MemberState("gpu-0", 0, "10.0.0.1", gangs.WAITING),
        MemberState("gpu-1", 1, "10.0.0.2", gangs.WAITING),
        MemberState("gpu-2", 2, "10.0.0.3", gangs.MISSING, "was silent for 10 s"),
    ),
)


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    assert gangs.read(paths, "big") is None
    files.write_json(paths.gang("big"), STATE.to_json())
    assert gangs.read(paths, "big") == STATE
    assert STATE.leads and [member.node for member in STATE.absent] == ["gpu-2"]


@pytest.mark.parametrize("active", ["activating", "inactive", "failed"])
def test_a_record_of_serving_is_outdated_if_the_unit_does_not_serve(active: str) -> None:
    """A loss of power leaves such a record. A record of another state is not outdated."""
    serves = replace(STATE, state=gangs.SERVING)
    assert gangs.of_last_supervisor(serves, active)
    assert not gangs.of_last_supervisor(STATE, active)
    assert not any(gangs.of_last_supervisor(serves, other) for other in ("active", "deactivating", "reloading"))


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 9},
        {"state": "lost"},
        {"epoch": "4"},
        {"members": [{"node": "gpu-0"}]},
        {"members": 3},
        {"members": [{"node": "gpu-0", "rank": 0, "address": "10.0.0.1", "state": "waiting", "active": "3"}]},
        {"members": [{"node": "gpu-0", "rank": 0, "address": "10.0.0.1", "state": "waiting", "releases": None}]},
        {"members": [{"node": "gpu-0", "rank": "0", "address": "10.0.0.1", "state": "waiting"}]},
        {"members": [{"node": "gpu-0", "rank": 0, "address": 10, "state": "waiting"}]},
        {"members": [{"node": "gpu-0", "rank": 0, "address": "10.0.0.1", "state": "waiting", "detail": None}]},
        {"members": [{"node": "gpu-0", "rank": 0, "address": "10.0.0.1", "state": ["waiting"]}]},
        {"detail": None},
        {"planned": "no"},
        {"epoch": True},
    ],
)
def test_a_damaged_state_counts_as_none(tmp_path: Path, change: dict[str, object]) -> None:
    paths = Paths(tmp_path)
    files.write_json(paths.gang("big"), {**STATE.to_json(), **change})
    assert gangs.read(paths, "big") is None


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{", pytest.param("[" * 100_000, id="deep"), json.dumps({"schema": 1})]
)
def test_a_file_without_a_state_counts_as_none(tmp_path: Path, text: str) -> None:
    paths = Paths(tmp_path)
    files.write(paths.gang("big"), text)
    assert gangs.read(paths, "big") is None
