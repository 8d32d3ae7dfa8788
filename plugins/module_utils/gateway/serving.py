# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificate that a gateway serves: its renewal, its way to HAProxy, its metrics. Private to the collection."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from ..core import files, systemd
from ..core.exposition import Samples
from ..core.paths import Paths
from . import acme, certificates, handing_over
from .authority import Authority
from .forms import ACME, CA, CERTIFICATE
from .places import HAPROXY, TLS_SETTINGS
from .runtime import Ask, RuntimeRefusal

SCHEMA = 1

METRICS: Mapping[str, str] = {
    "inference_gateway_certificate_end_timestamp_seconds": "When the certificate in the gateway's files ends.",
    "inference_gateway_authority_end_timestamp_seconds": "When the site's own CA ends, which clients trust.",
    "inference_gateway_certificate_served": "1 if HAProxy serves the certificate of the files.",
    "inference_gateway_certificate_timestamp_seconds": "When the certificate was last examined.",
}


@dataclass(frozen=True)
class Serving:
    """The certificate of this gateway, as the last run has set it up."""

    form: str
    """ca, certificate or acme."""
    certificate: str
    """The path of the certificate with its chain."""
    key: str = ""
    """The path of its key; empty if the file of the certificate has the key."""
    names: Sequence[str] = ()
    """The names and addresses of a certificate that the site's own CA signs."""
    authority: Authority = field(default_factory=Authority)
    metrics: Path = field(default_factory=lambda: Paths().metrics("gateway"))

    def update(self, ask: Ask, now: datetime, *, renew: bool = False) -> list[str]:
        """Renew the certificate if that is due, and hand it to HAProxy. Returns a line for each thing that was done.
        Raises CertificateError, SystemdError, OSError, ValueError."""
        done = []
        with locked(self.authority.directory):
            if renew and self.form != CA:
                raise ValueError("the site's own CA does not sign this certificate: renew it where it comes from")
            if self.form == CA and (renew or self.authority.needs_leaf(self.names, now)):
                self.authority.renew(self.names, now)
                done.append(f"renewed the certificate {self.certificate}")
            try:
                if handing_over.differs(ask, Path(self.certificate)):
                    done.append(self.deliver(ask))
            finally:
                self.publish(ask, now)
        return done

    def deliver(self, ask: Ask) -> str:
        """Hand the certificate to HAProxy; if its runtime API refuses it, by a reload. Returns what was done.
        Raises CertificateError, SystemdError, OSError."""
        try:
            handing_over.hand_over(ask, Path(self.certificate), Path(self.key) if self.key else None)
        except RuntimeRefusal as error:
            systemd.systemctl("reload", HAPROXY)
            return f"HAProxy was reloaded for the new certificate ({error})"
        return "HAProxy serves the new certificate"

    def publish(self, ask: Ask, now: datetime) -> None:
        """Write the metrics, if a node_exporter reads them. Raises OSError, CertificateError."""
        target = self.metrics
        if not target.parent.is_dir():
            return
        samples = Samples(METRICS)
        known = certificates.read(Path(self.certificate))
        samples.add("inference_gateway_certificate_end_timestamp_seconds", known.end.timestamp(), form=self.form)
        if self.form == CA:
            root = certificates.read(self.authority.root)
            samples.add("inference_gateway_authority_end_timestamp_seconds", root.end.timestamp())
        current = handing_over.served(ask)
        samples.add("inference_gateway_certificate_served", float(current == known.fingerprint) if current else None)
        samples.add("inference_gateway_certificate_timestamp_seconds", now.timestamp())
        files.write(target, samples.text(), 0o644)

    def status(self, ask: Ask, now: datetime) -> tuple[list[str], bool]:
        """Lines for an operator, and whether all is well. Raises CertificateError, OSError."""
        known = certificates.read(Path(self.certificate))
        days, current, begun = known.days_left(now), handing_over.served(ask), known.begin <= now
        lines = [
            f"{self.certificate} ({self.form})",
            f"names: {', '.join(known.names)}",
            f"ends: {known.end:%Y-%m-%d %H:%M} UTC, in {days:.0f} days",
        ]
        if self.form == CA:
            root = certificates.read(self.authority.root)
            lines.append(f"the site's CA ends: {root.end:%Y-%m-%d}, in {root.days_left(now):.0f} days")
        if not begun:
            # The command renews a certificate of the site's own CA.
            mend = "inference-gateway-certificate update" if self.form == CA else "set the clock, or renew it"
            lines.append(f"not valid yet: it begins {known.begin:%Y-%m-%d %H:%M} UTC, by the gateway's clock: {mend}")
        if current and current != known.fingerprint:
            lines.append("HAProxy still serves another certificate: inference-gateway-certificate update")
        elif not current:
            lines.append(f"HAProxy serves no certificate, or does not answer: systemctl status {HAPROXY}")
        return lines, begun and days >= certificates.WARN_DAYS and current == known.fingerprint

    def to_dict(self) -> dict[str, Any]:
        """The value of the settings' file."""
        return {
            "schema": SCHEMA,
            "form": self.form,
            "certificate": self.certificate,
            "key": self.key,
            "names": list(self.names),
        }


def paths(form: str, certificate: str, key: str) -> tuple[str, str]:
    """The paths of certificate and key on the gateway, empty without TLS. `certificate` and `key` are the site's."""
    if form == CA:
        return str(Authority().served), ""
    if form == ACME:
        return str(acme.chain()), str(acme.key())
    return (certificate, key) if form == CERTIFICATE else ("", "")


def coming() -> set[str]:
    """The paths of certificates and keys that a run makes or obtains."""
    return {path for form in (CA, ACME) for path in paths(form, "", "") if path}


def load(path: Path = TLS_SETTINGS) -> Serving:
    """The certificate of this gateway. Raises ValueError, OSError."""
    value = files.read_json(path)
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise ValueError(f"{path}: there are no settings of schema {SCHEMA}: run baremetal.inference.site")
    lacking = [key for key in ("form", "certificate", "key", "names") if key not in value]
    if lacking or not isinstance(value["names"], list):
        raise ValueError(f"{path}: lacks {', '.join(lacking) or 'a list of names'}: run baremetal.inference.site")
    return Serving(value["form"], value["certificate"], value["key"], tuple(value["names"]))


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keep other runs away from the files of the certificate. Raises OSError."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (directory / ".lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
