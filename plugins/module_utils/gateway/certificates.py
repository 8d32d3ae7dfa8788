# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads certificates and keys in PEM with the command openssl. Private to the collection."""

from __future__ import annotations

import hashlib
import re
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ..core import commands
from .forms import is_address, normal

SECONDS = 60.0
"""Seconds for one command."""

WARN_DAYS = 21
"""Days left below which a certificate ends soon. Renewals of the site's CA and of ACME happen earlier."""

BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----\n.*?-----END \1-----\n?", re.S)

CERTIFICATE_BLOCK = "CERTIFICATE"


class CertificateError(Exception):
    """A certificate or a key that cannot be read or made; the text has no secret."""


@dataclass(frozen=True)
class Certificate:
    """The first certificate of a file."""

    path: Path
    begin: datetime
    end: datetime
    names: tuple[str, ...]
    """The names and addresses of its extension subjectAltName."""
    fingerprint: str
    """SHA-1 in upper-case hexadecimal digits, as HAProxy shows it."""
    public_key: str
    """The public key in PEM."""

    def days_left(self, now: datetime) -> float:
        """Days until its end; negative afterwards."""
        return (self.end - now).total_seconds() / 86400

    def lacks(self, wanted: Iterable[str]) -> list[str]:
        """The names and addresses of `wanted` that the certificate does not cover."""
        return [name for name in wanted if not any(_covers(own, name) for own in self.names)]


def openssl(*words: str) -> str:
    """The output of openssl. Raises CertificateError."""
    outcome = commands.run(["openssl", *words], SECONDS)
    if outcome.code != 0:
        why = outcome.message or outcome.stderr.strip() or f"exit code {outcome.code}"
        raise CertificateError(f"openssl {words[0]}: {why}")
    return outcome.stdout


def read(path: Path) -> Certificate:
    """Read the first certificate of a file. Raises CertificateError, OSError."""
    known = fingerprint(path)
    try:
        shown = openssl("x509", "-noout", "-dates", "-pubkey", "-ext", "subjectAltName", "-in", str(path))
        begin, end = date(shown, "notBefore"), date(shown, "notAfter")
    except CertificateError as error:
        raise CertificateError(f"{path} is no certificate in PEM ({error})") from error
    return Certificate(path, begin, end, tuple(_names(shown)), known, _public_key(shown))


def fingerprint(path: Path) -> str:
    """SHA-1 of the first certificate of a file, in upper-case hexadecimal digits. Raises CertificateError, OSError."""
    text = path.read_text(encoding="utf-8", errors="replace")
    first = next((found[0] for found in BLOCK.finditer(text) if found[1] == CERTIFICATE_BLOCK), "")
    try:
        # Not for security: HAProxy shows this checksum.
        return hashlib.sha1(ssl.PEM_cert_to_DER_cert(first.strip()), usedforsecurity=False).hexdigest().upper()
    except ValueError as error:
        raise CertificateError(f"{path} is no certificate in PEM") from error


def problems(certificate: str, key: str, names: Iterable[str], now: datetime) -> list[str]:
    """All mistakes of a site's own certificate on this machine. An empty `key`: the certificate's file has the key."""
    found: list[str] = []
    known = None
    where = f"gateway_tls_certificate: {certificate!r}"
    try:
        known = read(Path(certificate))
    except OSError:
        found.append(f"{where}: there is no such file on the gateway: install the certificate, or correct the path")
    except CertificateError as error:
        found.append(f"gateway_tls_certificate: {error}: install the certificate, or correct the path")
    if known is not None:
        if known.end <= now:
            found.append(f"{where}: ended on {known.end:%Y-%m-%d}: renew the certificate")
        if known.begin > now:
            found.append(f"{where}: begins on {known.begin:%Y-%m-%d}: install one that is valid now, or set the clock")
        if lacking := known.lacks(names):
            names_there = ", ".join(known.names) or "none"
            found.append(f"{where}: lacks {', '.join(lacking)} of gateway_tls_names. Its names: {names_there}")
    if key or known is not None:
        found += _key_problems(certificate, key, known)
    return found


def _key_problems(certificate: str, key: str, known: Certificate | None) -> list[str]:
    """The mistakes of the key that belongs to a certificate."""
    where = f"gateway_tls_key: {key!r}" if key else f"gateway_tls_certificate: {certificate!r}"
    path = Path(key or certificate)
    if not path.is_file():
        return [f"{where}: there is no such file on the gateway: install the key, or correct the path"]
    text = path.read_text(encoding="utf-8", errors="replace")
    blocks = [found[1] for found in BLOCK.finditer(text) if found[1].endswith("PRIVATE KEY")]
    if not blocks:
        name = "" if key else ": append the key, or set gateway_tls_key"
        return [f"{where}: the file has no private key in PEM{name}"]
    if "ENCRYPTED" in blocks[0] or "ENCRYPTED" in text:
        return [f"{where}: the key has a passphrase, which HAProxy cannot enter: install the key without a passphrase"]
    try:
        # With an empty passphrase, openssl does not ask for one.
        public = openssl("pkey", "-pubout", "-passin", "pass:", "-in", str(path))
    except CertificateError as error:
        return [f"{where}: {error}"]
    if known is not None and public.strip() != known.public_key.strip():
        return [f"{where}: the key does not belong to the certificate {certificate}: install the pair"]
    return []


def open_to_all(path: Path) -> bool:
    """Whether users other than the owner and the group can read a file."""
    try:
        return bool(path.stat().st_mode & 0o004)
    except OSError:
        return False


def _covers(own: str, name: str) -> bool:
    """Whether a name of a certificate covers a wanted name. A star covers exactly one first label."""
    own, name = normal(own), normal(name)
    return own == name or (own.startswith("*.") and not is_address(name) and name.partition(".")[2] == own[2:])


def date(shown: str, key: str) -> datetime:
    """A date as openssl shows it: ``notAfter=Nov 20 12:00:00 2027 GMT``. Raises CertificateError."""
    found = re.search(rf"^{key}=(.*) GMT$", shown, re.M)
    if not found:
        raise CertificateError(f"has no {key}")
    return datetime.strptime(" ".join(found[1].split()), "%b %d %H:%M:%S %Y").replace(tzinfo=UTC)


def _names(shown: str) -> list[str]:
    """The names as openssl shows them: ``DNS:gateway.example.com, IP Address:192.0.2.1``."""
    return [normal(name) for name in re.findall(r"(?:DNS|IP Address):([^,\s]+)", shown)]


def _public_key(shown: str) -> str:
    found = next((block[0] for block in BLOCK.finditer(shown) if block[1] == "PUBLIC KEY"), "")
    return found.strip() + "\n"
