# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The demo: its inventory, and when its update counts as a success. No test starts a node."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import nodes
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "molecule/shared"))

from load import Report


class Site:
    """Two nodes that do not exist."""

    def write_inventory(self, path: Path) -> None:
        hosts = {f"inference-demo-node{number}": {"ansible_host": f"172.18.0.{number}"} for number in (1, 2)}
        self.addresses = dict.fromkeys(hosts, "")
        groups = {"inference": {"hosts": hosts}, "gateway": {"hosts": {}}, "all": {"vars": {}}}
        path.write_text(json.dumps(groups))


@pytest.fixture
def demo(script: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The demo, with its files in a directory of the test."""
    demo = script("demo")
    for name in ("INVENTORY", "KEY", "TRUSTED"):
        monkeypatch.setattr(demo, name, tmp_path / name.lower())
    return demo


def test_the_first_node_is_the_gateway_and_the_inventory_has_no_key(demo: ModuleType) -> None:
    demo.write_inventory(Site())
    groups, key = json.loads(demo.INVENTORY.read_text()), demo.KEY.read_text()
    assert list(groups["gateway"]["hosts"]) == ["inference-demo-node1"] and demo.gateway() == "172.18.0.1"
    assert len(key) == 64 and demo.KEY.stat().st_mode & 0o777 == 0o600 and key not in demo.INVENTORY.read_text()
    assert str(demo.KEY) in groups["all"]["vars"]["gateway_keys"][0]["key"]
    demo.write_inventory(Site())
    assert demo.KEY.read_text() == key


@pytest.mark.parametrize(
    ("playbook", "failures", "after", "code"),
    [
        (True, [], "I am tiny-b.", 0),
        (True, ["502"], "I am tiny-b.", 1),
        (True, [], "I am tiny-a.", 1),
        (False, [], "I am tiny-b.", 1),
    ],
    ids=["no failure", "a failed request", "the old model", "a failed run"],
)
def test_an_update_counts_failures_of_clients(
    demo: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    playbook: bool,
    failures: list[str],
    after: str,
    code: int,
) -> None:
    demo.write_inventory(Site())
    demo.TRUSTED.write_text("")
    answers, runs = ["I am tiny-a.", after], []

    class Clients:
        def __init__(self, url: str, **given: Any) -> None:
            assert url == "https://172.18.0.1:8000" and given["key"] == demo.KEY.read_text()

        def start(self) -> Clients:
            return self

        def stop(self) -> Report:
            return Report(succeeded=391, failures=failures, latencies=[0.5])

    def run(name: str, *options: str) -> bool:
        runs.append((name, *options))
        return playbook

    monkeypatch.setattr(demo, "Load", Clients)
    monkeypatch.setattr(demo, "ask", lambda: answers.pop(0))
    monkeypatch.setattr(demo, "playbook", run)
    assert demo.update() == code
    assert runs == [("update_model", "-e", '{"set": {"main": "tiny-b"}}')]
    assert f"391 succeeded, {len(failures)} failed" in capsys.readouterr().out


def test_an_update_without_nodes_is_an_error_with_the_next_step(demo: ModuleType) -> None:
    with pytest.raises(nodes.NodeError, match="the demo does not run: make demo"):
        demo.gateway()


def test_the_end_of_the_demo_leaves_no_key(demo: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[str] = []
    monkeypatch.setattr(demo, "existing", lambda prefix: [f"{prefix}1"])
    monkeypatch.setattr(demo, "remove", removed.append)
    demo.write_inventory(Site())
    assert demo.down() == 0 and removed == ["inference-demo-node1"]
    assert not demo.KEY.exists() and not demo.INVENTORY.exists()
    assert demo.down() == 0
