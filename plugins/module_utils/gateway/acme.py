# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A certificate from an ACME authority, by Debian's certbot. Private to the collection.

certbot answers the authority's HTTP challenge on port 80 itself, for some seconds. Debian's certbot.timer renews.
"""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core import commands
from . import certificates
from .certificates import CertificateError
from .forms import HTTP_PORT
from .places import CERTIFICATE_COMMAND

PACKAGE = "certbot"
TIMER = "certbot.timer"
NAME = "inference-gateway"
"""certbot's name of the certificate."""

SECONDS = 300.0
"""Seconds for one call of certbot."""

SHOWN = 2000
"""How many characters of certbot's words an error quotes."""

ETC = Path("/etc/letsencrypt")
LOG = "/var/log/letsencrypt/letsencrypt.log"


@dataclass(frozen=True)
class Order:
    """What to request from the authority."""

    names: Sequence[str]
    email: str
    server: str
    """The URL of the authority's directory."""

    def command(self, etc: Path = ETC) -> list[str]:
        """The command line of certbot. It has no secret."""
        # certbot keeps a valid certificate with the same names also if another authority is asked.
        kept = "--force-renewal" if self._old_server(etc) else "--keep-until-expiring"
        return [
            *("certbot", "certonly", "--non-interactive", "--agree-tos", "--standalone", "--cert-name", NAME),
            *("--server", self.server, "--email", self.email, kept, "--renew-with-new-domains"),
            *("--deploy-hook", f"{CERTIFICATE_COMMAND} update"),
            *(part for name in self.names for part in ("-d", name)),
        ]

    def is_filled(self, etc: Path = ETC) -> bool:
        """Whether certbot has a certificate for these names from this authority, and so renews it by itself."""
        try:
            names = certificates.read(chain(etc)).names
        except (OSError, CertificateError):
            return False
        return set(names) == set(self.names) and server_of(etc) == self.server

    def _old_server(self, etc: Path) -> str:
        """The authority of certbot's certificate, if it is another authority than this order's; otherwise empty."""
        found = server_of(etc)
        return found if found != self.server else ""

    def problems(self, etc: Path = ETC) -> list[str]:
        """What on this machine prevents the first certificate."""
        if self.is_filled(etc):
            return []
        found = [
            f"gateway_tls_names: {name!r} does not resolve on the gateway, so the authority cannot reach the gateway by"
            " this name: create its DNS record"
            for name in self.names
            if not _resolves(name)
        ]
        if port_taken(HTTP_PORT):
            found.append(
                "gateway_tls: 'acme': another program listens on port 80 of the gateway, to which the authority"
                " connects: stop that program, or obtain the certificate with it and set gateway_tls_certificate"
            )
        return found

    def fill(self, etc: Path = ETC) -> None:
        """Let certbot obtain the certificate. Raises CertificateError."""
        outcome = commands.run(self.command(etc), SECONDS)
        if outcome.code != 0:
            why = outcome.message or f"{outcome.stdout}\n{outcome.stderr}".strip()[-SHOWN:]
            raise CertificateError(
                f"certbot obtained no certificate for {', '.join(self.names)}. The authority must reach port 80 of the"
                f" gateway by these names. The log is {LOG}. certbot says:\n{why}"
            )
        if old := self._old_server(etc):
            raise CertificateError(
                f"gateway_acme_server: {self.server!r}: certbot ended without an error, but its certificate"
                f" {NAME} is still that of {old}. Correct what {LOG} reports, and run"
                " baremetal.inference.site again"
            )


def chain(etc: Path = ETC) -> Path:
    """The certificate and its chain; renewals replace the target of this link."""
    return etc / f"live/{NAME}/fullchain.pem"


def server_of(etc: Path = ETC) -> str:
    """The URL of the authority from which certbot has the certificate, and renews it; empty if unknown."""
    try:
        renewal = (etc / f"renewal/{NAME}.conf").read_text(encoding="utf-8")
    except OSError:
        return ""
    found = re.search(r"^server = (\S+)$", renewal, re.M)
    return found[1] if found else ""


def key(etc: Path = ETC) -> Path:
    """The key of the certificate."""
    return etc / f"live/{NAME}/privkey.pem"


def port_taken(port: int) -> bool:
    """Whether a program listens on a port of any address."""
    for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                tried.bind((address, port))
        except OSError as error:
            # A machine without IPv6 has no such address.
            if error.errno == errno.EADDRINUSE:
                return True
    return False


def _resolves(name: str) -> bool:
    try:
        return bool(socket.getaddrinfo(name, HTTP_PORT))
    except OSError:
        return False
