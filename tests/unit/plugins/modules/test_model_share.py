# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module model_share: what it starts and stops, and why a node cannot share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.modules import model_share

RunModule = Callable[..., dict[str, Any]]


class Node:
    """A node with a store that has model m, and the commands that the module runs."""

    def __init__(self, root: Path, publish_model: Callable[..., Path], run_module: RunModule) -> None:
        self._run = run_module
        self.paths = Paths(root / "node")
        self.store = root / "store"
        self.model = publish_model(self.store, "m")
        self.calls: list[list[str]] = []
        self.active = False
        self.code = 0
        self.stop_code = 0

    def command(self, argv: list[str]) -> tuple[int, str, str]:
        self.calls.append(argv)
        if argv[:2] == ["systemctl", "is-active"]:
            return (0 if self.active else 3), "", ""
        if argv[0] == "systemd-run":
            return self.code, "", ""
        if argv[:2] == ["systemctl", "stop"]:
            return self.stop_code, "", "Job failed"
        return 0, "OSError: cannot bind", ""

    def run(self, check: bool = False, **arguments: Any) -> dict[str, Any]:
        return self._run(model_share, check, **arguments)

    def start(self, check: bool = False, **arguments: Any) -> dict[str, Any]:
        given = {"store": str(self.store), "models": {"m": self.model.name}, "address": "192.0.2.7", **arguments}
        return self.run(check, **given)

    @property
    def started(self) -> list[list[str]]:
        return [call for call in self.calls if call[0] == "systemd-run"]


@pytest.fixture
def node(
    tmp_path: Path, publish_model: Callable[..., Path], run_module: RunModule, monkeypatch: pytest.MonkeyPatch
) -> Node:
    node = Node(tmp_path, publish_model, run_module)
    monkeypatch.setattr(model_share, "Paths", lambda: node.paths)
    monkeypatch.setattr(basic.AnsibleModule, "run_command", lambda module, argv: node.command(argv))
    return node


def test_a_node_shares_the_named_models(node: Node) -> None:
    result = node.start(port=5033, seconds=60)
    assert (result["changed"], result["problem"], result["url"]) == (True, "", "http://192.0.2.7:5033")
    assert list(result["manifests"]) == ["m"] and result["manifests"]["m"]["revision"] == node.model.name
    (command,) = node.started
    assert "--property=RuntimeMaxSec=60" in command
    assert result["token"] and result["token"] not in " ".join(command)


def test_check_mode_starts_and_stops_nothing(node: Node) -> None:
    node.active = True
    foreseen = node.start(check=True)
    assert (foreseen["changed"], foreseen["url"], foreseen["token"], foreseen["manifests"]) == (True, "", "", {})
    assert node.calls == []
    assert node.run(check=True, state="stopped")["changed"] is True
    node.active = False
    assert node.run(check=True, state="stopped")["changed"] is False
    assert {tuple(call[:2]) for call in node.calls} == {("systemctl", "is-active")}


def test_a_stop_is_a_change_only_if_models_were_shared(node: Node) -> None:
    assert node.run(state="stopped")["changed"] is False
    node.active = True
    result = node.run(state="stopped")
    assert (result["changed"], result["url"], result["problem"]) == (True, "", "")
    assert ["systemctl", "stop", "--quiet", "inference-share.service"] in node.calls


def test_a_server_that_does_not_stop_is_a_failure(node: Node) -> None:
    node.active, node.stop_code = True, 1
    result = node.run(state="stopped")
    assert result["failed"] and "does not stop: Job failed" in result["msg"]
    assert "does not stop" in node.start()["problem"] and node.started == []


def test_a_node_that_cannot_share_is_no_failure(node: Node) -> None:
    result = node.start(address="")
    assert "because its address is not known" in result["problem"] and not result.get("failed") and node.started == []
    node.code = 1
    result = node.start()
    assert "port 5003: OSError: cannot bind; correct" in result["problem"]
    assert (result["url"], result["token"], result["manifests"]) == ("", "", {})
    assert str(node.store / "m/ffffffffffff") in node.start(models={"m": "f" * 12})["problem"]


def test_sharing_needs_a_store(node: Node) -> None:
    assert "store" in node.run(models={"m": node.model.name})["msg"]
