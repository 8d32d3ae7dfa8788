# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Admins and their keys: every mistake is found, and no message has a text that is not a public key."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import accounts, ssh_keys


def key(kind: str = "ssh-ed25519", *parts: bytes) -> str:
    """A public key in the form of a .pub file."""
    fields = (kind.encode(), *(parts or (bytes(32),)))
    blob = b"".join(struct.pack(">I", len(field)) + field for field in fields)
    return f"{kind} {base64.b64encode(blob).decode()} alice@laptop"


GOOD = key()
PRIVATE = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU\n-----END OPENSSH PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD.removesuffix(" alice@laptop"),
        f"  {GOOD}\n",
        f'from="192.0.2.0/24, 198.51.100.1",command="echo \\"ssh-rsa\\" x" {GOOD}',
        key("ssh-rsa", b"\x01\x00\x01", b"\x00\x80" + bytes(255)),
    ],
)
def test_a_public_key_is_parsed(text: str) -> None:
    assert ssh_keys.parse(text).fingerprint.startswith("SHA256:")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (PRIVATE, "PRIVATE"),
        ("b3BlbnNzaC1rZXktdjEAAAAABG5vbmU", "PRIVATE"),
        ("PuTTY-User-Key-File-3: ssh-ed25519", "PRIVATE"),
        (f"{GOOD}\n{GOOD}", "one line"),
        ("", "one line"),
        (f"# {GOOD}", "one line"),
        ("hunter2", "not a public key"),
        ("ssh-dss AAAAB3NzaC1kc3MAAACB", "not a public key"),
        ("secret1 secret2 ssh-ed25519", "not a public key"),
        (GOOD[:40], "damaged"),
        (GOOD.replace("ssh-ed25519", "ecdsa-sha2-nistp256", 1), "another type"),
        ("ssh-ed25519 %%%", "damaged"),
        (key("ssh-rsa", b"\x01\x00\x01", b"\x00\x80" + bytes(127)), "1024 bits"),
    ],
)
def test_a_text_that_is_not_a_public_key_is_refused_and_not_quoted(text: str, words: str) -> None:
    with pytest.raises(ssh_keys.KeyProblem, match=words) as caught:
        ssh_keys.parse(text)
    for word in text.split():
        assert len(word) < 15 or word not in str(caught.value)


def understood(*entries: dict[str, Any]) -> tuple[list[accounts.Admin], str]:
    users = {"root": 0, "daemon": 1, "inference": 999, "me": 1000}
    groups = {"sudo": 27, "carol": 1005}
    found, problems = accounts.understand(entries, users, groups, "inference", "me")
    return found, "\n".join(map(str, problems))


def test_an_admin_with_only_a_key_gets_the_default_sudo_rule() -> None:
    (admin,), problems = understood({"name": "alice", "keys": [GOOD, f"{GOOD}\n"], "state": "present"})
    assert problems == ""
    assert admin.keys_text.splitlines()[1:] == [GOOD]
    assert admin.sudo_text.splitlines()[1:] == ["alice ALL=(ALL:ALL) NOPASSWD: ALL"]
    assert admin.groups is None and admin.shell is None


def test_without_sudo_rules_the_file_is_empty() -> None:
    (admin,), problems = understood({"name": "alice", "keys": [GOOD], "sudo": [], "groups": []})
    assert (problems, admin.sudo_text, admin.groups) == ("", "", ())


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"keys": []}, "keys: must have at least one public key"),
        ({"keys": [GOOD, PRIVATE]}, "keys[1]: is a PRIVATE key"),
        ({"name": "Alice"}, "name: must be"),
        ({"name": "a.b"}, "name: must be"),
        ({"name": "root"}, "common_ssh_permit_root_login"),
        ({"name": "root", "state": "absent"}, "common_ssh_permit_root_login"),
        ({"name": "daemon"}, "system user (number 1)"),
        ({"name": "sudo"}, "system group (number 27)"),
        ({"name": "inference"}, "common_user"),
        ({"name": "me", "state": "absent"}, "is the user of this connection"),
        ({"sudo": ["ALL=(ALL) ALL\nbob ALL=(ALL) ALL"]}, "sudo: "),
        ({"sudo": [""]}, "sudo: "),
        ({"groups": ["a b"]}, "groups: 'a b': must be the name of a group"),
    ],
)
def test_each_mistake_of_an_admin_is_found(entry: dict[str, Any], words: str) -> None:
    assert words in understood({"name": "alice", "keys": [GOOD], **entry})[1]


def test_all_mistakes_are_found_at_once() -> None:
    _found, problems = understood({"name": "alice", "keys": []}, {"name": "alice", "keys": [GOOD]}, {"name": "X"})
    for words in ("[0] alice: keys: must have", "[1] alice: name: is declared twice", "[2] X: name: must be"):
        assert f"common_admins{words}" in problems


def test_an_absent_admin_needs_no_key() -> None:
    assert understood({"name": "bob", "state": "absent"}, {"name": "carol", "keys": [GOOD]})[1] == ""
