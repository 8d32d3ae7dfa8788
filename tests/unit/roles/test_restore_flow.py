# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A restore drains and undrains the instances of the node. The modules are stand-ins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]

MODULES = ("backup_restore", "engine_facts", "engine_outage", "engine_service")

SERVE = "- name: Start\n  baremetal.inference.engine_service: {names: main}\n"
"""A task that replaces those that start units."""

Call = dict[str, Any]

ENGINES = [
    {"name": name, "serving": serving, "gang": gang}
    for name, serving, gang in (
        *(("main", True, []), ("side", True, []), ("ill", False, [])),
        *(("big", True, ["a", "b"]), ("huge", True, ["b", "a"])),
    )
]
"""The instances of the host a, which leads big and follows in huge."""
SNAPSHOT = {
    "snapshot": {"id": "ab12", "time": "then"},
    "differences": [],
    "aside": "",
    "only_here": [],
    "instances": ["ill", "main"],
    "served": [{"instance": "main"}],
    "moved": [],
    "shared": [],
    "recorded": {},
}


class Restore:
    """The restore of one node."""

    def __init__(self, stage: Any) -> None:
        self.stage = stage

    def run(self, *failures: Call, options: tuple[str, ...] = (), **extra: Any) -> tuple[bool, str]:
        """Whether the play succeeded, and what was printed."""
        variables = {
            "backup_models_path": "/mnt/models",
            "backup_restore_snapshot": "latest",
            "backup_restore_start": True,
            "__backup_asked": SNAPSHOT,
            **extra,
        }
        included = {"name": "baremetal.inference.backup", "tasks_from": "restore"}
        tasks = [{"name": "Restore", "ansible.builtin.include_role": included}]
        seen = [({"module": "engine_facts"}, {"instances": ENGINES}), ({"module": "backup_restore"}, SNAPSHOT)]
        seen.append(({"module": "engine_outage"}, {"words": []}))
        play = {"name": "Restore", "hosts": "a", "vars": variables, "tasks": tasks}
        found: tuple[bool, str] = self.stage.run([play], "a", *options, failures=failures, seen=seen)
        return found

    def steps(self) -> list[str]:
        """What was done, in short."""
        words = {"backup_restore": "restored", "engine_service": "started", "engine_outage": "drained"}
        return [call.get("state", words[call["module"]]) for call in self.stage.calls() if call["module"] in words]


@pytest.fixture
def restore(staged: Callable[..., Any]) -> Restore:
    return Restore(staged(MODULES, {"roles/backup/tasks/serve.yml": SERVE}))


def test_engines_that_a_restore_restarts_get_no_requests_meanwhile(restore: Restore) -> None:
    succeeded, output = restore.run()
    assert succeeded, output
    assert restore.steps() == ["drained", "restored", "started", "ended"]
    drained, ended = restore.stage.calls(module="engine_outage")
    assert (drained["names"], drained["owner"], drained["last"]) == (["main"], "restore", ["main"])
    assert (ended["names"], ended["owner"], ended["seconds"]) == (["main"], "restore", 0)
    assert "requests may be cut off" not in output


def test_a_follower_of_a_gang_is_neither_drained_nor_probed(restore: Restore) -> None:
    """A follower has no requests and no API. When its unit stops, the leader drains the gang."""
    succeeded, output = restore.run(__backup_asked={**SNAPSHOT, "instances": ["big", "huge"]})
    assert succeeded, output
    drained, ended = restore.stage.calls(module="engine_outage")
    assert (drained["names"], ended["names"]) == (["big"], ["big"])


@pytest.mark.once
@pytest.mark.parametrize(
    ("extra", "options"),
    [
        ({"backup_restore_start": False}, ()),
        ({"__backup_asked": {**SNAPSHOT, "instances": []}}, ()),
        ({}, ("--check",)),
    ],
)
def test_a_restore_that_restarts_no_engine_drains_no_engine(
    restore: Restore, extra: Call, options: tuple[str, ...]
) -> None:
    succeeded, output = restore.run(options=options, **extra)
    assert succeeded, output
    assert not restore.stage.calls(module="engine_outage")


def test_a_node_that_cannot_be_drained_is_restored_nevertheless(restore: Restore) -> None:
    succeeded, output = restore.run({"module": "engine_outage", "reason": "restore of snapshot latest"})
    assert succeeded, output
    assert "requests may be cut off: engine_outage was told to fail" in output
    assert restore.steps() == ["drained", "restored", "started", "ended"]


@pytest.mark.once
def test_engines_get_requests_again_after_a_restore_that_fails(restore: Restore) -> None:
    succeeded, _output = restore.run({"module": "backup_restore"})
    assert not succeeded and restore.steps() == ["drained", "restored", "ended"]


@pytest.mark.once
def test_an_engine_that_does_not_pass_its_probe_fails_the_restore(restore: Restore) -> None:
    succeeded, output = restore.run({"module": "engine_outage", "state": "ended"})
    assert not succeeded and "engine_outage was told to fail" in output


@pytest.mark.once
@pytest.mark.parametrize("asked", [{"snapshot": "latest"}, {"snapshot": "latest", "path": "/etc/apt"}, {}])
def test_a_host_that_is_no_node_is_reported_if_nothing_of_it_is_restored(
    staged: Callable[..., Any], asked: dict[str, str]
) -> None:
    plays = yaml.safe_load((ROOT / "playbooks/restore.yml").read_text(encoding="utf-8"))
    (files,) = [play for play in plays if play["name"] == "Restore single files"]
    files = {**files, "become": False, "vars": {**files["vars"], **asked}}
    seen = [({"module": "backup_restore"}, SNAPSHOT)]
    succeeded, output = staged(MODULES).run([files], "[inference]\na\n[gateway]\na\ngw", seen=seen)
    assert succeeded, output
    reported = "gw is not in the group inference: this run restores nothing on it" in output
    assert reported is (asked == {"snapshot": "latest"}), output
    assert "a is not in the group" not in output
