# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules of the backup: what they install, refuse, make and bring back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.backup import jobs, restic, schedule, state
from ansible_collections.baremetal.inference.plugins.module_utils.backup.places import Places
from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.modules import (
    backup_facts,
    backup_node,
    backup_repository,
    backup_restore,
)

Call = Callable[..., dict[str, Any]]

NODE: dict[str, Any] = {
    "repository": "/srv/x",
    "password": "very-secret-1",
    "environment": {"AWS_SECRET_ACCESS_KEY": "very-secret-2"},
    "sftp_key": "very-secret-3",
    "known_hosts": ["store ssh-ed25519 AAAA"],
    "host": "n1",
    "paths": ["/etc/inference"],
    "keep": {"daily": 7},
    "schedules": {"backup": "02:30", "prune": "Sun 04:30", "check": ""},
}

TIMERS = ("inference-backup.timer", "inference-backup-prune.timer")


class Systemd:
    """A systemd that knows timers."""

    def __init__(self) -> None:
        self.enabled: set[str] = set()
        self.calls: list[str] = []

    def show(self, units: Iterable[str], properties: Iterable[str]) -> dict[str, dict[str, str]]:
        on = {"ActiveState": "active", "UnitFileState": "enabled"}
        return {name: on if name in self.enabled else dict.fromkeys(on, "") for name in units}

    def systemctl(self, *arguments: str) -> str:
        self.calls.append(" ".join(arguments))
        if arguments[0] == "enable":
            self.enabled |= set(arguments[2:])
        if arguments[0] == "disable":
            self.enabled -= set(arguments[2:])
        return ""


def longest_gap(text: str) -> int | None:
    """What a systemd says that knows days and Sundays."""
    if text == "soon":
        raise ValueError("Failed to parse")
    return None if text == "once" else 604800 if "Sun" in text else 86400


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Systemd:
    fake = Systemd()
    monkeypatch.setattr(systemd, "show", fake.show)
    monkeypatch.setattr(systemd, "systemctl", fake.systemctl)
    monkeypatch.setattr(schedule, "longest_gap", longest_gap)
    return fake


@pytest.fixture
def call(places: Places, monkeypatch: pytest.MonkeyPatch, run_module: Call) -> Call:
    def run(module: ModuleType, check: bool = False, **arguments: Any) -> dict[str, Any]:
        monkeypatch.setattr(module, "Places", lambda: places)
        return run_module(module, check, **arguments)

    return run


def test_it_is_installed_once_and_taken_away(call: Call, fake: Systemd, places: Places) -> None:
    predicted = call(backup_node, check=True, **NODE)
    assert predicted["changed"] is True and fake.calls == [] and not places.etc.exists()
    done = call(backup_node, **NODE)
    assert done["files"] == predicted["files"]
    assert fake.calls == ["daemon-reload", f"enable --now {' '.join(TIMERS)}"]
    assert "very-secret" not in json.dumps(done)
    assert places.etc.stat().st_mode & 0o777 == places.work.stat().st_mode & 0o777 == 0o700
    for path in places.etc.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600, path
    assert places.password.read_text() == "very-secret-1\n" and "very-secret-1" not in places.settings.read_text()
    assert call(backup_node, **NODE)["changed"] is False
    # A schedule that is taken away stops its timer; one that differs is heeded at once.
    fake.calls.clear()
    call(backup_node, **{**NODE, "schedules": {"backup": "03:30"}})
    assert fake.calls == [f"disable --now {TIMERS[1]}", "daemon-reload", f"restart {TIMERS[0]}"]
    fake.enabled.clear()
    assert call(backup_node, **{**NODE, "schedules": {"backup": "03:30"}})["changed"] is True, (
        "a timer that was stopped"
    )
    assert call(backup_node, state="absent")["changed"] is True
    assert not places.command.exists() and not places.password.exists() and fake.enabled == set()
    assert call(backup_node, state="absent")["changed"] is False


def told(places: Places, *metrics: str) -> list[str]:
    """What the metrics file says by these, in short."""
    wanted = tuple(f"inference_backup_{metric}_" for metric in metrics)
    lines = [line for line in places.metrics.read_text().splitlines() if line.startswith(wanted)]
    return [line.removeprefix("inference_backup_").replace("_seconds{job=", " ") for line in lines]


def test_another_schedule_is_told_at_once_and_forgets_nothing(call: Call, fake: Systemd, places: Places) -> None:
    places.metrics.parent.mkdir(parents=True)

    def scheduled(**schedules: str) -> list[str]:
        call(backup_node, **{**NODE, "schedules": schedules})
        return told(places, "interval", "last_success")

    never = ['interval "prune"} 0', 'interval "check"} 0']
    assert scheduled(backup="02:30") == ['interval "backup"} 86400', *never]
    places.state.write_text(json.dumps({"schema": 1, "repository": "/srv/x", "jobs": {"backup": {"succeeded": 1.0}}}))
    succeeded = 'last_success_timestamp "backup"} 1'
    assert scheduled(backup="Sun 02:30") == ['interval "backup"} 604800', *never, succeeded]
    assert scheduled(backup="") == ['interval "backup"} 0', *never, succeeded]
    # What comes but once has no interval.
    assert scheduled(backup="once") == [*never, succeeded]


def test_since_when_a_node_saves_itself_is_told(
    call: Call, fake: Systemd, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    def since(now: float, **changed: Any) -> list[str]:
        monkeypatch.setattr(backup_node.time, "time", lambda: now)
        call(backup_node, **{**NODE, **changed})
        if not places.metrics.exists():
            return []
        return [line for line in told(places, "since", "last_success") if '"backup"' in line]

    assert since(1000.0) == []
    # node_exporter has come; and another schedule is no beginning.
    places.metrics.parent.mkdir(parents=True)
    assert since(2000.0) == since(3000.0, schedules={"backup": "03:30"}) == ['since_timestamp "backup"} 1000']
    state.end(places, jobs.open_node(places)[0], "backup", 4000.0)
    succeeded = 'last_success_timestamp "backup"} 4000'
    assert since(5000.0) == ['since_timestamp "backup"} 1000', succeeded]
    # What was saved elsewhere says nothing of another repository.
    assert since(6000.0, repository="/srv/y") == ['since_timestamp "backup"} 6000']


def test_the_command_runs_on_its_own(call: Call, fake: Systemd, places: Places) -> None:
    call(backup_node, **NODE)
    command = [sys.executable, "-I", "-S", str(places.command), "--help"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "save a snapshot now" in answer.stdout, answer.stderr


def test_all_mistakes_are_told_at_once(call: Call, fake: Systemd, places: Places) -> None:
    wrong = {"repository": "b2:x", "password": "", "keep": {"often": 1}, "cpu_quota": "half", "delay_minutes": -1}
    found = call(backup_node, **{**NODE, **wrong, "schedules": {"backup": "soon", "never": ""}, "paths": []})
    assert found["failed"] is True and not places.etc.exists()
    for words in ("b2:x", "backup_password", "often", "quota", "delay", "backup_schedule is 'soon'", "never", "paths"):
        assert words in found["msg"], words
    assert "very-secret" not in json.dumps(found)


def script(monkeypatch: pytest.MonkeyPatch, answers: dict[str, Outcome]) -> list[list[str]]:
    """A restic that answers by its verb; returns its calls."""
    calls: list[list[str]] = []

    def run(command: list[str], timeout: float, environment: dict[str, str]) -> Outcome:
        calls.append(command)
        return next(answer for verb, answer in answers.items() if verb in command)

    monkeypatch.setattr(restic.Restic.__init__, "__defaults__", (run, "restic"))
    return calls


ABSENT = Outcome(10, stderr="Fatal: repository does not exist")
THERE = Outcome(0, stdout='{"id": "0123"}')


def test_a_repository_is_made_once(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = {"repository": str(tmp_path / "new"), "password": "very-secret-1"}
    calls = script(monkeypatch, {"config": THERE})
    assert call(backup_repository, **given) == {
        **call(backup_repository, **given),
        "changed": False,
        "state": "ready",
        "id": "0123",
    }
    assert not any("init" in one for one in calls)
    script(monkeypatch, {"config": ABSENT})
    assert call(backup_repository, check=True, **given)["state"] == "absent"
    script(monkeypatch, {"config": Outcome(12, stderr="wrong password or no key found")})
    refused = call(backup_repository, **given)
    assert "restic key passwd" in refused["msg"] and "Nothing was changed" in refused["msg"]
    script(monkeypatch, {"config": Outcome(None, failure="not_installed")})
    assert call(backup_repository, check=True, **given)["state"] == "unknown"
    assert call(backup_repository, **given)["failed"] is True


def test_a_repository_that_was_there_is_not_made_anew(
    call: Call, monkeypatch: pytest.MonkeyPatch, places: Places, tmp_path: Path
) -> None:
    calls = script(monkeypatch, {"config": ABSENT})
    address = str(tmp_path / "mount/fleet")
    refused = call(backup_repository, repository=address, password="x")
    assert "is it mounted?" in refused["msg"]
    (tmp_path / "mount").mkdir()
    places.work.mkdir(parents=True)
    known = {"schema": 1, "repository": address, "jobs": {"backup": {"succeeded": 1.0}}}
    places.state.write_text(json.dumps(known))
    assert "gone, or not mounted" in call(backup_repository, repository=address, password="x")["msg"]
    assert not any("init" in one for one in calls)


def test_a_snapshot_is_laid_over_the_node(
    call: Call, fake: Systemd, monkeypatch: pytest.MonkeyPatch, places: Places
) -> None:
    assert "playbooks/backup.yml" in call(backup_facts)["msg"]
    call(backup_node, **NODE)
    listed = [{"id": "ab" * 32, "short_id": "abababab", "time": "2026-11-20T02:30:00Z", "hostname": "n1", "tags": []}]
    script(monkeypatch, {"snapshots": Outcome(0, stdout=json.dumps(listed))})
    assert [one["id"] for one in call(backup_facts)["snapshots"]] == ["abababab"]

    def fetch(self: restic.Restic, snapshot: str, target: Path) -> None:
        (target / "etc/inference").mkdir(parents=True)
        (target / "etc/inference/a.json").write_text("a")
        (target / "inference-backup.json").write_text(json.dumps({"schema": 1, "kernel": "6.1"}))

    monkeypatch.setattr(restic.Restic, "restore", fetch)
    assert jobs.open_node(places)[0].host == "n1"
    drill = call(backup_restore, snapshot="latest", drill=True)
    assert drill["changed"] is False and drill["differences"][0]["differs"] == ["missing"]
    predicted = call(backup_restore, check=True, snapshot="abab", paths=["/etc/inference"])
    assert predicted["changed"] is True and not (places.root / "etc/inference").exists()
    done = call(backup_restore, snapshot="abab", paths=["/etc/inference"])
    assert done["differences"] == predicted["differences"] and done["aside"] == ""
    assert (places.root / "etc/inference/a.json").read_text() == "a"
    assert call(backup_restore, snapshot="latest")["changed"] is False
    # What was replaced is kept until something else is.
    (places.root / "etc/inference/a.json").write_text("b")
    kept = Path(call(backup_restore, snapshot="latest")["aside"])
    assert (kept / "etc/inference/a.json").read_text() == "b"
    beside = call(backup_restore, snapshot="latest", paths=["/etc/inference/a.json"], target="/etc/b.json")
    assert beside["changed"] is True and kept.exists()
    assert list(places.work.glob("scratch-*")) == []
    refused = call(backup_restore, snapshot="latest", paths=["etc", "/a/../b"], target="/x", drill=True)
    assert "'etc'" in refused["msg"] and "drill" in refused["msg"] and "one path" in refused["msg"]


REGISTRY = {"base-a": {"model": "https://models.example.com/a.tar"}, "bot": {"base": "base-a", "system-prompt": "Hi."}}


def release(model: str, number: int = 3, user: str = "--user=999:997") -> dict[str, Any]:
    return {
        "instance": "main",
        "number": number,
        "model": model,
        "revision": "0123456789ab",
        "model_path": f"/mnt/models/{model}/0123456789ab",
        "image": "registry.example.com/vllm@sha256:00",
        "port": 5005,
        "accelerator": "cpu",
        "container_argv": ["create", user],
    }


@pytest.fixture
def snapshot(call: Call, fake: Systemd, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The release of the one instance in the snapshot, and what else is recorded: a test alters both."""
    call(backup_node, **NODE)
    listed = [{"id": "ab" * 32, "short_id": "abababab", "time": "2026-11-20T02:30:00Z", "hostname": "n1", "tags": []}]
    script(monkeypatch, {"snapshots": Outcome(0, stdout=json.dumps(listed))})
    content: dict[str, Any] = {"release": release("bot"), "users": {}}

    def fetch(self: restic.Restic, snapshot: str, target: Path) -> None:
        directory = target / "var/lib/inference/releases/main/3"
        directory.mkdir(parents=True)
        (directory / "release.json").write_text(json.dumps(content["release"]))
        (directory.parent / "active").symlink_to("3")
        (target / "etc/inference").mkdir(parents=True)
        (target / "etc/inference/registry.json").write_text(json.dumps({"schema": 1, "models": REGISTRY}))
        (target / "inference-backup.json").write_text(json.dumps({"schema": 1, "users": content["users"]}))

    monkeypatch.setattr(restic.Restic, "restore", fetch)
    return content


PATHS = ["/etc/inference", "/var/lib/inference"]


def test_what_engines_need_is_told_and_nothing_is_restored_without_it(
    call: Call, snapshot: dict[str, Any], places: Places
) -> None:
    asked = call(backup_restore, snapshot="latest", paths=PATHS, drill=True)
    assert asked["absent_models"] == REGISTRY, "with its base"
    instance = {"name": "main", "model": "bot", "port": 5005, "accelerator": "cpu"}
    assert asked["absent_instances"] == [instance] and "user" not in asked["served"][0]
    (places.root / "mnt/models/bot/ffffffffffff").mkdir(parents=True)
    refused = call(backup_restore, snapshot="latest", paths=PATHS, serves=True)["msg"]
    for word in ("Nothing was restored", "main wants", "https://models.example.com/a.tar", "it has: ffffffffffff"):
        assert word in refused
    assert not (places.root / "etc/inference").exists()
    (places.root / "mnt/models/bot/0123456789ab").mkdir()
    done = call(backup_restore, snapshot="latest", paths=PATHS, serves=True)
    assert done["changed"] is True and done["absent_models"] == {} and done["absent_instances"] == []


def test_a_model_that_the_registry_had_forgotten_is_named(call: Call, snapshot: dict[str, Any], places: Places) -> None:
    snapshot["release"] = release("old")
    assert call(backup_restore, snapshot="latest", paths=PATHS, drill=True)["absent_models"] == {}
    known = {"old": {"model": "/srv/old"}}
    asked = call(backup_restore, snapshot="latest", paths=PATHS, drill=True, models=known)
    assert asked["absent_models"] == known and len(asked["absent_instances"]) == 1
    assert (
        "neither the snapshot's registry nor"
        in call(backup_restore, snapshot="latest", paths=PATHS, serves=True)["msg"]
    )


def test_a_release_for_an_account_of_another_number_is_refused(
    call: Call, snapshot: dict[str, Any], places: Places
) -> None:
    (places.root / "mnt/models/bot/0123456789ab").mkdir(parents=True)
    # On this machine root is 0.
    snapshot["users"] = {"999": "root"}
    refused = call(backup_restore, snapshot="latest", paths=PATHS, serves=True)["msg"]
    assert "main runs as 999:997" in refused and "is 0:997 here" in refused and "usermod" in refused
    assert call(backup_restore, snapshot="latest", paths=PATHS)["changed"] is True, "files alone can be restored"
