# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a scenario's nodes are made from, and the inventory that leads to them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import machine_images
import nodes
import pytest
import snapshots


@pytest.fixture
def tool(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("test-node")


class Containers(nodes.Site):
    """A site without containers. `did` lists the calls."""

    def __init__(self) -> None:
        self.addresses = {}
        self.did: list[str] = []

    def create(self, name: str, origin: nodes.Origin, address: str = "") -> None:
        self.did.append(f"create {name} from {origin.image} {origin.volume} {address}".strip())

    def stop(self, name: str, unit: str) -> None:
        self.did.append(f"stop {unit} on {name}")

    def wait(self, name: str) -> str:
        self.did.append(f"wait for {name}")
        self.addresses[name] = f"172.18.0.{len(self.addresses)}"
        return self.addresses[name]

    def shell(self, name: str, script: str, stdin: str = "") -> str:
        self.did.append(f"on {name}: {script}")
        return ""

    def connection(self) -> dict[str, str]:
        return {"ansible_user": "root"}


def test_all_nodes_boot_at_once_and_the_inventory_leads_to_each(tool: ModuleType) -> None:
    site = Containers()
    inventory = tool.up(site, {"deb12": "bookworm", "deb13": "trixie"}, "image", {"deb13": "172.18.9.9"})
    assert site.did[:2] == [
        "create deb12 from inference-node:bookworm",
        "create deb13 from inference-node:trixie  172.18.9.9",
    ]
    assert [step for step in site.did if "apt/lists" in step and step.startswith("on deb13")]
    hosts = inventory["all"]["hosts"]
    assert {name: host["ansible_host"] for name, host in hosts.items()} == {
        "deb12": "172.18.0.0",
        "deb13": "172.18.0.1",
    }
    assert inventory["all"]["vars"] == {"ansible_user": "root"}


def test_nodes_from_snapshots_keep_the_lists_of_packages_and_boot_without_the_agent(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def ensure(releases: list[str]) -> dict[str, nodes.Origin]:
        asked.append(releases)
        return {release: nodes.Origin(f"snapshot-{release}", f"disk-{release}") for release in releases}

    monkeypatch.setattr(snapshots, "ensure", ensure)
    site = Containers()
    tool.up(site, {"deb12": "bookworm"}, "snapshot", {})
    assert site.did == [
        "create deb12 from snapshot-bookworm disk-bookworm",
        "stop inference-agent.service on deb12",
        "wait for deb12",
    ]
    assert asked == [["bookworm"]]


def test_nodes_from_an_image_with_a_kernel_get_todays_lists_of_packages(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_images, "ensure", lambda releases: {one: nodes.Origin(f"m-{one}") for one in releases})
    site = Containers()
    tool.up(site, {"deb12": "bookworm"}, "machine", {})
    assert site.did == ["create deb12 from m-bookworm", "wait for deb12", "on deb12: apt-get -qq update"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["deb12"], "'deb12' is not NODE:RELEASE, where RELEASE is bookworm or trixie"),
        (["deb12:"], "'deb12:' is not NODE:RELEASE"),
        ([":bookworm"], "':bookworm' is not NODE:RELEASE"),
        (["a:b:c"], "'a:b:c' is not NODE:RELEASE"),
        (["deb11:bullseye"], "'deb11:bullseye' is not NODE:RELEASE"),
        (["deb12:bookworm", "--address=deb12"], "'deb12' is not NODE=ADDRESS"),
    ],
)
def test_a_malformed_argument_is_an_error_with_what_is_allowed(
    tool: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: list[str],
    words: str,
) -> None:
    options = ["--scenario=x", f"--directory={tmp_path}", f"--inventory={tmp_path}/ssh.json"]
    monkeypatch.setattr(sys, "argv", ["test-node", "up", *options, *arguments])
    with pytest.raises(SystemExit) as ended:
        tool.main()
    assert ended.value.code == 2 and words in capsys.readouterr().err.splitlines()[-1]
