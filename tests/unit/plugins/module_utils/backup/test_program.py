# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command inference-backup: its jobs, its output, its exit codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.backup import jobs, program
from ansible_collections.baremetal.inference.plugins.module_utils.backup.places import Places

NOW = 1_800_000_000.0
DONE = {"snapshot": "abababab", "files": 3, "bytes": 2048, "added": 1024}


@pytest.mark.parametrize(
    ("job", "known", "code", "words"),
    [
        ("backup", {"ok": True, **DONE}, 0, "backup: snapshot abababab, 3 files, 2 KiB, 1 KiB of them new"),
        (
            "backup",
            {"ok": True, **DONE, "files": 1},
            0,
            "backup: snapshot abababab, 1 file, 2 KiB, 1 KiB of them new",
        ),
        ("prune", {"ok": True, "snapshots": 7}, 0, "prune: 7 snapshots kept"),
        ("prune", {"ok": True, "snapshots": 1}, 0, "prune: 1 snapshot kept"),
        ("check", {"ok": True, "subset": "5%"}, 0, "check: intact, 5% of the data read"),
        ("check", {"ok": False, "error": "damaged"}, 1, "inference-backup: check: damaged"),
    ],
)
def test_a_job_prints_its_result(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    job: str,
    known: dict[str, Any],
    code: int,
    words: str,
) -> None:
    monkeypatch.setattr(jobs, "run", lambda _places, asked: known if asked == job else {})
    assert program.main([job], Places(tmp_path)) == code
    captured = capsys.readouterr()
    assert (captured.err if code else captured.out) == f"{words}\n"


def test_a_node_without_settings_is_an_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert program.main(["backup"], Places(tmp_path)) == 1
    assert "run baremetal.inference.backup for this host" in capsys.readouterr().err


def test_the_status_decides_the_exit_code(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    places = Places(tmp_path)
    assert program.main(["status"], places) == 1
    assert capsys.readouterr().out.splitlines() == [
        "repository  not used yet",
        "backup      never ran",
        "prune       never ran",
        "check       never ran",
    ]
    places.work.mkdir(parents=True)
    places.state.write_text('{"schema": 1, "repository": "/srv/x", "jobs": {"backup": {"ok": true}}}')
    assert program.main(["status", "--json"], places) == 0
    assert '"repository": "/srv/x"' in capsys.readouterr().out


def test_the_text_of_the_state_has_the_result_of_each_job() -> None:
    ended = {"began": NOW - 7300, "ended": NOW - 7200}
    jobs_of = {
        "backup": {**ended, "ok": True, **DONE, "behind": 7200},
        "prune": {**ended, "ok": False, "error": "locked", "succeeded": NOW - 90000},
        "check": {"began": NOW - 60, "ended": NOW - 90},
    }
    lines = program.as_text({"repository": "/srv/x", "jobs": jobs_of}, NOW).splitlines()
    assert lines[1].startswith("backup      ok 2027-01-15 06:00:00 UTC, 2.0 h ago: snapshot abababab")
    assert "THE CLOCK IS WRONG" in lines[1] and "whose date is 2.0 h ahead of the clock" in lines[1]
    assert lines[2].endswith("; last ok 2027-01-14 07:00:00 UTC: locked") and "FAILED" in lines[2]
    assert lines[3].endswith(": was interrupted")
    assert program.as_text({"repository": "", "jobs": jobs_of}, NOW, "check").endswith(": still runs")
    never = program.as_text({"repository": "", "jobs": {"prune": {**ended, "ok": False, "error": "x"}}}, NOW)
    assert "; never ok: x" in never
    # The disk was full, so the start of the job was not recorded.
    late = program.as_text({"repository": "", "jobs": {"prune": {"ended": NOW, "ok": False, "error": "x"}}}, NOW)
    assert "FAILED" in late


def test_only_root_may_use_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(program.os, "geteuid", lambda: 1000)
    assert program.main(["status"]) == 2
    assert "sudo inference-backup status" in capsys.readouterr().err
