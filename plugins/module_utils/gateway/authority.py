# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The site's own certificate authority (CA) for its gateways. Private to the collection.

One gateway, the lead, has the root's key. Each gateway has an issuer of its own: a CA that the root has signed,
for the names of this gateway alone. With its issuer, a gateway renews its certificate by itself. No key leaves the
machine that made it. Clients trust the root.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ..core import files
from . import certificates
from .certificates import Certificate, CertificateError, openssl
from .forms import is_address
from .places import TLS

ROOT_DAYS = 3650
"""Days until the root ends. Issuers begin and end with the root."""

LEAF_DAYS = 90

RENEW_DAYS = 30
"""Days left at which a gateway renews its certificate."""

BACKDATED = timedelta(hours=1)
"""How long before its renewal a gateway's certificate begins: the clock of a client may be behind."""

ROOT_BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
"""When root and issuers begin. A fixed date: the clock may have been ahead when the machine made them."""

ROOT_EXTENSIONS = (
    "basicConstraints=critical,CA:TRUE,pathlen:1",
    "keyUsage=critical,keyCertSign,cRLSign",
    "subjectKeyIdentifier=hash",
)

ISSUER_EXTENSIONS = (
    "basicConstraints=critical,CA:TRUE,pathlen:0",
    "keyUsage=critical,keyCertSign,cRLSign",
    "extendedKeyUsage=serverAuth",
    "subjectKeyIdentifier=hash",
    "authorityKeyIdentifier=keyid:always",
)

LEAF_EXTENSIONS = (
    "basicConstraints=critical,CA:FALSE",
    "keyUsage=critical,digitalSignature",
    "extendedKeyUsage=serverAuth",
    "subjectKeyIdentifier=hash",
    "authorityKeyIdentifier=keyid:always",
)

CONFIG = """\
[ca]
default_ca = own
[own]
database = {directory}/index
new_certs_dir = {directory}
default_md = sha256
policy = any
unique_subject = no
rand_serial = yes
copy_extensions = none
[any]
commonName = supplied
[req]
distinguished_name = dn
[dn]
"""


@dataclass(frozen=True)
class Authority:
    """The files of the site's CA on one gateway."""

    directory: Path = TLS

    @property
    def root_key(self) -> Path:
        """The root's key; only on the lead."""
        return self.directory / "authority/key.pem"

    @property
    def root(self) -> Path:
        """The root's certificate; on each gateway."""
        return self.directory / "root.pem"

    @property
    def issuer_key(self) -> Path:
        return self.directory / "issuer.key"

    @property
    def issuer(self) -> Path:
        return self.directory / "issuer.pem"

    @property
    def served(self) -> Path:
        """The certificate, its chain and its key: in one file, so that no reader finds a pair that does not fit."""
        return self.directory / "served.pem"

    # --- read

    def is_lead(self) -> bool:
        return self.root_key.is_file()

    def fingerprint(self) -> str:
        """The root's fingerprint; empty if there is none."""
        try:
            return certificates.fingerprint(self.root)
        except (OSError, CertificateError):
            return ""

    def needs_issuer(self, names: Iterable[str]) -> bool:
        """Whether the root must sign an issuer: root, issuer or its key is missing, or the issuer has other names."""
        known = _known(self.issuer)
        return (
            known is None or not self.root.is_file() or set(known.names) != set(names) or not self.issuer_key.is_file()
        )

    def needs_leaf(self, names: Iterable[str], now: datetime) -> bool:
        """Whether the gateway must make its certificate: there is none, it is for other names, it ends soon, or it is
        not valid yet. A certificate that ends with its issuer does not end soon: a further one would end then, too."""
        known = _known(self.served)
        return (
            known is None
            or set(known.names) != set(names)
            or (known.days_left(now) < RENEW_DAYS and not self._ends_with_issuer(known))
            # The clock was ahead.
            or known.begin > now
        )

    def _ends_with_issuer(self, leaf: Certificate) -> bool:
        issuer = _known(self.issuer)
        return issuer is not None and leaf.end >= issuer.end

    # --- write

    def make_root(self, name: str, now: datetime) -> None:
        """Make the root, if this machine has none. Raises CertificateError, OSError."""
        if self.is_lead():
            return
        for directory in (self.directory, self.root_key.parent):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        title = f"Gateways of {name[:24]} {secrets.token_hex(4)}"
        with _scratch(self.directory) as work:
            key = _new_key(work)
            valid = (ROOT_BEGIN, now + timedelta(days=ROOT_DAYS))
            text = _signed(work, _request(work, key), title, ROOT_EXTENSIONS, key, None, valid)
            files.write(self.root, text, 0o644)
            # The last file: with it, the root is complete.
            files.write(self.root_key, key.read_text(encoding="utf-8"), 0o600)

    def request(self) -> str:
        """A request for an issuer, with a key that stays here. Raises CertificateError, OSError."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _scratch(self.directory) as work:
            if not self.issuer_key.is_file():
                files.write(self.issuer_key, _new_key(work).read_text(encoding="utf-8"), 0o600)
            return _request(work, self.issuer_key).read_text(encoding="utf-8")

    def sign(self, request: str, name: str, names: Sequence[str]) -> str:
        """Sign the request of a gateway for an issuer. Returns issuer and root in PEM. Only on the lead.
        Raises CertificateError, OSError."""
        root = certificates.read(self.root)
        with _scratch(self.directory) as work:
            asked = work / "asked.csr"
            asked.write_text(request, encoding="utf-8")
            extensions = [*ISSUER_EXTENSIONS, _alternatives(names), *_constraints(names)]
            title = f"Gateway {name[:24]} {secrets.token_hex(4)}"
            text = _signed(work, asked, title, extensions, self.root_key, self.root, (root.begin, root.end))
        return text + self.root.read_text(encoding="utf-8")

    def install(self, chain: str) -> None:
        """Install an issuer and its root, as sign() returns them. Raises OSError, CertificateError."""
        parts = [found[0] for found in certificates.BLOCK.finditer(chain)]
        if len(parts) != 2:
            raise CertificateError(f"{len(parts)} certificates came from the lead in place of an issuer and its root")
        files.write(self.root, parts[1], 0o644)
        files.write(self.issuer, parts[0], 0o644)

    def renew(self, names: Sequence[str], now: datetime) -> None:
        """Make a new key and certificate for the gateway. Raises CertificateError, OSError."""
        issuer = certificates.read(self.issuer)
        end = min(now + timedelta(days=LEAF_DAYS), issuer.end)
        with _scratch(self.directory) as work:
            key = _new_key(work)
            extensions = [*LEAF_EXTENSIONS, _alternatives(names)]
            # A name with a blank is no host name, so clients compare the alternative names alone.
            title = f"Gateway {names[0][:40]}"
            text = _signed(
                work, _request(work, key), title, extensions, self.issuer_key, self.issuer, (now - BACKDATED, end)
            )
            whole = text + self.issuer.read_text(encoding="utf-8") + key.read_text(encoding="utf-8")
        files.write(self.served, whole, 0o600)


def _known(path: Path) -> Certificate | None:
    """The certificate of a file; None if it cannot be read."""
    try:
        return certificates.read(path)
    except (OSError, CertificateError):
        return None


class _scratch:
    """A directory of mode 0700 next to the keys, removed at the end of a block."""

    def __init__(self, beside: Path) -> None:
        beside.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory = tempfile.TemporaryDirectory(prefix=".work-", dir=beside)

    def __enter__(self) -> Path:
        self._mask = os.umask(0o077)
        return Path(self._directory.name)

    def __exit__(self, *_why: object) -> None:
        os.umask(self._mask)
        self._directory.cleanup()


def _new_key(work: Path) -> Path:
    path = work / f"{secrets.token_hex(4)}.key"
    openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(path))
    return path


def _request(work: Path, key: Path) -> Path:
    path, config = work / f"{secrets.token_hex(4)}.csr", work / "config"
    config.write_text(CONFIG.format(directory=work), encoding="utf-8")
    openssl("req", "-new", "-config", str(config), "-key", str(key), "-subj", "/CN=Gateway", "-out", str(path))
    return path


def _signed(
    work: Path,
    request: Path,
    title: str,
    extensions: Sequence[str],
    key: Path,
    issuer: Path | None,
    valid: tuple[datetime, datetime],
) -> str:
    """Sign a request. Without `issuer`, the certificate is self-signed. Returns the certificate in PEM.

    Not by `openssl x509`: before version 3.4, it cannot set the begin of a certificate.
    """
    config, more, index, made = (work / name for name in ("config", "extensions", "index", "made.pem"))
    config.write_text(CONFIG.format(directory=work), encoding="utf-8")
    more.write_text("\n".join(extensions) + "\n", encoding="utf-8")
    index.write_text("", encoding="utf-8")
    signer = ["-cert", str(issuer)] if issuer else ["-selfsign"]
    begin, end = (f"{time.astimezone(UTC):%Y%m%d%H%M%SZ}" for time in valid)
    openssl(
        *("ca", "-batch", "-notext", "-config", str(config), "-extfile", str(more)),
        *(*signer, "-keyfile", str(key), "-in", str(request), "-subj", f"/CN={title}"),
        *("-startdate", begin, "-enddate", end, "-out", str(made)),
    )
    return made.read_text(encoding="utf-8")


def _kind(name: str) -> str:
    return "IP" if is_address(name) else "DNS"


def _alternatives(names: Iterable[str]) -> str:
    return "subjectAltName=" + ",".join(f"{_kind(name)}:{name}" for name in names)


def _constraints(names: Sequence[str]) -> list[str]:
    """The extension that keeps an issuer to the names of its gateway."""
    allowed = []
    for name in names:
        mask = (
            ""
            if _kind(name) == "DNS"
            else "/ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
            if ":" in name
            else "/255.255.255.255"
        )
        allowed.append(f"permitted;{_kind(name)}:{name.removeprefix('*.')}{mask}")
    # Without an entry for a kind of names, the issuer could sign any name of this kind.
    if not any(_kind(name) == "DNS" for name in names):
        allowed.append("permitted;DNS:invalid")
    if not any(_kind(name) == "IP" for name in names):
        allowed += ["excluded;IP:0.0.0.0/0.0.0.0", "excluded;IP:::/::"]
    return ["nameConstraints=critical," + ",".join(allowed)]
