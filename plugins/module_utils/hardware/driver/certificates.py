# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the key for the signature of modules, and its certificate. Private to the collection."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

SEQUENCE, INTEGER, VERSION = 0x30, 0x02, 0xA0
"""Tags of the parts of a certificate. Source: X.690, and Certificate of RFC 5280, section 4.1."""

PEM = "-----BEGIN CERTIFICATE-----"


class CertificateError(Exception):
    """A key or certificate is not what it should be; the text is for the operator."""


def to_der(pem: str) -> bytes:
    """The only certificate of a text in PEM, in DER for shim and the firmware. Raises CertificateError."""
    found = pem.count(PEM)
    if found != 1:
        what = "no certificate in PEM" if found == 0 else f"{found} certificates instead of one"
        raise CertificateError(
            f"the text has {what}: give one that begins with {PEM}. openssl x509 -inform DER -in FILE converts DER"
        )
    try:
        der = ssl.PEM_cert_to_DER_cert(pem[pem.index(PEM) :].strip())
    except ValueError as error:
        raise CertificateError(f"the certificate in PEM is damaged: {error}") from error
    serial(der)
    return der


def serial(der: bytes) -> str:
    """The serial number of a certificate in DER, as pairs of hexadecimal digits without colons.

    A module's signature names its key by this number. Raises CertificateError if the data is not a certificate.
    """
    try:
        fields = _content(_content(der, SEQUENCE)[0], SEQUENCE)[0]
        if fields[0] == VERSION:
            fields = _content(fields, VERSION)[1]
        number = _content(fields, INTEGER)[0]
        # Without the leading zero byte that DER adds if the first bit is set.
        return (number[1:] if number[0] == 0 and len(number) > 1 else number).hex().upper()
    except IndexError as error:
        raise CertificateError("the data is not a certificate in DER: give a certificate in PEM") from error


def check_pair(key: str, certificate: str) -> None:
    """Check that a key without a passphrase and its only certificate, both in PEM, match. Raises CertificateError."""

    def refuse() -> str:
        raise CertificateError("the key has a passphrase, which DKMS cannot enter when it signs: remove the passphrase")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # Accept keys of every length: the firmware checks the length.
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    try:
        # First the certificate alone: load_cert_chain reports a damaged certificate and a damaged key alike.
        context.load_verify_locations(cadata=to_der(certificate))
    except ssl.SSLError as error:
        raise CertificateError(f"the certificate is damaged: {error}") from error
    with tempfile.TemporaryDirectory(prefix="inference-") as directory:
        # No other user can read the directory.
        paths = Path(directory, "key"), Path(directory, "certificate")
        for path, text in zip(paths, (key, certificate), strict=True):
            path.write_text(text, encoding="utf-8")
        try:
            context.load_cert_chain(certfile=paths[1], keyfile=paths[0], password=refuse)
        except ssl.SSLError as error:
            if "KEY_VALUES_MISMATCH" in str(error) or "KEY_TYPE_MISMATCH" in str(error):
                raise CertificateError(
                    "the certificate does not match the key: give the certificate of this key"
                ) from error
            # An error of OpenSSL names X509 only if the certificate is damaged.
            damaged = "the certificate is damaged" if "X509" in str(error) else "the key is damaged, or not in PEM"
            raise CertificateError(f"{damaged}: {error}") from error


def _content(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """The content of the first value, and the data after it. Raises IndexError for another tag or cut data."""
    if data[0] != tag:
        raise IndexError(tag)
    length, start = data[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[2:start], "big")
    end = start + length
    if end > len(data):
        raise IndexError(end)
    return data[start:end], data[end:]
