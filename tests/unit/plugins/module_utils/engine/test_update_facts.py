# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The release that an instance must run, how many seconds its load may take, and its endpoint."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import Docker
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import load_time, update_facts
from ansible_collections.baremetal.inference.plugins.module_utils.engine.environment import mark
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang.members import Gang, Member
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import history, releases
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

NOW = datetime(2026, 11, 21, 3, tzinfo=UTC)


def facts(paths: Paths, *unstaged: dict[str, Any], check: bool = False, **changes: Any) -> update_facts.Facts:
    values = {
        "unstaged": list(unstaged),
        "targets": {"main": 2},
        "rollback": False,
        "release": None,
        "ask_engine": True,
        **changes,
    }
    return update_facts.Facts(paths, Docker(), values, NOW, check)


def test_check_mode_returns_the_model_of_a_release_that_it_did_not_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unstaged = {"name": "main", "model": "tiny-b", "model_path": "/mnt/models/b"}
    foreseen = facts(Paths(tmp_path), unstaged, check=True)
    assert foreseen.check("main", 2) == ("tiny-b", "", [])
    assert foreseen.check("side", 2) == ("", "", [])
    # The engine is not asked about files that are not on the node.
    monkeypatch.setattr(update_facts.releases, "active_number", lambda paths, name: 1)
    monkeypatch.setattr(update_facts.install_state, "serving", lambda paths, name, now: True)
    monkeypatch.setattr(update_facts.Facts, "load_seconds", lambda *asked: None)
    found = foreseen.of("main").to_dict()
    assert (found["model"], found["target"], found["due"], found["problems"]) == ("tiny-b", 2, True, [])
    assert found["coming"] is None


def test_the_load_time_of_another_model_follows_from_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("8b", 1000), ("70b", 9000), ("1b", 100)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(b"0" * size)
    models = {1: "8b", 2: "70b", 3: "1b", 4: "gone", 5: "8b"}
    monkeypatch.setattr(load_time, "seconds", lambda name: 40.0)
    monkeypatch.setattr(update_facts.releases, "numbers", lambda paths, name: list(models))
    monkeypatch.setattr(
        update_facts.releases,
        "load",
        lambda paths, name, number: SimpleNamespace(model_path=str(tmp_path / models[number])),
    )
    unstaged = {"name": "main", "model": "x", "model_path": str(tmp_path / "70b")}
    staged, check = facts(Paths()), facts(Paths(), unstaged, check=True)
    found = {number: staged.load_seconds("main", 1, number) for number in models}
    assert found == {1: 40.0, 2: 360.0, 3: 40.0, 4: None, 5: 40.0}
    assert check.load_seconds("main", 1, 9) == 360.0
    # The model is not fetched yet.
    assert check.load_seconds("main", 1, 4) == 40.0


BEFORE, TODAY = "key-of-before", "key-of-today"


@pytest.fixture
def rollback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """The facts before a rollback, on a node that runs its second release and has served with its first."""
    paths = Paths(tmp_path)
    monkeypatch.setattr(update_facts.prepare, "missing", lambda release, docker: [])
    monkeypatch.setattr(load_time, "seconds", lambda name: 40.0)
    monkeypatch.setattr(systemd, "active_state", lambda unit: "active")

    def keep(number: int, port: int, address: str, key: str) -> None:
        settings = Settings(address=address, environment={"VLLM_API_KEY": key} if key else {})
        made = render(
            Instance("main", f"tiny-{number}", port), [], StoredModel("/m", "r"), "i", settings, number=number
        )
        releases.stage(paths, "main", made.release.id, lambda _number: made, pytest.fail)
        history.add(paths, "main", history.Served(number, "2026-11-21T03:00:00Z"))

    def call(first: dict[str, Any] | None = None) -> dict[str, Any]:
        second: dict[str, Any] = {"port": 5005, "address": "192.0.2.11", "key": TODAY}
        keep(1, **{**second, **(first or {})})
        keep(2, **second)
        releases.activate(paths, "main", 2)
        found = facts(paths, rollback=True, targets={}, ask_engine=False).of("main").to_dict()
        assert BEFORE not in json.dumps(found) and TODAY not in json.dumps(found)
        assert (found["target"], found["due"]) == (1, True)
        return found

    return call


@pytest.mark.parametrize(
    ("first", "coming"),
    [
        ({}, None),
        ({"port": 5006}, ("192.0.2.11", 5006, [mark(TODAY)])),
        ({"address": "127.0.0.1"}, ("127.0.0.1", 5005, [mark(TODAY)])),
        ({"key": BEFORE}, ("192.0.2.11", 5005, [mark(BEFORE)])),
        ({"key": ""}, ("192.0.2.11", 5005, [])),
    ],
)
def test_the_coming_endpoint_is_reported_where_it_differs(
    rollback: Callable[..., dict[str, Any]], first: dict[str, Any], coming: tuple[str, int, list[str]] | None
) -> None:
    found = rollback(first)
    assert found["problems"] == []
    assert found["coming"] == (coming and dict(zip(("address", "port", "marks"), coming, strict=True)))


def test_in_a_rollback_a_follower_has_no_target_of_its_own(
    tmp_path: Path, rollback: Callable[..., dict[str, Any]]
) -> None:
    assert rollback()["gang"] == []
    paths = Paths(tmp_path)
    for number in (1, 2):
        path = paths.release("main", number) / releases.RELEASE_FILE
        members = (Member("n1", 0, "10.0.0.1"), Member("n2", 1, "10.0.0.2"))
        release = replace(releases.load(paths, "main", number), gang=Gang("main", 1, members, 5110, 29510))
        path.write_text(release.to_json())
    # The follower gets its leader's release.
    found = facts(paths, rollback=True, release=7, targets={}, ask_engine=False).of("main")
    assert (found.gang, found.origin, found.target, found.due, found.problems) == (("n1", "n2"), 2, 2, False, ())
    staged = facts(paths, targets={"main": 1}, ask_engine=False).of("main")
    assert (staged.gang, staged.due, staged.coming) == (("n1", "n2"), True, None)
