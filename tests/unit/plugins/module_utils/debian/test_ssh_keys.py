# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Public keys: parsed, or refused without any part of their text."""

from __future__ import annotations

import base64
import hashlib
import struct

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import ssh_keys
from ansible_collections.baremetal.inference.plugins.module_utils.debian.ssh_keys import KeyProblem


def key(kind: str, *fields: bytes) -> str:
    """The two words of a key, as OpenSSH writes them."""
    blob = b"".join(struct.pack(">I", len(field)) + field for field in (kind.encode(), *fields))
    return f"{kind} {base64.b64encode(blob).decode()}"


ED25519 = key("ssh-ed25519", b"x" * 32)


def rsa(bits: int) -> str:
    return key("ssh-rsa", b"\1\0\1", (1 << bits - 1).to_bytes(bits // 8 + 1, "big"))


def test_a_key_with_options_and_a_comment_is_parsed() -> None:
    found = ssh_keys.parse(f'from="192.0.2.0/24",command="echo \\"a b\\"" {ED25519} ops@example.com of 2026')
    digest = hashlib.sha256(base64.b64decode(ED25519.split()[1])).digest()
    expected = base64.b64encode(digest).decode().rstrip("=")
    assert str(found) == f"ssh-ed25519 SHA256:{expected} ops@example.com of 2026"
    assert str(ssh_keys.parse(ED25519)) == f"ssh-ed25519 SHA256:{expected}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nSECRET", "is a PRIVATE key"),
        ("b3BlbnNzaC1rZXktSECRET", "is a PRIVATE key"),
        (f"{ED25519}\n{ED25519} SECRET", "must be one line"),
        ("# SECRET", "must be one line"),
        ("ssh-dss AAAASECRET", "is not a public key"),
        ("SECRET", "is not a public key"),
        ("ssh-ed25519 SECRET!", "is damaged"),
        (ED25519[:-8] + " SECRET", "cut off or changed"),
        (ED25519.replace("ssh-ed25519", "ssh-rsa") + " SECRET", "has another type"),
        ("ssh-ed25519 ==== SECRET", "is damaged"),
    ],
)
def test_a_refused_text_is_never_shown(text: str, words: str) -> None:
    with pytest.raises(KeyProblem, match=words) as refusal:
        ssh_keys.parse(text)
    assert "SECRET" not in str(refusal.value)


def test_a_short_rsa_key_is_refused() -> None:
    assert ssh_keys.parse(rsa(2048)).kind == "ssh-rsa"
    with pytest.raises(KeyProblem, match="is an RSA key of 1024 bits"):
        ssh_keys.parse(rsa(1024))


def test_a_file_is_described_by_fingerprints() -> None:
    text = f"# mine\n\n{ED25519} ops\nnonsense SECRET\n"
    assert ssh_keys.described(text) == [
        str(ssh_keys.parse(f"{ED25519} ops")),
        "(a line that is not a usable public key)",
    ]
