# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fingerprints of keys, compared with those of gpg where it is installed."""

from __future__ import annotations

import base64
import hashlib
import itertools
import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian.openpgp import NoKey, fingerprints, refusal

KEYRINGS = sorted(Path("/usr/share/keyrings").glob("debian-archive-*.gpg"))

BODY = bytes([4, 0, 0, 0, 1, 22]) + bytes(range(40))

V6 = bytes([6, 0, 0, 0, 1, 27]) + bytes(range(40))


def old(tag: int, body: bytes, size: int = 1) -> bytes:
    """A packet with a header of the old form. `size` is the number of bytes of its length field."""
    return bytes([0x80 | tag << 2 | {1: 0, 2: 1, 4: 2}[size]]) + len(body).to_bytes(size, "big") + body


def new(tag: int, body: bytes) -> bytes:
    length = len(body)
    if length < 192:
        shown = bytes([length])
    elif length < 8384:
        shown = bytes([((length - 192) >> 8) + 192, (length - 192) & 0xFF])
    else:
        shown = b"\xff" + length.to_bytes(4, "big")
    return bytes([0xC0 | tag]) + shown + body


def armoured(data: bytes, headers: str = "") -> bytes:
    text = base64.encodebytes(data).decode()
    return (
        f"-----BEGIN PGP PUBLIC KEY BLOCK-----\n{headers}\n{text}=AbCd\n-----END PGP PUBLIC KEY BLOCK-----\n".encode()
    )


def sha1(body: bytes) -> str:
    return hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body).hexdigest().upper()


KEY = sha1(BODY)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_key_with_a_header_of_the_old_form_is_found(size: int) -> None:
    """User ids, signatures and subkeys are no primary keys."""
    data = old(6, BODY, size) + old(13, b"NVIDIA <nobody@example.com>") + old(2, bytes(300), 2) + old(14, V6)
    assert fingerprints(data) == [KEY]


@pytest.mark.parametrize("length", [10, 191, 192, 1000, 8383, 8384, 70000])
def test_a_key_between_packets_of_each_length_is_found(length: int) -> None:
    assert fingerprints(new(13, bytes(length)) + new(6, BODY) + new(2, bytes(length))) == [KEY]


def test_a_key_of_version_6_has_a_sha256_fingerprint() -> None:
    assert fingerprints(new(6, V6)) == [hashlib.sha256(b"\x9b" + len(V6).to_bytes(4, "big") + V6).hexdigest().upper()]


def test_keys_in_armour_with_headers_or_windows_line_ends_are_found() -> None:
    other = BODY + b"x"
    first, second = armoured(old(6, BODY), "Version: GnuPG v1\nComment: a key\n"), armoured(new(6, other))
    assert fingerprints(b"words\n" + first + second) == [KEY, sha1(other)]
    assert fingerprints(first.replace(b"\n", b"\r\n")) == [KEY]
    assert fingerprints(first + first) == [KEY]
    assert fingerprints(first + b"words\n" + first.rstrip()) == [KEY]


GOOD = armoured(old(6, BODY))
FOREIGN = armoured(old(6, BODY + b"foreign"))
BEGIN, END = b"-----BEGIN PGP PUBLIC KEY BLOCK-----", b"-----END PGP PUBLIC KEY BLOCK-----"


def body(block: bytes) -> bytes:
    """The lines of an armoured block behind the blank line, without the checksum and the last line."""
    return block.partition(b"\n\n")[2].partition(b"\n=")[0]


HEADER = body(GOOD).replace(b"\n", b"")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no public key"),
        (b"<html>moved</html>", "neither a keyring"),
        (old(13, b"name"), "no public key"),
        (old(6, BODY)[:-1], "breaks off"),
        (b"\x99\x00", "breaks off"),
        (b"\xc6", "breaks off"),
        (old(6, b"\x03" + BODY), "version 3"),
        (old(6, b""), "version 0"),
        (bytes([0x80 | 6 << 2 | 3]) + BODY, "without a length"),
        (b"\xc6\xe1" + BODY, "in parts"),
        (armoured(old(6, BODY)).replace(b"\n=AbCd", b"!\n=AbCd"), "armour is damaged"),
        # From these, apt would read more keys than the whole blocks have.
        (FOREIGN.replace(BEGIN, BEGIN + b" ") + GOOD, "outside of whole armoured blocks"),
        (GOOD + FOREIGN.replace(END, b" " + END), "outside of whole armoured blocks"),
        (GOOD + FOREIGN[: -len(END) - 1], "outside of whole armoured blocks"),
        (old(6, BODY + b"foreign") + old(13, b"\n" + GOOD), "outside of whole armoured blocks"),
        (GOOD + old(6, BODY + b"foreign"), "outside of whole armoured blocks"),
        (BEGIN + b"\n" + HEADER + END + b"\n\n" + body(FOREIGN) + b"\n" + END + b"\n", "a header has no colon"),
        (BEGIN + b"\n" + body(FOREIGN) + b"\n\n" + body(GOOD) + b"\n" + END + b"\n", "a header has no colon"),
        (BEGIN + b"\n\n" + HEADER + END + b"\n" + body(FOREIGN) + b"\n" + END + b"\n", "armour is damaged"),
    ],
)
def test_data_without_readable_keys_is_an_error(data: bytes, words: str) -> None:
    with pytest.raises(NoKey, match=words):
        fingerprints(data)


@pytest.mark.skipif(not KEYRINGS or not shutil.which("gpg"), reason="no keyrings of Debian, or no gpg")
def test_the_fingerprints_of_debians_keyrings_are_those_that_gpg_shows(tmp_path: Path) -> None:
    for path in KEYRINGS:
        command = ["gpg", "--homedir", str(tmp_path), "--with-colons", "--show-keys", str(path)]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        kinds = [line.split(":") for line in lines if line.startswith(("pub:", "fpr:"))]
        # The line `fpr` directly after a line `pub` is the key's. Later lines `fpr` are of subkeys.
        shown = [after[9] for before, after in itertools.pairwise(kinds) if before[0] == "pub"]
        assert sorted(fingerprints(path.read_bytes())) == sorted(shown)


def test_a_keyring_is_refused_for_any_key_that_is_not_allowed() -> None:
    both, other = old(6, BODY) + old(6, V6), fingerprints(old(6, V6))[0]
    assert refusal(both, []) == refusal(b"", []) == refusal(both, [KEY.lower(), f" {other[:30]} {other[30:]}"]) == ""
    assert refusal(both, [KEY]).startswith(f"has the fingerprint {other}, but fingerprints allows {KEY}. ")
    assert refusal(b"", [KEY]).startswith("cannot be compared with the fingerprints: it has no public key")
