# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parses public SSH keys, without printing texts that are not public keys. Private to the collection."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import struct
from dataclasses import dataclass

TYPES = (
    "ssh-ed25519",
    "sk-ssh-ed25519@openssh.com",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ecdsa-sha2-nistp256@openssh.com",
    "ssh-rsa",
)
"""Key types that OpenSSH 9.2 and 10.0 accept. Source: PubkeyAcceptedAlgorithms in sshd_config(5)"""

RSA_BITS = 2048
"""The least length of an RSA key, in bits. Source: NIST SP 800-131A"""

PRIVATE = re.compile(r"PRIVATE KEY|b3BlbnNzaC1rZXkt|PuTTY-User-Key|AGE-SECRET-KEY")
"""Texts in private keys. The second is the beginning of OpenSSH's own format in base64."""

EXAMPLE = b"example key: replace it by yours"
"""The key of the example inventory."""

TOKEN = re.compile(r'(?:[^\s"]|"(?:\\"|[^"])*")+')
"""A word of a line. Options may contain blanks in quotes. Source: sshd(8), AUTHORIZED_KEYS FILE FORMAT"""


class KeyProblem(Exception):
    """A text is not a usable public key. The message never contains any part of the text."""


@dataclass(frozen=True)
class PublicKey:
    """A key of authorized_keys."""

    kind: str
    fingerprint: str
    comment: str

    def __str__(self) -> str:
        return f"{self.kind} {self.fingerprint} {self.comment}".strip()


def parse(text: str) -> PublicKey:
    """Parse a line, which may begin with options. Raises KeyProblem."""
    if PRIVATE.search(text):
        raise KeyProblem(
            "is a PRIVATE key (not shown). Remove it from the inventory and from its history, treat it as disclosed,"
            " make a new pair, and declare the content of the .pub file"
        )
    line = text.strip()
    if len(line.splitlines()) != 1 or line.startswith("#"):
        raise KeyProblem("must be one line, in the form of a .pub file (not shown)")
    words = TOKEN.findall(line)
    # Options are a single word and come first.
    if len(words) > 1 and words[0] not in TYPES:
        words = words[1:]
    if len(words) < 2 or words[0] not in TYPES:
        raise KeyProblem(
            f"is not a public key (not shown): it must be TYPE BASE64 COMMENT with a TYPE of {', '.join(TYPES)}"
        )
    try:
        blob = base64.b64decode(words[1], validate=True)
        parts = _parts(blob)
    except (binascii.Error, struct.error, ValueError) as error:
        raise KeyProblem("is damaged (not shown): its BASE64 part is cut off or changed. Copy the .pub file") from error
    if not parts or parts[0] != words[0].encode():
        raise KeyProblem("is damaged (not shown): its BASE64 part has another type. Copy the .pub file again")
    if words[0] == "ssh-rsa":
        bits = int.from_bytes(parts[2], "big").bit_length() if len(parts) == 3 else 0
        if bits < RSA_BITS:
            raise KeyProblem(f"is an RSA key of {bits} bits: use Ed25519, or at least {RSA_BITS} bits")
    if EXAMPLE in parts:
        raise KeyProblem("is the key of the example inventory, with which no person can log in: declare your own")
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
    return PublicKey(words[0], f"SHA256:{digest}", " ".join(words[2:]))


def described(text: str) -> list[str]:
    """The keys of a file as texts with fingerprints. Lines that are not keys are listed without their text."""
    found = []
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            found.append(str(parse(line)))
        except KeyProblem:
            found.append("(a line that is not a usable public key)")
    return found


def _parts(blob: bytes) -> list[bytes]:
    """Split a key into its fields. Each field has its length before it. Raises ValueError and struct.error."""
    parts = []
    while blob:
        (length,) = struct.unpack_from(">I", blob)
        part, blob = blob[4 : 4 + length], blob[4 + length :]
        if len(part) != length:
            raise ValueError("cut off")
        parts.append(part)
    return parts
