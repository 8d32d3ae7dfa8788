# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a gateway's certificate comes from, and the mistakes in these settings. Private to the collection; pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.problems import Problem

AUTO, CA, CERTIFICATE, ACME, NONE = "auto", "ca", "certificate", "acme", "none"
FORMS = (AUTO, CA, CERTIFICATE, ACME, NONE)
"""The values of gateway_tls."""

KEPT = "kept"
"""The form of a gateway that already serves plain HTTP, until the inventory sets gateway_tls or a certificate."""

WHERE = "role gateway"

NAME = re.compile(
    r"(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*"
)

PRIVATE_NAMES = ("localhost", "local", "lan", "internal", "intranet", "home", "corp", "test", "invalid", "example")
"""Last labels for which no public authority signs."""

HTTP_PORT = 80
"""The port to which an ACME authority connects."""

PUBLIC_SERVER = "https://acme-v02.api.letsencrypt.org/directory"


def is_address(name: str) -> bool:
    """Whether a name is an IP address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def normal(name: str) -> str:
    """A name in small letters, an address in its short form."""
    return str(ipaddress.ip_address(name)) if is_address(name) else name.lower()


def form_of(declared: str, certificate: str, serves: str) -> str:
    """Where the certificate comes from. `serves` is what the site's gateways serve now: `plain`, `tls` or empty."""
    if declared != AUTO:
        return declared
    if certificate:
        return CERTIFICATE
    return KEPT if serves == "plain" else CA


def resolve(given: Mapping[str, Any]) -> dict[str, Any]:
    """The form of the certificate, whether the gateway serves TLS, and the names of the certificate.

    `given` has the keys of the role's variable __gateway_tls_given.
    """
    form = form_of(given["declared"], given["certificate"], given["serves"])
    names = names_of(list(map(str, given["names"])), given["own_names"], form)
    return {"form": form, "tls": form in (CA, CERTIFICATE, ACME), "names": names}


def names_of(declared: Sequence[str], own: Sequence[str], form: str) -> list[str]:
    """The sorted names of the certificate. With the site's own CA, the names of the host are added."""
    names = [*declared, *(own if form == CA else ())]
    return sorted({normal(name) for name in names if is_address(name) or NAME.fullmatch(name)})


def problems(given: Mapping[str, Any]) -> list[Problem]:
    """Every mistake that the inventory shows. `given` has the keys of the role's variable __gateway_tls_given."""
    found: list[Problem] = []

    def refuse(name: str, message: str, value: object = None) -> None:
        found.append(Problem(WHERE, message, f"gateway_{name}", value))

    declared, certificate, key = (given[name] for name in ("declared", "certificate", "key"))
    form = resolve(given)["form"]
    if declared not in FORMS:
        refuse("tls", f"must be one of {', '.join(FORMS)}", declared)
    if declared == CERTIFICATE and not certificate:
        refuse("tls", "needs gateway_tls_certificate, the path of the certificate on the gateway", declared)
    if declared not in (AUTO, CERTIFICATE) and certificate:
        refuse("tls", "contradicts gateway_tls_certificate: remove one of them", declared)
    if key and not certificate:
        refuse("tls_key", "belongs to no certificate: set gateway_tls_certificate, too")
    for name, path in (("tls_certificate", certificate), ("tls_key", key)):
        if path and not str(path).startswith("/"):
            refuse(name, "must be an absolute path on the gateway", path)
    for name in given["names"]:
        if not (is_address(str(name)) or NAME.fullmatch(str(name))):
            refuse("tls_names", "must be a host name or an address, without a scheme and a port", name)
    if form == CA:
        if not names_of(list(map(str, given["names"])), given["own_names"], form):
            refuse("tls_names", "is empty, and the host has no name: name what clients use to reach the gateway")
        found += _authority_problems(given)
    if form == ACME:
        found += _acme_problems(given)
    return found


def _acme_problems(given: Mapping[str, Any]) -> list[Problem]:
    found: list[Problem] = []

    def refuse(name: str, message: str, value: object = None) -> None:
        found.append(Problem(WHERE, message, f"gateway_{name}", value))

    if not re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", given["email"]):
        refuse(
            "acme_email",
            "must be an e-mail address: certbot registers an account at the authority with it",
            given["email"],
        )
    if not str(given["server"]).startswith("https://"):
        refuse("acme_server", "must be the https:// URL of the authority's directory", given["server"])
    if not given["names"]:
        refuse("tls_names", "is empty: an ACME authority signs for names alone, so name what clients use")
    for name in map(str, given["names"]):
        if is_address(name) or "." not in name:
            refuse("tls_names", "must be a full name in public DNS, because an ACME authority signs for no other", name)
        elif name.startswith("*."):
            refuse(
                "tls_names",
                "needs the DNS challenge: obtain this certificate elsewhere, and set gateway_tls_certificate",
                name,
            )
        elif given["server"] == PUBLIC_SERVER and name.rpartition(".")[2].lower() in PRIVATE_NAMES:
            refuse("tls_names", "is no name in public DNS: set gateway_tls to ca, or gateway_acme_server", name)
    for name in ("port", "metrics_port"):
        if given[name] == HTTP_PORT:
            refuse(
                name, "is the port to which the ACME authority connects: choose another port, such as 443", HTTP_PORT
            )
    if given["floating"]:
        refuse(
            "tls",
            "contradicts gateway_floating_address: the authority reaches only the gateway with this address, so the"
            " others get no certificate. Obtain it by the DNS challenge, and set gateway_tls_certificate; or set ca",
            ACME,
        )
    return found


def _authority_problems(given: Mapping[str, Any]) -> list[Problem]:
    """A problem with the site's own CA, judged by what the run has read of each gateway."""
    message = _authority_mistake(given)
    return [Problem(WHERE, message, "gateway_tls", CA)] if message else []


def _authority_mistake(given: Mapping[str, Any]) -> str:
    known: Mapping[str, Mapping[str, Any]] = given["authorities"]
    own, lead = given["own"], known.get(given["lead"], {})
    users = {name: one["root"] for name, one in known.items() if one.get("root")}
    leads = {name: users.get(name, "") for name, one in known.items() if one.get("lead")}
    if given["unread"] and own in known and own not in users and not leads:
        return (
            f"this gateway has no certificate of the site's CA, and the run has not read {', '.join(given['unread'])},"
            " which may have the CA or serve plain HTTP. Run baremetal.inference.site without -l, or with -l gateway"
        )
    # A gateway with an issuer needs the root's key only for other names, which the module gateway_certificate checks.
    if given["lead"] in known and users and given["lead"] not in leads and own not in users:
        return (
            f"the site's CA is missing on {given['lead']}, but the certificates of {', '.join(sorted(users))} come"
            " from one. Restore /var/lib/inference/gateway-tls/authority there from a backup. To start anew, with a"
            " CA that all clients must trust: remove /var/lib/inference/gateway-tls on all gateways"
        )
    if own in leads and leads[own] != leads.get(given["lead"], leads[own]):
        return (
            f"{own} and {given['lead']} each have a CA of the site. Keep the one whose certificate clients trust"
            " (/etc/haproxy/site-ca.pem). On the gateway with the other, move /var/lib/inference/gateway-tls away, and"
            " run baremetal.inference.site"
        )
    # With two CAs, one of the leads reports the problem above. It says which CA to keep, and comes first.
    if users.get(own, "") in leads.values() and len(set(leads.values())) > 1:
        return ""
    if lead.get("root") and users.get(own, lead["root"]) != lead["root"]:
        return (
            f"the certificate of this gateway comes from another CA than that of {given['lead']}. Remove"
            " /var/lib/inference/gateway-tls on this gateway, and run baremetal.inference.site"
        )
    return ""
