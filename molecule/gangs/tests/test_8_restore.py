# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A member's machine is lost. A blank machine with its name and address becomes the member by a restore.

The restore's inventory asks for another release than the gang runs: only the snapshot has the gang's release.
"""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass
from typing import Any

import pytest
from gang import NAME, TIMES, Gang, manage
from node import EPHEMERAL, Node, changes, playbook, wait_for
from saved import Saved

pytestmark = pytest.mark.full

BACKUP = "baremetal.inference.backup"

OWN = "/etc/inference /var/lib/inference/releases /var/lib/inference/known-good /etc/systemd/system/vllm@*.service"

LABEL = f"docker inspect --format '{{{{index .Config.Labels \"inference.gang\"}}}}' vllm-{NAME}"


def things(node: Node) -> str:
    """Kind, mode, link and content of a node's own files."""
    listing = node.run(f"find {OWN} -printf '%p %y %m %l\\n' | sort")
    return listing + "\n" + node.run(f"find {OWN} -type f | sort | xargs sha256sum")


@dataclass(frozen=True)
class Lost:
    """The gang before the loss."""

    repository: dict[str, Any]
    """The variables of the follower's backups, which lie on the leader."""
    digest: str
    """The gang digest of the release that runs."""
    own: dict[str, str]
    """What each node has, by name."""

    def restore(self, node: Node) -> str:
        """Run the restore, with an inventory that asks for another release than the gang runs."""
        return Saved(node).restore(snapshot="latest", gang_sequences=4, **self.repository)


@pytest.fixture(scope="module")
def lost(gang: Gang) -> Lost:
    """The follower's machine is gone; a blank one has its name and address."""
    gang.wait_serving()
    repository: dict[str, Any] = {
        "backup_repository": f"sftp:root@{gang.leader.address}:/srv/fleet",
        "backup_sftp_key": (EPHEMERAL / "id_ed25519").read_text(),
        "backup_sftp_known_hosts": (EPHEMERAL / "known_hosts").read_text().splitlines(),
        "backup_password": "gangs-password-41d7",
        "backup_delay_minutes": 0,
    }
    follower = gang.follower
    said = playbook(follower.name, name=BACKUP, run_backup=True, **repository)
    assert said.count(": snapshot ") == 1, said[-3000:]
    gang.wait_serving()
    digest = follower.run(LABEL)
    assert digest and gang.leader.run(LABEL) == digest
    known = Lost(repository, digest, {node.name: things(node) for node in gang.nodes})
    replace_by_blank(gang, follower)
    return known


def replace_by_blank(gang: Gang, node: Node) -> None:
    """Remove a node with all of its data, and start a bare one."""
    address = node.address
    # Otherwise, Ansible's open connection would be used again for the blank machine, which has the same address.
    node.run("pkill sshd || true")
    subprocess.run(["docker", "rm", "--force", "--volumes", node.container], check=True, capture_output=True)
    places = [f"--directory={EPHEMERAL}", f"--inventory={EPHEMERAL}/inventory/ssh.json"]
    # The other node keeps running.
    manage(
        *("up", f"--scenario={gang.scenario}", *places, f"--address={node.name}={address}"),
        *("deb12:bookworm", "deb13:trixie"),
    )
    assert node.address == address


def test_a_blank_machine_becomes_the_lost_member(gang: Gang, lost: Lost) -> None:
    leader, member = gang.nodes
    assert not member.run("ls /usr/local/bin/inferctl /etc/docker 2>/dev/null", check=False)
    wait_for("the leader waits", lambda: gang.status(leader)["state"] == "waiting", 60)
    began = time.monotonic()
    lost.restore(member)
    gang.wait_serving()
    TIMES.append(f"a blank machine becomes the follower, and the gang serves: {time.monotonic() - began:.0f} s")
    assert gang.answer() == "I am tiny-a."
    assert [node.run(LABEL) for node in gang.nodes] == [lost.digest] * 2
    assert {node.name: things(node) for node in gang.nodes} == lost.own
    assert {gang.doctor(node)[0] for node in gang.nodes} == {"ok"}
    gang.assert_alone("a restore")


def test_a_second_restore_changes_nothing(gang: Gang, lost: Lost) -> None:
    gang.wait_serving()
    epoch = gang.epoch()
    assert changes(lost.restore(gang.follower)) == 0
    assert gang.epoch() == epoch and gang.serves()


def test_a_restore_of_a_member_that_serves(gang: Gang, lost: Lost) -> None:
    """Its environment was altered, so its unit starts again. Its leader drains the gang for that."""
    gang.wait_serving()
    epoch, member = gang.epoch(), gang.follower
    leaves = f"{member.name} leaves: its unit is being stopped"
    before = gang.log(gang.leader).count(leaves)
    member.run(f"echo BROKEN=1 >>/etc/inference/env/{NAME}.env; rm -r /var/lib/inference/known-good")
    said = lost.restore(member)
    gang.wait_next(epoch, "a restore of a member that serves")
    assert "requests may be cut off" not in said, said[-3000:]
    assert gang.log(gang.leader).count(leaves) > before
    assert {node.name: things(node) for node in gang.nodes} == lost.own
