# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the certificate of a node that is also a gateway. Private to the collection."""

from __future__ import annotations

from datetime import UTC, datetime

from ...core import files
from ...gateway import certificates
from ...gateway.certificates import WARN_DAYS, CertificateError
from ...gateway.forms import NONE
from ...gateway.names import CERTIFICATE, DIRECTORY
from .check import OK, WARN, CannotTell, Check, Finding
from .host import Host

GUIDE = "docs/tls.md"


def certificate(host: Host) -> Finding:
    """The gateway serves TLS with a certificate that does not end soon."""
    try:
        state = files.read_json(host.paths.gateway)
        settings = {} if state is None else dict(state.get("settings", {}))
    except (ValueError, TypeError, AttributeError) as error:
        raise CannotTell(
            f"{host.paths.gateway} is damaged ({error})", "remove this file, and run baremetal.inference.site"
        ) from error
    if state is None:
        return Finding(OK, "the node is no gateway")
    if not settings.get("tls"):
        if settings.get("tls_form") == NONE:
            return Finding(OK, "the gateway serves plain HTTP, as gateway_tls says")
        return Finding(
            WARN,
            "gateway_tls is pending: the gateway serves plain HTTP, as before or as other gateways of the site",
            f"set gateway_tls: to ca, certificate or acme for TLS, to none for plain HTTP ({GUIDE})",
        )
    path = host.root / DIRECTORY.lstrip("/") / CERTIFICATE
    shown = host.ask("openssl", "x509", "-noout", "-dates", "-in", str(path))
    try:
        end = certificates.date(shown, "notAfter")
    except CertificateError as error:
        raise CannotTell(f"{path} {error}", f"openssl x509 -noout -dates -in {path}") from error
    days = (end - datetime.now(UTC)).total_seconds() / 86400
    if days < WARN_DAYS:
        words = f"ends in {days:.0f} days" if days >= 0 else f"ended {-days:.0f} days ago"
        return Finding(WARN, f"the gateway's certificate {words}", f"renew the certificate ({GUIDE})")
    return Finding(OK, f"the gateway's certificate ends in {days:.0f} days")


CHECKS = (Check("gateway-certificate", certificate),)
