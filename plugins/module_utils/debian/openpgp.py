# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the fingerprints of OpenPGP keys, since a bare Debian has no gpg. Private to the collection; pure.

Source: RFC 9580, 4.2 (packets), 5.5.4 (fingerprints), 6.2 (armour).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Iterator

PUBLIC_KEY = 6
"""The packet of a primary key. Subkeys are packets of another kind, which the primary key signs."""

ARMOURED = re.compile(
    rb"^-----BEGIN PGP PUBLIC KEY BLOCK-----\r?\n(.*?)^-----END PGP PUBLIC KEY BLOCK-----[ \t]*\r?$", re.S | re.M
)

KEY_LIKE = re.compile(rb"-----|[\x80-\xff]")
"""Bytes of armour, or of the packets of a keyring, that plain words do not have."""

PREFIX = {4: (b"\x99", 2), 6: (b"\x9b", 4)}
"""The start of the hashed data, by the key's version: a byte, and in how many bytes the key's length follows."""


class NoKey(ValueError):
    """The data has no OpenPGP keys that can be read; the text says why."""


def fingerprints(data: bytes) -> list[str]:
    """The fingerprints of all primary keys in a keyring, armoured or not, in upper case. Raises NoKey.

    Outside of armoured blocks, only plain words are allowed, because apt also reads keys that ARMOURED does not find.
    """
    armoured = ARMOURED.findall(data)
    if armoured and KEY_LIKE.search(ARMOURED.sub(b"", data)):
        what = "it has a broken block, a key that is not armoured, or a dashed line"
        raise NoKey(f"outside of whole armoured blocks, {what}")
    blocks = [_plain(block) for block in armoured] or [data]
    found = [_fingerprint(body) for block in blocks for tag, body in _packets(block) if tag == PUBLIC_KEY]
    if not found:
        raise NoKey("it has no public key of OpenPGP")
    return list(dict.fromkeys(found))


def refusal(data: bytes, allowed: Iterable[str]) -> str:
    """Why a keyring is refused: it cannot be read, or a primary key is not `allowed`. Empty if it is accepted.

    Digits of both cases and blanks are accepted in `allowed`. Without `allowed`, every keyring is accepted.
    """
    known = [re.sub(r"\s", "", each).upper() for each in allowed]
    if not known:
        return ""
    try:
        others = [each for each in fingerprints(data) if each not in known]
    except NoKey as error:
        return f"cannot be compared with the fingerprints: {error}"
    if not others:
        return ""
    return (
        f"has the fingerprint {', '.join(others)}, but fingerprints allows {', '.join(known)}. Compare both with what"
        " the vendor publishes: an attacker may have replaced the key"
    )


def _plain(block: bytes) -> bytes:
    """The bytes of an armoured block: without its headers, which end with a blank line, and its checksum.

    Raises NoKey, also for a header without a colon: another reader may take it for a part of the key.
    """
    lines = [line.strip() for line in block.splitlines()]
    if b"" in lines:
        end = lines.index(b"")
        headers, lines = lines[:end], lines[end + 1 :]
        if not all(b": " in header or header.endswith(b":") for header in headers):
            raise NoKey("its armour is damaged: a header has no colon")
    try:
        return base64.b64decode(b"".join(line for line in lines if not line.startswith(b"=")), validate=True)
    except binascii.Error as error:
        raise NoKey(f"its armour is damaged: {error}") from error


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The tag and the body of each packet. Raises NoKey."""
    at = 0
    while at < len(data):
        if not data[at] & 0x80:
            raise NoKey("it is neither a keyring of OpenPGP nor armoured text")
        try:
            tag, start, length = _header(data, at)
        except IndexError as error:
            raise NoKey("it breaks off") from error
        if start + length > len(data):
            raise NoKey("it breaks off")
        yield tag, data[start : start + length]
        at = start + length


def _header(data: bytes, at: int) -> tuple[int, int, int]:
    """The tag of the packet at a place, the place of its body, and the body's length. Raises IndexError, NoKey."""
    first = data[at]
    if first & 0x40:
        one = data[at + 1]
        if one < 192:
            return first & 0x3F, at + 2, one
        if one < 224:
            return first & 0x3F, at + 3, ((one - 192) << 8) + data[at + 2] + 192
        if one < 255:
            raise NoKey("it has a packet in parts, which no key has")
        return first & 0x3F, at + 6, int.from_bytes(data[at + 2 : at + 6], "big")
    kind = first & 0x03
    if kind == 3:
        raise NoKey("it has a packet without a length, which no key has")
    size = 1 << kind
    return (first & 0x3C) >> 2, at + 1 + size, int.from_bytes(data[at + 1 : at + 1 + size], "big")


def _fingerprint(body: bytes) -> str:
    version = body[0] if body else 0
    if version not in PREFIX:
        raise NoKey(f"it has a key of version {version}; only versions 4 and 6 can be read")
    prefix, size = PREFIX[version]
    whole = prefix + len(body).to_bytes(size, "big") + body
    # Version 4 has SHA-1 by definition.
    digest = hashlib.sha1(whole, usedforsecurity=False) if version == 4 else hashlib.sha256(whole)
    return digest.hexdigest().upper()
