# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a supervisor records and logs of its gang."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import gangs
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.gangs import MemberState
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang import record
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.record import Record

from .world import gang

MEMBERS = (MemberState("gpu-0", 0, "10.0.0.1", gangs.WAITING), MemberState("gpu-1", 1, "10.0.0.2", gangs.MISSING))


def test_changes_are_recorded_and_logged_once(tmp_path: Path) -> None:
    paths, logged = Paths(tmp_path), list[str]()
    kept = Record(paths, gang(0), logged.append)
    assert kept.epoch == 0
    for _time in range(3):
        kept.write(1, gangs.WAITING, "waits for gpu-1", False, MEMBERS)
    kept.flush()
    known = gangs.read(paths, "big")
    assert known is not None
    assert (known.epoch, known.state, known.detail, known.members) == (1, gangs.WAITING, "waits for gpu-1", MEMBERS)
    assert logged == ["gang of 2 members: waiting: waits for gpu-1"]
    kept.write(1, gangs.WAITING, "waits for gpu-1, still", False, MEMBERS)
    kept.flush()
    again = gangs.read(paths, "big")
    assert again is not None and again.since == known.since
    assert Record(paths, gang(0), logged.append).epoch == 1


def test_a_remark_is_not_repeated_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logged = list[str]()
    kept = Record(Paths(tmp_path), gang(0), logged.append)
    for _time in range(3):
        kept.remark("10.0.0.2", "has another key")
        kept.remark("10.9.9.9", "closed the connection")
        kept.remark("", "cannot listen")
    assert logged == [
        "a process at 10.0.0.2 (gpu-1) has another key",
        "10.9.9.9 closed the connection",
        "cannot listen",
    ]
    one, two = gang(0).members
    six = replace(gang(0), members=(one, replace(two, address="fd00:0::2")))
    Record(Paths(tmp_path), six, logged.append).remark("fd00::2", "has another key")
    assert logged[-1] == "a process at fd00::2 (gpu-1) has another key"
    monkeypatch.setattr(record, "REPEAT", 0.0)
    kept.remark("", "cannot listen")
    assert logged[-1] == "cannot listen" and len(logged) == 5
