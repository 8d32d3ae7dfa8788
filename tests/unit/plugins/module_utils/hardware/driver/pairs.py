# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys and certificates for the tests of signing, made when they are needed."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

SERIAL = 0x8F7A0011
"""The serial number of `pair`. The first bit of the number is set, so that DER adds a zero before it."""


@dataclass(frozen=True)
class Pair:
    """A key with its certificate."""

    key: str
    certificate: str
    der: bytes
    protected: str
    """The same key, with a passphrase."""


def make_pair(serial: int) -> Pair:
    """A new pair, whose certificate has this serial number."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Site key")])
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=36500))
        .sign(key, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8

    def pem(protection: serialization.KeySerializationEncryption) -> str:
        return key.private_bytes(serialization.Encoding.PEM, form, protection).decode()

    return Pair(
        pem(serialization.NoEncryption()),
        certificate.public_bytes(serialization.Encoding.PEM).decode(),
        certificate.public_bytes(serialization.Encoding.DER),
        pem(serialization.BestAvailableEncryption(b"secret")),
    )
