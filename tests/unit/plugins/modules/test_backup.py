# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module backup: what it installs, refuses, makes and removes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.backup import append_only, jobs, restic, state
from ansible_collections.baremetal.inference.plugins.module_utils.backup.places import Places
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.debian import tested
from ansible_collections.baremetal.inference.plugins.modules import backup

from ..backup_harness import NODE, TimerSystemd, answer_restic

Call = Callable[..., dict[str, Any]]

ABSENT = Outcome(10, stderr="Fatal: repository does not exist")
THERE = Outcome(0, stdout='{"id": "0123"}')

TIMERS = ("inference-backup.timer", "inference-backup-prune.timer")


def test_backups_are_installed_once_and_removed(call_backup: Call, timers: TimerSystemd, places: Places) -> None:
    predicted = call_backup(backup, check=True, **NODE)
    assert predicted["changed"] is True and timers.calls == [] and not places.etc.exists()
    done = call_backup(backup, **NODE)
    assert done["files"] == predicted["files"]
    assert timers.calls == ["daemon-reload", f"enable --now {' '.join(TIMERS)}"]
    assert "very-secret" not in json.dumps(done)
    assert places.etc.stat().st_mode & 0o777 == places.work.stat().st_mode & 0o777 == 0o700
    for path in places.etc.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600, path
    assert places.password.read_text() == "very-secret-1\n" and "very-secret-1" not in places.settings.read_text()
    assert call_backup(backup, **NODE)["changed"] is False
    # A removed schedule stops its timer. A changed schedule takes effect at once.
    timers.calls.clear()
    call_backup(backup, **{**NODE, "schedules": {"backup": "03:30"}})
    assert timers.calls == [f"disable --now {TIMERS[1]}", "daemon-reload", f"restart {TIMERS[0]}"]
    timers.enabled.clear()
    assert call_backup(backup, **{**NODE, "schedules": {"backup": "03:30"}})["changed"] is True, (
        "a timer that was stopped"
    )
    assert call_backup(backup, state="absent")["changed"] is True
    assert not places.command.exists() and not places.password.exists() and timers.enabled == set()
    assert call_backup(backup, state="absent")["changed"] is False


def test_check_mode_reports_whether_the_module_is_due(
    call_backup: Call, timers: TimerSystemd, places: Places, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    installed = ["restic"]

    def query(_module: Any, argv: list[str], **_options: Any) -> tuple[int, str, str]:
        return 1, "".join(f"install installed {name} 0.14\n" for name in installed), ""

    monkeypatch.setattr(AnsibleModule, "run_command", query)
    calls = answer_restic(monkeypatch, {"config": THERE})
    given = {**NODE, "packages": ["restic"], "repository_checked": True}

    def due(**changes: Any) -> Any:
        timers.calls.clear()
        found = call_backup(backup, check=True, **{**given, **changes})["due"]
        assert timers.calls == []
        return found

    assert due()
    call_backup(backup, **given)
    assert not due() and due(check_subset="1%") and due(state="absent")
    timers.enabled.discard(TIMERS[0])
    assert due()
    timers.enabled.add(TIMERS[0])
    for path in (places.settings, places.command, places.units / TIMERS[0]):
        text = path.read_text()
        path.write_text("theirs")
        assert due(), path
        path.write_text(text)
        assert not due(), path
    # Now node_exporter is installed: the metrics must have the time since which the node makes backups.
    places.metrics.parent.mkdir(parents=True)
    assert due()
    call_backup(backup, **given)
    state.end(places, jobs.open_node(places)[0], "backup", 4000.0)
    assert not due()
    for path in (places.metrics, places.state):
        path.unlink()
        assert due(), path
        call_backup(backup, **given)
        assert not due(), path
    places.state.write_text("{")
    assert due(), "the next run reports the damaged state"
    places.state.unlink()
    answer_restic(monkeypatch, {"config": ABSENT})
    assert due(repository=str(tmp_path / "new")), "another repository"
    # Without restic, the module does not ask the repository.
    calls = answer_restic(monkeypatch, {"config": THERE})
    installed.clear()
    found = call_backup(backup, check=True, **given)
    assert (found["due"], found["missing"], found["repository_state"]) == (True, ["restic"], "unknown") and calls == []


def test_an_untested_operating_system_is_refused_together_with_all_other_mistakes(
    call_backup: Call, timers: TimerSystemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tested, "refusal", lambda what, package: f"{what} needs {package}")
    said = call_backup(backup, **{**NODE, "password": ""})["msg"]
    assert "backup needs restic" in said and "backup_password" in said
    assert not call_backup(backup, state="absent").get("failed")


def metric_lines(places: Places, *metrics: str) -> list[str]:
    """The lines of the metrics file that have these metrics, shortened."""
    wanted = tuple(f"inference_backup_{metric}_" for metric in metrics)
    lines = [line for line in places.metrics.read_text().splitlines() if line.startswith(wanted)]
    return [line.removeprefix("inference_backup_").replace("_seconds{job=", " ") for line in lines]


def test_a_new_schedule_is_in_the_metrics_at_once_and_keeps_the_results_of_jobs(
    call_backup: Call, timers: TimerSystemd, places: Places
) -> None:
    places.metrics.parent.mkdir(parents=True)

    def scheduled(**schedules: str) -> list[str]:
        call_backup(backup, **{**NODE, "schedules": schedules})
        return metric_lines(places, "interval", "last_success")

    never = ['interval "prune"} 0', 'interval "check"} 0']
    assert scheduled(backup="02:30") == ['interval "backup"} 86400', *never]
    places.state.write_text(json.dumps({"schema": 1, "repository": "/srv/x", "jobs": {"backup": {"succeeded": 1.0}}}))
    succeeded = 'last_success_timestamp "backup"} 1'
    assert scheduled(backup="Sun 02:30") == ['interval "backup"} 604800', *never, succeeded]
    assert scheduled(backup="") == ['interval "backup"} 0', *never, succeeded]
    # A schedule that runs only once has no interval.
    assert scheduled(backup="once") == [*never, succeeded]


def test_the_metrics_have_the_time_since_which_a_node_makes_backups(
    call_backup: Call, timers: TimerSystemd, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    def since(now: float, **changed: Any) -> list[str]:
        monkeypatch.setattr(backup.time, "time", lambda: now)
        call_backup(backup, **{**NODE, **changed})
        if not places.metrics.exists():
            return []
        return [line for line in metric_lines(places, "since", "last_success") if '"backup"' in line]

    assert since(1000.0) == []
    # Now node_exporter is installed. A new schedule does not change the time.
    places.metrics.parent.mkdir(parents=True)
    assert since(2000.0) == since(3000.0, schedules={"backup": "03:30"}) == ['since_timestamp "backup"} 1000']
    state.end(places, jobs.open_node(places)[0], "backup", 4000.0)
    succeeded = 'last_success_timestamp "backup"} 4000'
    assert since(5000.0) == ['since_timestamp "backup"} 1000', succeeded]
    # Snapshots in the old repository do not count for a new repository.
    assert since(6000.0, repository="/srv/y") == ['since_timestamp "backup"} 6000']


def test_the_command_runs_on_its_own(call_backup: Call, timers: TimerSystemd, places: Places) -> None:
    call_backup(backup, **NODE)
    command = [sys.executable, "-I", "-S", str(places.command), "--help"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "save a snapshot now" in answer.stdout, answer.stderr


def test_all_mistakes_are_reported_at_once(call_backup: Call, timers: TimerSystemd, places: Places) -> None:
    wrong = {"repository": "b2:x", "password": "", "keep": {"often": 1}, "cpu_quota": "half", "delay_minutes": -1}
    wrong |= {"sftp_key": "change-me-to-a-private-key"}
    found = call_backup(backup, **{**NODE, **wrong, "schedules": {"backup": "soon", "never": ""}, "paths": []})
    assert found["failed"] is True and not places.etc.exists()
    for words in ("b2:x", "backup_password", "often", "quota", "delay", "backup_schedule is 'soon'", "never", "paths"):
        assert words in found["msg"], words
    assert "backup_sftp_key is a placeholder" in found["msg"] and "change-me" not in found["msg"]
    assert "very-secret" not in json.dumps(found)


@pytest.mark.parametrize("digits", ["²", "9" * 5000])
def test_digits_that_are_no_number_are_mistakes(call_backup: Call, timers: TimerSystemd, digits: str) -> None:
    found = call_backup(backup, **{**NODE, "keep": {"daily": digits}, "cpu_quota": f"{digits}%"})
    assert "backup_keep: daily is " in found["msg"] and "backup_cpu_quota is " in found["msg"]


def test_a_repository_is_made_once(
    call_backup: Call, timers: TimerSystemd, monkeypatch: pytest.MonkeyPatch, places: Places, tmp_path: Path
) -> None:
    given = {**NODE, "repository": str(tmp_path / "new"), "repository_checked": True}
    calls = answer_restic(monkeypatch, {"config": ABSENT})
    predicted = call_backup(backup, check=True, **given)
    assert (predicted["repository_state"], predicted["changed"]) == ("absent", True) and not places.etc.exists()
    assert not any("init" in call for call in calls)

    made: list[str] = []

    def run(command: list[str], timeout: float, environment: dict[str, str]) -> Outcome:
        if "init" in command:
            made.append("init")
            return THERE
        return THERE if made else ABSENT

    monkeypatch.setattr(restic.Restic.__init__, "__defaults__", (run, "restic"))
    done = call_backup(backup, **given)
    assert (done["repository_state"], done["repository_id"], done["changed"]) == ("ready", "0123", True)
    assert done["files"] == predicted["files"] and places.password.exists()
    again = call_backup(backup, **given)
    assert (again["repository_state"], again["repository_id"], again["changed"]) == ("ready", "0123", False)
    assert made == ["init"]


def test_a_refusal_of_the_repository_changes_nothing(
    call_backup: Call, timers: TimerSystemd, monkeypatch: pytest.MonkeyPatch, places: Places, tmp_path: Path
) -> None:
    given = {**NODE, "repository": str(tmp_path / "new"), "repository_checked": True}
    answer_restic(monkeypatch, {"config": Outcome(12, stderr="wrong password or no key found")})
    refused = call_backup(backup, **given)
    assert "restic key add" in refused["msg"] and "Nothing was changed" in refused["msg"]
    assert not places.etc.exists() and timers.calls == []
    answer_restic(monkeypatch, {"config": Outcome(None, failure="not_installed")})
    unknown = call_backup(backup, check=True, **given)
    assert (unknown["repository_state"], unknown["repository_id"]) == ("unknown", "")
    assert call_backup(backup, **given)["failed"] is True
    # If the repository is not checked, the module installs only the settings.
    assert "repository_state" not in call_backup(backup, **{**given, "repository_checked": False})


def test_a_repository_that_existed_before_is_not_made_anew(
    call_backup: Call, timers: TimerSystemd, monkeypatch: pytest.MonkeyPatch, places: Places, tmp_path: Path
) -> None:
    calls = answer_restic(monkeypatch, {"config": ABSENT})
    given = {**NODE, "repository": str(tmp_path / "mount/fleet"), "repository_checked": True}
    refused = call_backup(backup, **given)
    assert "is not a directory. Mount it" in refused["msg"]
    (tmp_path / "mount").mkdir()
    places.work.mkdir(parents=True)
    known = {"schema": 1, "repository": given["repository"], "jobs": {"backup": {"succeeded": 1.0}}}
    places.state.write_text(json.dumps(known))
    assert "was removed or is not mounted" in call_backup(backup, **given)["msg"]
    assert not any("init" in call for call in calls)


def test_a_server_that_allows_deletions_is_refused_before_any_change(
    call_backup: Call, timers: TimerSystemd, monkeypatch: pytest.MonkeyPatch, places: Places
) -> None:
    calls = answer_restic(monkeypatch, {"config": THERE})
    asked: list[restic.Access] = []

    def prove(access: restic.Access) -> None:
        asked.append(access)
        if len(asked) == 1:
            raise append_only.NotProven("lets this node delete backups")

    monkeypatch.setattr(append_only, "prove", prove)
    schedules = {"backup": "02:30", "check": "Wed 04:30"}
    given = {**NODE, "repository": "rest:http://store/n1", "repository_checked": True, "schedules": schedules}
    refused = call_backup(backup, append_only=True, **given)
    assert "lets this node delete backups. Nothing was changed" in refused["msg"]
    assert calls == [] and not places.etc.exists() and "very-secret" not in json.dumps(refused)
    done = call_backup(backup, append_only=True, **given)
    assert done["changed"] is True and asked[1].environment == NODE["environment"]
    assert not (places.units / TIMERS[1]).exists() and json.loads(places.settings.read_text())["append_only"] is True
    call_backup(backup, **given)
    assert len(asked) == 2, "without append_only, the server is not asked"
    said = call_backup(backup, append_only=True, **{**given, "schedules": NODE["schedules"]})["msg"]
    assert "backup_prune_schedule is 'Sun 04:30', but with backup_append_only this node cannot prune" in said
