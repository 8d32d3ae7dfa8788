# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lost node is restored on a blank machine with another address."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import time
from typing import Any

import pytest
from fleet import ROLLBACK, Fleet, unharmed
from node import EPHEMERAL, PROJECT, Node, changes, playbook
from saved import Saved

BACKUP = "baremetal.inference.backup"

# Our own table: Docker's table for its name server has other ports in every container.
FIREWALL = "nft --stateless list table inet inference"

RELEASED = re.compile(r"/var/lib/inference/releases/.*/(release\.json|vllm@main\.service)|/etc/systemd/.*")
"""Files of releases that have the address at which the engine listens."""

KNOWN_GOOD = "/var/lib/inference/known-good/main.json"


def whole(address: str) -> re.Pattern[str]:
    """A pattern that finds an address, but no other address that begins or ends like it."""
    return re.compile(rf"(?<![\w.]){re.escape(address)}(?![\w.])")


def state(node: Node) -> dict[str, str]:
    """The files at SAVED (saved.py) by path, without the node's address and what follows from the address.

    The address and the id of each release are left out. The known-good checksums are left out, too: the function checks
    that they are those of the files.
    """
    contents, own = Saved(node).contents(), whole(node.address)
    checksums = json.loads(contents[KNOWN_GOOD])["files"]
    wrong = [path for path, text in checksums.items() if hashlib.sha256(contents[path].encode()).hexdigest() != text]
    assert wrong == [], "the doctor would report them"
    found = dict(contents)
    for path, text in contents.items():
        if RELEASED.fullmatch(path):
            assert own.search(text), f"{path} has no address"
            found[path] = re.sub(r'"id": "[0-9a-f]{64}"', '"id": ""', own.sub("ADDRESS", text))
    for text in checksums.values():
        found[KNOWN_GOOD] = found[KNOWN_GOOD].replace(text, "CHECKSUM")
    return {**found, "listing": Saved(node).listing()}


def replace_by_blank(node: Node) -> None:
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
    was: dict[str, Any] = {"address": node.address, "state": state(node)}
    was |= {"firewall": node.run(FIREWALL), "serving": fleet.serving()[node.name]}
    fleet.wait_up()
    # Drain first: another test covers lost requests.
    node.run("inferctl drain main --owner test --reason 'it burns'")
    replace_by_blank(node)
    assert node.address != was["address"]
    return was


def test_a_blank_machine_becomes_the_lost_node(fleet: Fleet, lost: dict[str, Any], repository: dict[str, Any]) -> None:
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
    assert state(node) == lost["state"]
    left = whole(lost["address"])
    assert [path for path, text in blank.contents().items() if left.search(text)] == []
    for number in (1, 2):
        assert f"main, release {number}: {node.address} in place of {lost['address']}" in said[0]
    assert node.run(FIREWALL) == lost["firewall"]
    assert fleet.serving()[node.name] == lost["serving"]
    # The gateway still has the address of the lost machine.
    fleet.gateway.site()
    fleet.wait_up()


def test_a_second_restore_and_site_change_nothing(
    fleet: Fleet, lost: dict[str, Any], repository: dict[str, Any]
) -> None:
    node = fleet.nodes[0]
    pid = node.engine_pid()
    assert changes(Saved(node).restore(snapshot="latest", **repository)) == 0
    said = node.site(**repository)
    assert changes(said) == 0 and "stays with" in said
    assert node.engine_pid() == pid


def test_a_release_that_could_not_serve_is_refused_before_any_change(
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
    assert state(node) == lost["state"] and node.engine_pid() == pid


def test_a_rollback_starts_a_release_of_the_lost_machine(fleet: Fleet, lost: dict[str, Any]) -> None:
    """The release before listened at the address of the lost machine, too."""
    node = fleet.nodes[0]
    unharmed(fleet.load().during(lambda: fleet.only(node).update(name=ROLLBACK, instance="main")))
    assert node.ask(key="restore-engine-key-5b1f").startswith("I am tiny-a") and lost["serving"][0] == "tiny-b"
    fleet.wait_up()
