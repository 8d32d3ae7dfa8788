# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A member's machine is lost. A blank machine with its name and address becomes the member by a restore.

The inventory asks for another release than the gang runs. The other member has staged the inventory's release, too.
The release that the gang runs is in the snapshot and on the other member alone.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from gang import NAME, TIMES, Gang, manage
from node import EPHEMERAL, Node, changes, playbook, wait_for
from saved import Saved

pytestmark = pytest.mark.full

BACKUP = "baremetal.inference.backup"

ASKED: dict[str, Any] = {"gang_sequences": 4}
"""The variables with which the inventory asks for another release."""

REFUSED = "has the gang digest"
"""Words of the line that a supervisor logs for each refusal of a member with another release than the leader."""

OWN = "/etc/inference /var/lib/inference/releases /var/lib/inference/known-good /etc/systemd/system/vllm@*.service"

LABEL = f"docker inspect --format '{{{{index .Config.Labels \"inference.gang\"}}}}' vllm-{NAME}"


def own_files(node: Node) -> str:
    """Kind, mode, link and content of a node's own files."""
    listing = node.run(f"find {OWN} -printf '%p %y %m %l\\n' | sort")
    return listing + "\n" + node.run(f"find {OWN} -type f | sort | xargs sha256sum")


@dataclass(frozen=True)
class Lost:
    """The gang before the loss."""

    member: Node
    """The member whose machine is lost."""
    other: Node
    repository: dict[str, Any]
    """The variables of the member's backups, which lie on the other member."""
    digest: str
    """The gang digest of the release that runs."""
    own: dict[str, str]
    """Each node's own files, by the node's name, before the loss."""
    refusals: int
    """How often the other member has logged a refusal of members with another release."""

    def restore(self) -> str:
        """Run the restore, with an inventory that asks for another release than the gang runs."""
        return Saved(self.member).restore(snapshot="latest", **ASKED, **self.repository)


@pytest.fixture(scope="module", params=["follower", "leader"])
def lost(gang: Gang, request: pytest.FixtureRequest) -> Iterator[Lost]:
    """The machine of a member is gone; a blank one has its name and address."""
    member: Node = getattr(gang, request.param)
    (other,) = (node for node in gang.nodes if node is not member)
    gang.wait_serving()
    repository: dict[str, Any] = {
        "backup_repository": f"sftp:root@{other.address}:/srv/fleet",
        "backup_sftp_key": (EPHEMERAL / "id_ed25519").read_text(),
        "backup_sftp_known_hosts": (EPHEMERAL / "known_hosts").read_text().splitlines(),
        "backup_password": "gangs-password-41d7",
        "backup_delay_minutes": 0,
    }
    said = playbook(member.name, name=BACKUP, run_backup=True, **repository)
    assert said.count(": snapshot ") == 1, said[-3000:]
    playbook(other.name, **ASKED)
    gang.wait_serving()
    digest = member.run(LABEL)
    assert digest and other.run(LABEL) == digest
    own = {node.name: own_files(node) for node in gang.nodes}
    known = Lost(member, other, repository, digest, own, gang.log(other).count(REFUSED))
    replace_by_blank(gang, member)
    yield known
    # The inventory asks for the release that runs.
    playbook("inference")


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
    member, other = lost.member, lost.other
    assert not member.run("ls /usr/local/bin/inferctl /etc/docker 2>/dev/null", check=False)
    state = "waiting" if other is gang.leader else "missing"
    wait_for("the other member waits", lambda: gang.status(other)["state"] == state, 60)
    began = time.monotonic()
    lost.restore()
    gang.wait_serving()
    role = "leader" if member is gang.leader else "follower"
    TIMES.append(f"a blank machine becomes the {role}, and the gang serves: {time.monotonic() - began:.0f} s")
    assert gang.answer() == "I am tiny-a."
    assert [node.run(LABEL) for node in gang.nodes] == [lost.digest] * 2
    assert {node.name: own_files(node) for node in gang.nodes} == lost.own
    assert {gang.doctor(node)[0] for node in gang.nodes} == {"ok"}
    # No supervisor saw the inventory's release. A follower would have moved to that release.
    assert (gang.log(member).count(REFUSED), gang.log(other).count(REFUSED)) == (0, lost.refusals)
    gang.assert_alone("a restore")


def test_a_second_restore_changes_nothing(gang: Gang, lost: Lost) -> None:
    gang.wait_serving()
    epoch = gang.epoch()
    assert changes(lost.restore()) == 0
    assert gang.epoch() == epoch and gang.serves()


def test_a_restore_of_a_serving_member_drains_the_gang(gang: Gang, lost: Lost) -> None:
    """The environment of the member was altered, so its unit starts again. The leader drains the gang before."""
    gang.wait_serving()
    epoch, member = gang.epoch(), lost.member
    stops = "stops the instance" if member is gang.leader else "leaves: its unit is being stopped"
    before = gang.log(gang.leader).count(f"{member.name} {stops}")
    member.run(f"echo BROKEN=1 >>/etc/inference/env/{NAME}.env; rm -r /var/lib/inference/known-good")
    said = lost.restore()
    gang.wait_next(epoch, "a restore of a member that serves")
    assert "requests may be cut off" not in said, said[-3000:]
    assert gang.log(gang.leader).count(f"{member.name} {stops}") > before
    assert {node.name: own_files(node) for node in gang.nodes} == lost.own
