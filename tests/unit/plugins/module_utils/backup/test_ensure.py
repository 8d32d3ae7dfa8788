# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a repository is made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.backup import ensure, restic
from ansible_collections.baremetal.inference.plugins.module_utils.backup.places import Places
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome

THERE = Outcome(0, stdout='{"id": "0123"}')
ABSENT = Outcome(10, stderr="Fatal: repository does not exist")


class FakeRestic:
    """A restic that gives one answer until `init` makes a repository."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answer: Outcome) -> None:
        self.answer = answer
        self.secrets: dict[str, str] = {}
        self.commands: list[list[str]] = []
        self.modes: set[int] = set()
        monkeypatch.setattr(restic.Restic.__init__, "__defaults__", (self.run, "restic"))

    def run(self, command: list[str], timeout: float, environment: dict[str, str]) -> Outcome:
        self.commands.append(command)
        directory = Path(environment["RESTIC_PASSWORD_FILE"]).parent
        for path in directory.iterdir():
            self.secrets[path.name] = path.read_text()
            self.modes.add(path.stat().st_mode & 0o777)
        if "init" in command:
            self.answer = THERE
        return self.answer


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    return {
        "repository": str(tmp_path / "fleet"),
        "password": "very-secret-1",
        "environment": {"AWS_SECRET_ACCESS_KEY": "very-secret-2"},
        "sftp_key": "very-secret-3\n\n",
        "known_hosts": ["store ssh-ed25519 AAAA"],
        "ca_file": "",
    }


def test_a_repository_is_made_where_there_is_none(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeRestic(monkeypatch, ABSENT)
    places = Places(tmp_path / "node")
    assert ensure.ensure(options, places, check=True) == ("absent", "", True)
    assert not any("init" in command for command in fake.commands)
    assert ensure.ensure(options, places, check=False) == ("ready", "0123", True)
    assert ensure.ensure(options, places, check=False) == ("ready", "0123", False)


def test_secrets_reach_restic_by_private_files(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeRestic(monkeypatch, THERE)
    assert ensure.ensure(options, Places(tmp_path), check=False) == ("ready", "0123", False)
    assert fake.secrets == {
        "password": "very-secret-1\n",
        "key": "very-secret-3\n",
        "known_hosts": "store ssh-ed25519 AAAA\n",
    }
    assert fake.modes == {0o600} and "very-secret" not in json.dumps(fake.commands)


def test_without_restic_check_mode_returns_unknown_and_a_run_is_an_error(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeRestic(monkeypatch, Outcome(None, failure="not_installed"))
    assert ensure.ensure(options, Places(tmp_path), check=True) == ("unknown", "", False)
    with pytest.raises(restic.ResticError):
        ensure.ensure(options, Places(tmp_path), check=False)


def test_a_lost_repository_is_an_error(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeRestic(monkeypatch, ABSENT)
    places = Places(tmp_path / "node")
    with pytest.raises(restic.ResticError, match=r"is not a directory\. Mount it"):
        ensure.ensure({**options, "repository": str(tmp_path / "mount/fleet")}, places, check=False)
    places.work.mkdir(parents=True)
    known = {"schema": 1, "repository": options["repository"], "jobs": {"backup": {"succeeded": 1.0}}}
    places.state.write_text(json.dumps(known))
    with pytest.raises(restic.ResticError, match="was removed or is not mounted"):
        ensure.ensure(options, places, check=False)
    assert not any("init" in command for command in fake.commands)
