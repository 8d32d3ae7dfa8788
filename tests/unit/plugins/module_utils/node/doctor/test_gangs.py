# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The doctor's view of gangs: missing members, an engine without its gang or with another digest, a missing key."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import Docker
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import GANG_LABEL
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import gangs, releases
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.gangs import GangState, MemberState
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.check import FAIL, OK, Finding
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.gangs import members

from ...conftest import stage
from ..gang.world import NEW, OLD, gang
from .conftest import host


class Node:
    """A node with an instance over several nodes."""

    def __init__(self, root: Path, rank: int) -> None:
        self.paths = Paths(root)
        self.root = root
        self.unit = "active"
        self.container: dict[str, Any] | None = None
        stage(self.paths, "big", 5010)
        path = self.paths.release("big", 1) / releases.RELEASE_FILE
        release = replace(releases.load(self.paths, "big", 1), gang=gang(rank))
        files.write(path, release.to_json())
        releases.activate(self.paths, "big", 1)
        files.write(self.paths.gang_key, "0123456789abcdef", 0o600)

    def state(self, rank: int, state: str, *others: MemberState) -> None:
        me = MemberState(f"gpu-{rank}", rank, f"10.0.0.{rank + 1}", state)
        known = GangState("big", rank, 3, state, "2026-11-26T04:00:00Z", members=(me, *others))
        files.write_json(self.paths.gang("big"), known.to_json())

    def runs(self, digest: str) -> None:
        self.container = {"State": {"Running": True}, "Config": {"Labels": {GANG_LABEL: digest}}}

    def check(self) -> Finding:
        return members(host(self.root))


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    made = Node(tmp_path, 0)
    monkeypatch.setattr(systemd, "show", lambda units, _wanted: {unit: {"ActiveState": made.unit} for unit in units})
    monkeypatch.setattr(Docker, "inspect", lambda _docker, _name: made.container)
    return made


SERVES = MemberState("gpu-1", 1, "10.0.0.2", gangs.SERVING)


def test_a_complete_gang_is_ok(node: Node) -> None:
    node.state(0, gangs.SERVING, SERVES)
    node.runs(OLD)
    assert node.check() == Finding(OK, "1 gang is complete, or stopped")


def test_the_gang_of_a_member_that_boots_is_not_known_yet(node: Node) -> None:
    """The record on disk is that of the supervisor before the loss of power."""
    node.state(0, gangs.SERVING, SERVES)
    node.unit = "activating"
    found = node.check()
    assert found.status == OK
    assert found.message.startswith("0 gangs are complete") and found.message.endswith("not known yet: big")
    node.state(0, gangs.LOADING, replace(SERVES, state=gangs.LOADING))
    assert node.check().message == "1 gang is complete, or stopped"


def test_a_missing_member_is_named(node: Node) -> None:
    node.state(0, gangs.WAITING, replace(SERVES, state=gangs.MISSING, detail="was silent for 10 s"))
    found = node.check()
    assert (found.status, found.message) == (FAIL, "big: gpu-1 is missing: was silent for 10 s")


def test_an_engine_that_runs_without_its_gang_fails_the_check(node: Node) -> None:
    node.state(0, gangs.WAITING, replace(SERVES, state=gangs.WAITING))
    node.runs(OLD)
    assert "big: its engine runs without its gang: systemctl restart vllm@big.service" in node.check().message
    node.unit = "inactive"
    assert node.check().status == FAIL
    node.container = None
    assert node.check().status == OK


def test_an_engine_with_another_gang_digest_fails_the_check(node: Node) -> None:
    node.state(0, gangs.SERVING, SERVES)
    node.runs(NEW)
    assert (
        "its engine has the gang digest bbbbbbbbbbbb, and the installed release has aaaaaaaaaaaa"
        in node.check().message
    )


def test_a_missing_or_empty_gang_key_fails_the_check(node: Node) -> None:
    node.state(0, gangs.SERVING, SERVES)
    node.paths.gang_key.write_text("\n")
    assert "gang.key is missing or empty, so no gang can start: set gang_key" in node.check().message
    node.paths.gang_key.unlink()
    assert node.check().status == FAIL


def test_the_check_does_not_apply_to_a_node_without_gangs(tmp_path: Path) -> None:
    assert members(host(tmp_path)) == Finding(OK, "does not apply: no instance over several nodes")
