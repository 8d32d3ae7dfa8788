# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The evidence of an engine before a step of recovery, without secrets and prompts."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import timedelta

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import (
    deaths,
    evidence,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.deaths import Request, Seen

from ...conftest import FakeProc
from ..conftest import KEY
from .conftest import NOW


def test_evidence_has_no_secrets_and_prompts_and_is_rotated(paths: Paths) -> None:
    logs = {
        "-t": f"INFO got key {KEY}\nINFO Received request cmpl-1: prompt: 'my medical history', params: x\nlast words",
        "-u": "unit words",
    }

    def run(command: Sequence[str], _timeout: float) -> Outcome:
        if command[0] == "journalctl":
            return Outcome(0, logs[command[-2]])
        if command[0] == "nvidia-smi":
            return Outcome(None, failure="not_installed", message="nvidia-smi is not installed")
        return Outcome(0, f"Environment={KEY}")

    for minute in range(4):
        where = evidence.capture(paths, "main", NOW + timedelta(minutes=minute), None, 2, run, paths.root)
    kept = sorted(paths.evidence("main").iterdir())
    assert len(kept) == 2 and kept[-1] == where
    assert sorted(path.name for path in where.iterdir()) == ["engine.log", "probe.json", "unit.log", "unit.txt"]
    everything = "".join(path.read_text() for path in where.iterdir())
    assert KEY not in everything and "medical" not in everything
    assert "last words" in everything
    assert {path.stat().st_mode & 0o777 for path in where.iterdir()} == {0o600}


def test_evidence_has_the_requests_in_flight_at_deaths(paths: Paths) -> None:
    request = Request("req-7", "bob", "/v1/completions", 502)
    deaths.record(paths, "main", NOW, [Seen("main", "node1", 1, ("bob",), (request,))], "node1")
    where = evidence.capture(paths, "main", NOW, None, 2, lambda *_given: Outcome(0, ""), paths.root)
    (death,) = json.loads((where / "deaths.json").read_text())["deaths"]
    assert death["keys"] == ["bob"]
    assert death["requests"] == [{"id": "req-7", "key": "bob", "path": "/v1/completions", "status": 502}]


def test_the_processes_of_a_container_are_listed() -> None:
    text = evidence.processes(os.getpid())
    assert any(line.split()[0] == str(os.getpid()) for line in text.splitlines()[1:])
    assert evidence.processes(None) == ""


def test_processes_have_their_states_and_those_of_other_containers_are_left_out(proc: FakeProc) -> None:
    for pid, namespace, state in ((100, 2, "T (stopped)"), (101, 2, "D (disk sleep)"), (999, 3, "R (running)")):
        proc.process(pid, namespace)
        (proc.root / f"{pid}/status").write_text(f"Name:\tpython3\nState:\t{state}\n")
        (proc.root / f"{pid}/wchan").write_text("")
    text = evidence.processes(100, proc.root)
    assert text.splitlines() == ["PID STATE WAITS-IN COMMAND", "100 T - python3", "101 D - python3"]
