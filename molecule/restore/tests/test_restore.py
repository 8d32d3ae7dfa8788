# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lost node is restored on a blank machine."""

from __future__ import annotations

import subprocess
import time
from typing import Any

import pytest
from fleet import Fleet, unharmed
from node import EPHEMERAL, PROJECT, Node, changes, playbook
from saved import Saved

BACKUP = "baremetal.inference.backup"

# Our own table: Docker's table for its name server has other ports in every container.
FIREWALL = "nft --stateless list table inet inference"


def burn_down(node: Node) -> None:
    """Replace the node by a blank machine with the same name and another host key."""
    subprocess.run(["docker", "rm", "--force", "--volumes", node.container], check=True, capture_output=True)
    paths = [f"--directory={EPHEMERAL}", f"--inventory={EPHEMERAL}/inventory/ssh.json"]
    # The other node keeps running.
    nodes = ["deb12:bookworm", "deb13:trixie"]
    subprocess.run([str(PROJECT / "tests/tools/test-node"), "up", "--scenario=restore", *paths, *nodes], check=True)


@pytest.fixture(scope="session")
def lost(fleet: Fleet, repository: dict[str, Any]) -> dict[str, Any]:
    """The state of the lost node, which ran another model than the inventory asks for."""
    node = fleet.nodes[0]
    fleet.only(node).update(set={"main": "tiny-b"})
    said = playbook(fleet.limit, name=BACKUP, run_backup=True, **repository)
    assert said.count(": snapshot ") == 2, said[-3000:]
    was = {"files": Saved(node).files(), "firewall": node.run(FIREWALL), "serving": fleet.serving()[node.name]}
    fleet.wait_up()
    # Drain first: another test covers lost requests.
    node.run("inferctl drain main --owner test --reason 'it burns'")
    burn_down(node)
    return was


def test_a_blank_machine_becomes_what_the_lost_one_was(
    fleet: Fleet, lost: dict[str, Any], repository: dict[str, Any]
) -> None:
    node = fleet.nodes[0]
    blank = Saved(node)
    predicted = blank.restore("--check", "--diff", snapshot="latest", **repository)
    assert "would restore snapshot latest after" in predicted
    assert not node.run("ls /usr/local/bin/inferctl /etc/docker 2>/dev/null", check=False)

    said: list[str] = []
    began = time.monotonic()
    # The other node serves meanwhile.
    report = fleet.load().during(lambda: said.append(blank.restore(snapshot="latest", **repository)))
    print(f"restored to serving in {time.monotonic() - began:.0f} s, under load")
    unharmed(report)
    assert node.ask(key="restore-engine-key-5b1f") == "I am tiny-b."
    assert blank.files() == lost["files"]
    assert node.run(FIREWALL) == lost["firewall"]
    assert fleet.serving()[node.name] == lost["serving"]
    # The blank machine has another address.
    fleet.gateway.site()
    fleet.wait_up()


def test_nothing_further_is_changed(fleet: Fleet, lost: dict[str, Any], repository: dict[str, Any]) -> None:
    node = fleet.nodes[0]
    pid = node.engine_pid()
    assert changes(Saved(node).restore(snapshot="latest", **repository)) == 0
    said = node.site(**repository)
    assert changes(said) == 0 and "stays with" in said
    assert node.engine_pid() == pid


def test_what_could_not_serve_is_refused_before_anything_changes(
    fleet: Fleet, lost: dict[str, Any], repository: dict[str, Any]
) -> None:
    """Containers run with the user and group numbers that their release records. This node has another group number."""
    node = fleet.nodes[0]
    pid, group = node.engine_pid(), node.run("id --group inference")
    node.run("groupmod --gid 4712 inference; echo '{}' > /etc/inference/instances/main.json")
    try:
        said = Saved(node).restore(snapshot="latest", check=False, **repository)
    finally:
        node.run(f"groupmod --gid {group} inference")
    assert "Nothing was restored" in said and ":4712 on this node" in said
    assert node.run("cat /etc/inference/instances/main.json") == "{}" and node.engine_pid() == pid
    Saved(node).restore(snapshot="latest", **repository)
    assert Saved(node).files() == lost["files"] and node.engine_pid() == pid
