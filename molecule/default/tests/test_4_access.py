# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Admins and SSH: logins that work, logins that are refused, and a role that never locks the operator out."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from node import Node, changed_tasks, changes

OURS = "/etc/ssh/sshd_config.d/10-inference.conf"
PART = "access"
SSH = (
    *("ssh", "-F", "none", "-o", "BatchMode=yes", "-o", "ControlPath=none", "-o", "ConnectTimeout=5"),
    *("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"),
)


class Key:
    """A new key pair, which no node accepts yet."""

    def __init__(self, path: Path, comment: str) -> None:
        self.path = path
        if not path.exists():
            argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)]
            subprocess.run(argv, check=True)

    @property
    def public(self) -> str:
        return self.path.with_suffix(".pub").read_text().strip()

    def ssh(self, node: Node, user: str, command: str) -> tuple[bool, str]:
        """Whether a command succeeds on a node, and its output."""
        return ssh(node, user, command, "-i", str(self.path), "-o", "IdentitiesOnly=yes")


def ssh(node: Node, user: str, command: str, *options: str) -> tuple[bool, str]:
    """Run a command over a new login that asks no question. Returns whether it succeeds, and its output."""
    result = subprocess.run(
        [*SSH, *options, f"{user}@{node.address}", command], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    return result.returncode == 0, result.stdout + result.stderr


@pytest.fixture(scope="module")
def alice(tmp_path_factory: pytest.TempPathFactory) -> Key:
    return Key(tmp_path_factory.mktemp("alice") / "key", "alice@laptop")


@pytest.fixture(scope="module")
def spare(tmp_path_factory: pytest.TempPathFactory) -> Key:
    return Key(tmp_path_factory.mktemp("spare") / "key", "alice@desk")


def refused(node: Node, *options: str, **extra: Any) -> str:
    """Run the role, which must fail before any change. Returns its output as one line."""
    before = node.run(f"cat {OURS} /etc/shadow; ls /etc/sudoers.d")
    output = node.baseline(PART, *options, check=False, **extra)
    assert changes(output) == 0, output[-3000:]
    assert node.run(f"cat {OURS} /etc/shadow; ls /etc/sudoers.d") == before
    assert node.run("systemctl is-active ssh") == "active"
    return " ".join(output.replace("\\n", " ").split())


def test_the_server_takes_keys_only(node: Node) -> None:
    """sshd offers an unknown client no other method, and the settings in effect allow no weak algorithm."""
    _in, words = ssh(node, "root", "true", "-o", "PreferredAuthentications=none")
    assert "Permission denied (publickey)." in words
    values = node.run("sshd -T").splitlines()
    for line in ("passwordauthentication no", "kbdinteractiveauthentication no", "permitrootlogin without-password"):
        assert line in values
    for weak in ("ecdh-sha2-nistp256", "diffie-hellman-group14-sha256", "hmac-sha1", "-cbc"):
        assert not any(weak in line for line in values if line.startswith(("kexalgorithms", "macs", "ciphers"))), weak


def test_mistakes_are_reported_at_once_without_a_private_key(deb12: Node, alice: Key) -> None:
    private = alice.path.read_text()
    admins = [
        {"name": "nokey"},
        {"name": "pasted", "keys": [private]},
        {"name": "cut", "keys": [alice.public[:60]]},
        {"name": "Bad.Name", "keys": [alice.public]},
        {"name": "twice", "keys": [alice.public]},
        {"name": "twice", "keys": [alice.public]},
        {"name": "root", "keys": [alice.public]},
        {"name": "rule", "keys": [alice.public], "sudo": ["ALL=(ALL NOPASSWD ALL"]},
    ]
    config = {"MaxAuthTriez": 3, "PermitRootLogin": True}
    output = refused(deb12, "-vvv", common_admins=admins, common_ssh_config=config)
    for words in (
        "common_admins[0] nokey: keys: must have at least one public key",
        "common_admins[1] pasted: keys[0]: is a PRIVATE key (not shown)",
        "common_admins[2] cut: keys[0]: is damaged (not shown)",
        "common_admins[3] Bad.Name: name: must be",
        "common_admins[5] twice: name: is declared twice",
        "common_admins[6] root: name: root cannot be an admin",
        "visudo refuses it",
        "common_ssh_config: PermitRootLogin: is set by common_ssh_permit_root_login",
    ):
        assert words in output, words
    for line in private.splitlines()[1:-1]:
        assert line not in output
        assert deb12.run(f"journalctl --no-pager | grep -c -F -e {line}", check=False) == "0"


def test_a_syntax_error_is_refused_by_sshd_itself(deb13: Node) -> None:
    output = refused(deb13, common_ssh_config={"MaxAuthTriez": 3, "MaxSessionz": 3})
    assert "Bad configuration option: MaxAuthTriez" in output
    assert "Bad configuration option: MaxSessionz" in output


def test_an_overridden_value_and_a_user_who_would_be_shut_out_are_refused(deb12: Node) -> None:
    """Another file overrides a value, and the user of this connection is root."""
    stranger = "/etc/ssh/sshd_config.d/05-site.conf"
    deb12.run(f"printf '# theirs\\nPasswordAuthentication yes\\n' > {stranger}")
    try:
        output = refused(deb12, common_ssh_permit_root_login="no")
    finally:
        deb12.run(f"rm {stranger}")
    assert f"passwordauthentication: would be yes instead of no, because {stranger} line 2 sets it" in output
    assert "root: the user of the current connection would be shut out, because PermitRootLogin is no" in output


@pytest.mark.full
def test_a_setting_that_prevents_new_logins_is_undone(deb13: Node) -> None:
    """sshd accepts the setting, but no admin with only one key could log in again."""
    before = deb13.run(f"cat {OURS}")
    config = {"AuthenticationMethods": "publickey,publickey"}
    output = deb13.baseline(PART, check=False, common_ssh_config=config, __common_access_seconds=20)
    assert "the old state is back" in output
    assert deb13.run(f"cat {OURS}") == before
    assert changes(deb13.baseline(PART)) == 0


@pytest.mark.full
def test_passwords_stay_allowed_until_a_login_with_a_key_succeeds(deb12: Node) -> None:
    """On a freshly installed node, root logs in by a password, and would be locked out."""
    deb12.run(
        f"echo root:molecule | chpasswd; rm {OURS}; echo PermitRootLogin yes > /etc/ssh/sshd_config.d/90-test.conf"
    )
    deb12.run("systemctl reload ssh")
    try:
        # With a control socket, Ansible would use the open connection again, which has logged in by a key.
        by_password: dict[str, Any] = {"ansible_password": "molecule", "ansible_ssh_private_key_file": "/dev/null"}
        output = deb12.baseline(PART, check=False, ansible_control_path="none", **by_password)
        assert changes(output) == 0
        assert "root could not log in with a key over a new connection, and would be locked out" in " ".join(
            output.split()
        )
        assert "passwordauthentication yes" in deb12.run("sshd -T")
        assert deb12.run(f"ls {OURS}", check=False) == ""
    finally:
        deb12.run("passwd --lock root; rm /etc/ssh/sshd_config.d/90-test.conf")
        deb12.baseline(PART)
    test_the_server_takes_keys_only(deb12)


def test_an_admin_is_created_loses_a_key_and_is_removed(deb13: Node, alice: Key, spare: Key, tmp_path: Path) -> None:
    admin = {"name": "alice", "keys": [alice.public, spare.public], "groups": ["adm"]}
    deb13.run("usermod --shell /bin/sh inference")
    predicted, _output = changed_tasks(deb13, tmp_path, "--check", part=PART, common_admins=[admin])
    assert deb13.run("id alice", check=False) == ""
    done, _output = changed_tasks(deb13, tmp_path, part=PART, common_admins=[admin])
    assert done == predicted
    assert deb13.run("getent passwd inference").endswith(":/usr/sbin/nologin")
    for key in (alice, spare):
        works, output = key.ssh(deb13, "alice", "sudo -n id -u")
        assert works and output.splitlines()[-1] == "0"
    assert deb13.run("stat -c %a /etc/sudoers.d/inference-alice") == "440"
    assert "adm" in deb13.run("id -nG alice").split()

    # The next run removes one of the keys.
    deb13.baseline(PART, common_admins=[{**admin, "keys": [spare.public]}])
    assert not alice.ssh(deb13, "alice", "true")[0]
    assert spare.ssh(deb13, "alice", "true")[0]

    session = subprocess.Popen(
        [*SSH, "-i", str(spare.path), f"alice@{deb13.address}", "sleep 300"],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deb13.baseline(PART, common_admins=[{"name": "alice", "state": "absent"}])
        assert session.wait(30) != 0
    finally:
        session.kill()
    assert not spare.ssh(deb13, "alice", "true")[0]
    assert deb13.run("id alice; ls /etc/sudoers.d/inference-alice", check=False) == ""


@pytest.mark.full
def test_mistakes_in_the_login_of_the_run_itself_are_undone(deb13: Node, alice: Key, spare: Key) -> None:
    """The connection of the run uses the admin's own key and shell: the role undoes mistakes in both."""
    admin = {"name": "alice", "keys": [alice.public, spare.public]}
    deb13.baseline(PART, common_admins=[admin])
    assert changes(deb13.baseline(PART, common_admins=[admin])) == 0
    as_alice: dict[str, Any] = {
        "ansible_user": "alice",
        "ansible_ssh_private_key_file": str(alice.path),
        "__common_access_seconds": 20,
    }
    wrong = {**admin, "keys": [spare.public], "shell": "/usr/sbin/nologin"}
    try:
        output = deb13.baseline(PART, check=False, common_admins=[wrong], **as_alice)
        assert "the old state is back" in output
        assert alice.ssh(deb13, "alice", "true")[0]
        assert deb13.run("getent passwd alice").endswith(":/bin/bash")
    finally:
        deb13.baseline(PART, common_admins=[{"name": "alice", "state": "absent"}])
