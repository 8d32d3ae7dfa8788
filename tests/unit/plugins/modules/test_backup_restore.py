# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module backup_restore: what it compares, restores, and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.backup import jobs, restic
from ansible_collections.baremetal.inference.plugins.module_utils.backup.places import Places
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.modules import backup, backup_restore

from ..backup_harness import NODE, SNAPSHOT, TimerSystemd, answer_restic

Call = Callable[..., dict[str, Any]]


def test_a_snapshot_replaces_files_of_the_node(
    call_backup: Call, timers: TimerSystemd, monkeypatch: pytest.MonkeyPatch, places: Places
) -> None:
    call_backup(backup, **NODE)
    answer_restic(monkeypatch, {"snapshots": Outcome(0, stdout=json.dumps([SNAPSHOT]))})

    def fetch(self: restic.Restic, snapshot: str, target: Path) -> None:
        (target / "etc/inference").mkdir(parents=True)
        (target / "etc/inference/a.json").write_text("a")
        (target / "inference-backup.json").write_text(json.dumps({"schema": 1, "kernel": "6.1"}))

    monkeypatch.setattr(restic.Restic, "restore", fetch)
    assert jobs.open_node(places)[0].host == "n1"
    drill = call_backup(backup_restore, snapshot="latest", drill=True)
    assert drill["changed"] is False and drill["differences"][0]["differs"] == ["missing"]
    predicted = call_backup(backup_restore, check=True, snapshot="abab", paths=["/etc/inference"])
    assert predicted["changed"] is True and not (places.root / "etc/inference").exists()
    done = call_backup(backup_restore, snapshot="abab", paths=["/etc/inference"])
    assert done["differences"] == predicted["differences"] and done["aside"] == ""
    assert (places.root / "etc/inference/a.json").read_text() == "a"
    assert call_backup(backup_restore, snapshot="latest")["changed"] is False
    # The replaced files are kept until another restore replaces files.
    (places.root / "etc/inference/a.json").write_text("b")
    kept = Path(call_backup(backup_restore, snapshot="latest")["aside"])
    assert (kept / "etc/inference/a.json").read_text() == "b"
    beside = call_backup(backup_restore, snapshot="latest", paths=["/etc/inference/a.json"], target="/etc/b.json")
    assert beside["changed"] is True and kept.exists()
    assert list(places.work.glob("scratch-*")) == []
    # A restore that was cut off has left this directory.
    left = places.aside / "20261120T023000Z-unfinished"
    left.mkdir()
    assert "warnings" not in beside
    assert str(left) in str(call_backup(backup_restore, snapshot="latest", drill=True)["warnings"]) and left.exists()
    refused = call_backup(backup_restore, snapshot="latest", paths=["etc", "/a/../b"], target="/x", drill=True)
    assert "'etc'" in refused["msg"] and "drill" in refused["msg"] and "exactly one of paths" in refused["msg"]
    root = call_backup(backup_restore, snapshot="latest", paths=["/"])
    assert "paths has '/': must be an absolute path below /, without .." in root["msg"]


REGISTRY = {"base-a": {"model": "https://models.example.com/a.tar"}, "bot": {"base": "base-a", "system-prompt": "Hi."}}


def release(model: str, number: int = 3) -> dict[str, Any]:
    return {
        "instance": "main",
        "number": number,
        "model": model,
        "revision": "0123456789ab",
        "model_path": f"/mnt/models/{model}/0123456789ab",
        "image": "registry.example.com/vllm@sha256:00",
        "port": 5005,
        "accelerator": "cpu",
        "settings": {"uid": 999, "gid": 997},
    }


@pytest.fixture
def snapshot(call_backup: Call, timers: TimerSystemd, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The content of the snapshot, which tests change: the release of its only instance, users, and more files."""
    call_backup(backup, **NODE)
    answer_restic(monkeypatch, {"snapshots": Outcome(0, stdout=json.dumps([SNAPSHOT]))})
    content: dict[str, Any] = {"release": release("bot"), "users": {}, "files": {}}

    def fetch(self: restic.Restic, snapshot: str, target: Path) -> None:
        directory = target / "var/lib/inference/releases/main/3"
        directory.mkdir(parents=True)
        (directory / "release.json").write_text(json.dumps(content["release"]))
        (directory.parent / "active").symlink_to("3")
        (target / "etc/inference").mkdir(parents=True)
        (target / "etc/inference/registry.json").write_text(json.dumps({"schema": 1, "models": REGISTRY}))
        (target / "inference-backup.json").write_text(json.dumps({"schema": 1, "users": content["users"]}))
        for path, text in content["files"].items():
            (target / path).write_text(text)

    monkeypatch.setattr(restic.Restic, "restore", fetch)
    return content


PATHS = ["/etc/inference", "/var/lib/inference"]


def test_missing_models_are_reported_and_nothing_is_restored_without_them(
    call_backup: Call, snapshot: dict[str, Any], places: Places
) -> None:
    asked = call_backup(backup_restore, snapshot="latest", paths=PATHS, drill=True)
    assert asked["absent_models"] == REGISTRY, "the model with its base"
    instance = {"name": "main", "model": "bot", "port": 5005, "accelerator": "cpu"}
    assert asked["absent_instances"] == [instance] and "user" not in asked["served"][0]
    (places.root / "mnt/models/bot/ffffffffffff").mkdir(parents=True)
    refused = call_backup(backup_restore, snapshot="latest", paths=PATHS, serves=True)["msg"]
    for word in (
        "Nothing was restored",
        "main needs",
        "https://models.example.com/a.tar",
        "the store has: ffffffffffff",
    ):
        assert word in refused
    assert not (places.root / "etc/inference").exists()
    (places.root / "mnt/models/bot/0123456789ab").mkdir()
    done = call_backup(backup_restore, snapshot="latest", paths=PATHS, serves=True)
    assert done["changed"] is True and done["absent_models"] == {} and done["absent_instances"] == []


def test_the_key_of_gangs_stays_where_engines_are_started(
    call_backup: Call, snapshot: dict[str, Any], places: Places
) -> None:
    """The other members of the gang have the present key, not the key in the snapshot."""
    key = "etc/inference/gang.key"
    snapshot["files"] = {key: "of that time"}
    (places.root / "mnt/models/bot/0123456789ab").mkdir(parents=True)
    (places.root / key).parent.mkdir(parents=True)
    (places.root / key).write_text("of today")
    for options in ({"drill": True}, {}):
        done = call_backup(backup_restore, snapshot="latest", paths=PATHS, serves=True, **options)
        assert done["shared"] == [str(places.root / key)]
        assert key not in [each["path"].removeprefix(f"{places.root}/") for each in done["differences"]]
    assert (places.root / key).read_text() == "of today"
    call_backup(backup_restore, snapshot="latest", paths=PATHS)
    assert (places.root / key).read_text() == "of that time"


def test_a_model_that_the_registry_in_the_snapshot_lacks_is_named(
    call_backup: Call, snapshot: dict[str, Any], places: Places
) -> None:
    snapshot["release"] = release("old")
    assert call_backup(backup_restore, snapshot="latest", paths=PATHS, drill=True)["absent_models"] == {}
    known = {"old": {"model": "/srv/old"}}
    asked = call_backup(backup_restore, snapshot="latest", paths=PATHS, drill=True, models=known)
    assert asked["absent_models"] == known and len(asked["absent_instances"]) == 1
    assert (
        "Neither the model registry in the snapshot nor"
        in call_backup(backup_restore, snapshot="latest", paths=PATHS, serves=True)["msg"]
    )


def test_a_release_for_an_account_with_another_number_is_refused(
    call_backup: Call, snapshot: dict[str, Any], places: Places
) -> None:
    (places.root / "mnt/models/bot/0123456789ab").mkdir(parents=True)
    # On this machine, root has the number 0.
    snapshot["users"] = {"999": "root"}
    refused = call_backup(backup_restore, snapshot="latest", paths=PATHS, serves=True)["msg"]
    assert (
        "main runs as 999:997" in refused and "has the numbers 0:997 on this node" in refused and "usermod" in refused
    )
    assert call_backup(backup_restore, snapshot="latest", paths=PATHS)["changed"] is True, "files alone can be restored"


def test_after_a_restore_at_another_address_the_comparison_finds_nothing(
    call_backup: Call, snapshot: dict[str, Any], places: Places
) -> None:
    """Otherwise, a second restore would drain engines that it does not restart."""
    (places.root / "mnt/models/bot/0123456789ab").mkdir(parents=True)
    snapshot["release"] = {**release("bot"), "address": "192.0.2.1"}
    live = places.root / "var/lib/inference/releases/side/1"
    live.mkdir(parents=True)
    (live / "release.json").write_text(json.dumps({"address": "127.0.0.1"}))
    (live.parent / "active").symlink_to("1")
    asked = call_backup(backup_restore, snapshot="latest", paths=PATHS, drill=True, serves=True)
    assert asked["moved"] == ["main, release 3: 127.0.0.1 in place of 192.0.2.1"] and asked["changed"] is False
    assert call_backup(backup_restore, snapshot="latest", paths=PATHS, serves=True)["changed"] is True
    again = call_backup(backup_restore, snapshot="latest", paths=PATHS, drill=True, serves=True)
    assert again["differences"] == [] == again["instances"]
    assert call_backup(backup_restore, snapshot="latest", paths=PATHS, drill=True)["differences"], (
        "without serves, the address in the snapshot counts"
    )
