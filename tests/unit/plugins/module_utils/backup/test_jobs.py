# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import fcntl
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.backup import (
    append_only,
    jobs,
    program,
    restic,
    state,
)
from ansible_collections.baremetal.inference.plugins.module_utils.backup.places import Places
from ansible_collections.baremetal.inference.plugins.module_utils.backup.settings import Settings
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome

SETTINGS = Settings(
    "/srv/x", "n1", ("/etc/inference",), keep={"daily": 7, "weekly": 2}, intervals={"backup": 86400, "check": 0}
)


class Fake:
    """A restic that has one answer for each of its verbs."""

    def __init__(self) -> None:
        self.answers = {
            "unlock": Outcome(0),
            "backup": Outcome(0, stdout='{"message_type":"summary","snapshot_id":"0123456789abcdef","data_added":5}'),
            "forget": Outcome(0),
            "check": Outcome(1, stderr="Fatal: repository contains errors"),
            "snapshots": Outcome(0, stdout="[]"),
        }
        self.calls: list[list[str]] = []

    def __call__(self, command: Sequence[str], timeout: float, environment: Mapping[str, str]) -> Outcome:
        self.calls.append(list(command))
        return next(answer for verb, answer in self.answers.items() if verb in command)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    places = Places(tmp_path)
    for directory in (places.etc, places.metrics.parent, tmp_path / "etc/inference"):
        directory.mkdir(parents=True)
    places.settings.write_text(json.dumps(SETTINGS.to_json()))
    places.password.write_text("x")
    (tmp_path / "etc/inference/a.json").write_text("a")
    return places


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    fake = Fake()
    opened = jobs.open_node

    def with_fake(places: Places) -> tuple[Settings, restic.Restic]:
        settings, target = opened(places)
        return settings, restic.Restic(target.access, run=fake)

    monkeypatch.setattr(jobs, "open_node", with_fake)
    return fake


def test_a_backup_is_recorded_and_in_the_metrics(
    places: Places, fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.main(["status"], places) == 1
    assert program.main(["backup"], places) == 0
    known = state.read(places)["jobs"]["backup"]
    assert (known["ok"], known["snapshot"], known["files"], known["bytes"]) == (True, "01234567", 1, 1)
    assert not places.staging.exists()
    metrics = places.metrics.read_text()
    assert 'inference_backup_last_run_success{job="backup"} 1\n' in metrics
    assert "inference_backup_size_bytes 1\n" in metrics
    intervals = [
        line.partition("{")[2] for line in metrics.splitlines() if line.startswith("inference_backup_interval")
    ]
    assert intervals == ['job="backup"} 86400', 'job="check"} 0']
    assert program.main(["status"], places) == 0
    assert "snapshot 01234567, 1 file," in capsys.readouterr().out


def test_a_failure_is_recorded_and_the_last_success_stays(places: Places, fake: Fake) -> None:
    assert jobs.run(places, "backup", clock=lambda: 1000.0)["ok"]
    fake.answers["backup"] = Outcome(None, failure="timeout", message="restic did not end within 5 s")
    assert program.main(["backup"], places) == 1
    known = state.read(places)["jobs"]["backup"]
    assert known["ok"] is False and "cannot be reached" in known["error"] and known["succeeded"] == 1000.0
    metrics = places.metrics.read_text()
    assert 'inference_backup_last_run_success{job="backup"} 0\n' in metrics
    assert 'inference_backup_last_success_timestamp_seconds{job="backup"} 1000\n' in metrics
    assert not places.staging.exists()
    assert program.main(["check"], places) == 1
    assert "repository contains errors" in program.as_text(state.read(places), 2000.0)


def test_the_time_of_a_backup_is_read_with_the_lock_held(places: Places, fake: Fake) -> None:
    def clock() -> float:
        """If a backup read the time before its wait for the lock, a snapshot that another backup made during the
        wait would seem to be from the future."""
        with places.lock.open() as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return 1000.0

    assert jobs.run(places, "backup", clock)["ok"]


def test_with_a_clock_in_the_past_a_snapshot_is_later_than_all_others(
    places: Places, fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs.run(places, "backup")
    assert "--time" not in next(call for call in fake.calls if "backup" in call)
    later = "2100-01-01T00:00:00.987654321Z"
    fake.answers["snapshots"] = Outcome(0, stdout=json.dumps([{"time": "2026-01-01T00:00:00Z"}, {"time": later}]))
    fake.calls.clear()
    assert program.main(["backup"], places) == 0
    words = next(call for call in fake.calls if "backup" in call)
    said = datetime.strptime(words[words.index("--time") + 1], "%Y-%m-%d %H:%M:%S")
    assert 0 < said.timestamp() - datetime.fromisoformat(later).timestamp() <= 1
    assert "THE CLOCK IS WRONG" in capsys.readouterr().out
    fake.answers["snapshots"] = Outcome(0, stdout="[]")
    jobs.run(places, "backup")
    assert program.main(["status"], places) == 0 and "CLOCK" not in capsys.readouterr().out


def test_retention_removes_only_snapshots_of_the_host(places: Places, fake: Fake) -> None:
    assert program.main(["prune"], places) == 0
    command = next(call for call in fake.calls if "--prune" in call)
    words = ["--host", "n1", "--tag", "inference-node", "--group-by", "host", "--keep-daily", "7", "--keep-weekly", "2"]
    assert command[command.index("forget") + 1 :] == [*words, "--prune"]


def test_a_server_that_refuses_each_deletion_fails_the_prune(places: Places, fake: Fake) -> None:
    """The exit code of restic is 0 all the same."""
    left = {"short_id": "aaaaaaaa", "time": "2020-01-01T00:00:00Z"}
    fake.answers |= {
        "forget": Outcome(0, stdout=json.dumps([{"remove": [left]}])),
        "snapshots": Outcome(0, stdout=json.dumps([left])),
    }
    assert program.main(["prune"], places) == 1
    error = state.read(places)["jobs"]["prune"]["error"]
    assert "snapshots aaaaaaaa of n1 are still there" in error and "backup_append_only" in error


def test_an_append_only_host_prunes_nothing_and_its_check_asks_the_server(
    places: Places, fake: Fake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = replace(SETTINGS, repository="rest:http://store/n1", append_only=True)
    places.settings.write_text(json.dumps(settings.to_json()))
    assert program.main(["prune"], places) == 1
    assert "run baremetal.inference.backup_prune on the controller" in capsys.readouterr().err
    assert not any("forget" in call for call in fake.calls)
    assert "prune" not in state.read(places)["jobs"], "the alert BackupFailed would begin"
    asked: list[str] = []

    def prove(access: restic.Access) -> None:
        asked.append(access.address)
        if len(asked) == 2:
            raise append_only.NotProven("lets this node delete")

    monkeypatch.setattr(append_only, "prove", prove)
    fake.answers["check"] = Outcome(0)
    assert program.main(["check"], places) == 0 and asked == ["rest:http://store/n1"]
    assert program.main(["check"], places) == 1
    assert "lets this node delete" in state.read(places)["jobs"]["check"]["error"]


def test_the_status_fails_for_an_interrupted_job_and_not_for_a_running_one(
    places: Places, fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert jobs.run(places, "backup", clock=lambda: 500.0)["ok"]
    state.begin(places, SETTINGS, "backup", 1000.0)
    assert program.main(["status"], places) == 1
    assert "backup      began 1970-01-01 00:16:40 UTC: was interrupted" in capsys.readouterr().out
    with jobs.alone(places):
        assert program.main(["status"], places) == 0
        assert "00:16:40 UTC: still runs" in capsys.readouterr().out
        state.begin(places, SETTINGS, "check", 2000.0)
        assert program.main(["status"], places) == 1
        lines = capsys.readouterr().out.splitlines()
        assert lines[1].endswith("was interrupted") and lines[3].endswith("still runs")


def test_a_job_of_another_repository_begins_a_new_state(places: Places, fake: Fake) -> None:
    assert jobs.run(places, "backup")["ok"]
    state.begin(places, Settings("/srv/other", "n1", ("/etc/inference",)), "check", 1000.0)
    assert list(state.read(places)["jobs"]) == ["check"]
