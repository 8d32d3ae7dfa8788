# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads manifests and blobs from an image registry, as Docker's daemon on the node would. Private to the collection.

Docker itself cannot fetch signatures: it pulls only images that it can run.
"""

from __future__ import annotations

import base64
import http.client
import ipaddress
import json
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

HUB = "docker.io"
HUB_SERVER, HUB_LOGIN = "registry-1.docker.io", "https://index.docker.io/v1/"
"""The server of Docker Hub, and the name of its login in the file of Docker's client."""

SECONDS = 20
"""Seconds for each read from the image registry."""

LARGEST_ANSWER = 4 << 20
"""Bytes. Manifests and signatures have some KB."""

AUTHORITIES = Path("/etc/docker/certs.d")

MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, "
    "application/vnd.docker.distribution.manifest.v2+json"
)
"""The kinds of manifests that can list signatures."""

UNSUPPORTED = (400, 404, 405, 501)
"""Statuses of image registries that have no referrers, or do not support this request."""


class RegistryError(Exception):
    """The image registry does not answer, or refuses. The message says what to do."""


@dataclass(frozen=True)
class Image:
    """The parts of an image's name, as Docker reads them."""

    registry: str
    repository: str
    digest: str

    @property
    def name(self) -> str:
        """The full name, without tag and digest."""
        return f"{self.registry}/{self.repository}"


@dataclass(frozen=True)
class Access:
    """How the node reaches image registries, in addition to the files that Docker has on the node."""

    client_config: Path
    logins: Mapping[str, str] = field(default_factory=dict)
    """Base64 of USER:PASSWORD by image registry."""
    authorities: Mapping[str, str] = field(default_factory=dict)
    """Certificates in PEM by image registry."""
    insecure: Sequence[str] = ()
    """HOST[:PORT] of image registries, or networks, for which plain HTTP and any certificate are accepted."""
    proxies: Mapping[str, str] = field(default_factory=dict)
    """The proxies of Docker's daemon by scheme. Without any, the proxies of this process count."""
    no_proxy: Sequence[str] = ()
    """Hosts, domains and networks that are reached without a proxy."""
    authorities_path: Path = AUTHORITIES


def located(name: str) -> tuple[str, str]:
    """The image registry of a name without digest, and the rest of the name."""
    first, slash, rest = name.partition("/")
    on_host = slash and ("." in first or ":" in first or first == "localhost")
    registry, rest = (first, rest) if on_host else (HUB, name)
    return (HUB if registry == f"index.{HUB}" else registry), rest


def parse(image: str) -> Image:
    """The parts of an image's name. The digest is empty if the name has none."""
    name, _at, digest = image.partition("@")
    registry, repository = located(name)
    repository = re.sub(r":[^/:]*$", "", repository)
    if registry == HUB and "/" not in repository:
        repository = f"library/{repository}"
    return Image(registry, repository, digest)


class Registry:
    """Reads from one repository of an image registry."""

    def __init__(self, image: Image, access: Access) -> None:
        """Raises RegistryError for a wrong name of an image registry, or if a certificate cannot be read."""
        self._image, self._access = image, access
        self._server = HUB_SERVER if image.registry == HUB else image.registry
        try:
            host = urlsplit(f"//{self._server}").hostname or self._server
        except ValueError as error:
            raise RegistryError(
                f"{image.registry} is no name of an image registry ({error}): correct the image's name."
            ) from error
        self._insecure = _listed(host, self._server, access.insecure) or _loopback(host)
        self._schemes = ["https", "http"] if self._insecure else ["https"]
        self._authorization = ""
        self._opener = urllib.request.build_opener(
            _proxy_handler(host, access), urllib.request.HTTPSHandler(context=self._context())
        )

    def manifest(self, reference: str) -> dict[str, Any] | None:
        """The manifest with a tag or digest; None if there is none. Raises RegistryError."""
        answer = self._get(f"manifests/{reference}", (404,))
        return None if answer is None else self._object(answer)

    def blob(self, digest: str) -> bytes | None:
        """A blob; None if there is none. Raises RegistryError."""
        return self._get(f"blobs/{digest}", (404,))

    def referrers(self) -> list[dict[str, Any]]:
        """Descriptors of the manifests that refer to the image. Raises RegistryError."""
        answer = self._get(f"referrers/{self._image.digest}", UNSUPPORTED)
        # Image registries that do not support this request have the list of referrers at a tag.
        index = self.manifest(self._image.digest.replace(":", "-")) if answer is None else self._object(answer)
        found = (index or {}).get("manifests")
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []

    def _context(self) -> ssl.SSLContext:
        """What TLS trusts: the authorities of node and image registry; everything for an insecure image registry."""
        if self._insecure:
            # Without the machine's authorities, which no verification reads here, and which take 20 ms to load.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            return context
        context = ssl.create_default_context()
        # Python 3.13 refuses authorities without some extensions, which Docker accepts.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        try:
            for path in sorted((self._access.authorities_path / self._image.registry).glob("*.crt")):
                context.load_verify_locations(path)
            if given := self._access.authorities.get(self._image.registry):
                context.load_verify_locations(cadata=given)
        except (OSError, ValueError) as error:
            raise RegistryError(
                f"the certificate authority of {self._image.registry} cannot be read: {error}. "
                "Correct docker_registry_cas."
            ) from error
        return context

    def _object(self, answer: bytes, server: str = "") -> dict[str, Any]:
        """The JSON object of an answer of `server`, or of the image registry. Raises RegistryError."""
        with suppress(ValueError, RecursionError):
            value = json.loads(answer)
            if isinstance(value, dict):
                return value
        raise RegistryError(
            f"{server or self._server} must answer with a JSON object, as image registries do. Check the image's name."
        )

    def _get(self, path: str, missing: Sequence[int]) -> bytes | None:
        """An answer of the repository; None for the codes in `missing`. Raises RegistryError."""
        for attempt in range(2):
            try:
                return self._ask(f"/v2/{self._image.repository}/{path}")
            except urllib.error.HTTPError as error:
                with error:
                    challenge = error.headers.get("WWW-Authenticate", "")
                if error.code == http.client.UNAUTHORIZED and attempt == 0 and challenge:
                    self._authorization = self._answer(challenge)
                elif error.code in missing:
                    return None
                else:
                    raise self._refused(error.code) from error
        raise self._refused(http.client.UNAUTHORIZED)

    def _ask(self, path: str) -> bytes:
        """GET, by the first scheme that answers. Raises HTTPError and RegistryError."""
        failure: Exception = OSError("no answer")
        for scheme in self._schemes:
            request = urllib.request.Request(f"{scheme}://{self._server}{path}", headers={"Accept": MANIFESTS})
            if self._authorization:
                # Unredirected: the storage to which image registries redirect must not get the login.
                request.add_unredirected_header("Authorization", self._authorization)
            try:
                answer = self._read(request)
            except urllib.error.HTTPError:
                self._schemes = [scheme]
                raise
            except (OSError, http.client.HTTPException, ValueError) as error:
                failure = error
            else:
                self._schemes = [scheme]
                return answer
        raise self._silent(failure, self._server) from failure

    def _read(self, request: urllib.request.Request) -> bytes:
        with self._opener.open(request, timeout=SECONDS) as answer:
            content: bytes = answer.read(LARGEST_ANSWER + 1)
        if len(content) > LARGEST_ANSWER:
            raise ValueError(f"the answer has more than {LARGEST_ANSWER >> 20} MiB")
        return content

    def _answer(self, challenge: str) -> str:
        """The header Authorization that answers a challenge. Raises RegistryError."""
        login = self._login()
        scheme, _blank, rest = challenge.partition(" ")
        if scheme.lower() == "basic" and login:
            return f"Basic {login}"
        settings = dict(re.findall(r'(\w+)="([^"]*)"', rest))
        realm = settings.pop("realm", "")
        allowed = ("https://", "http://") if self._insecure else ("https://",)
        if scheme.lower() != "bearer" or not realm.startswith(allowed):
            raise self._refused(http.client.UNAUTHORIZED)
        settings.setdefault("scope", f"repository:{self._image.repository}:pull")
        settings.pop("error", None)
        request = urllib.request.Request(f"{realm}{'&' if '?' in realm else '?'}{urlencode(settings)}")
        # Logins and images often have different servers.
        server = request.host or self._server
        if login:
            request.add_unredirected_header("Authorization", f"Basic {login}")
        try:
            token = self._object(self._read(request), server)
        except urllib.error.HTTPError as error:
            error.close()
            raise self._refused(error.code) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._silent(error, server) from error
        return f"Bearer {token.get('token') or token.get('access_token') or ''}"

    def _login(self) -> str:
        """Base64 of USER:PASSWORD at the image registry; empty if there is none."""
        name = HUB_LOGIN if self._image.registry == HUB else self._image.registry
        if given := self._access.logins.get(name) or self._access.logins.get(self._image.registry):
            return given
        try:
            kept = json.loads(self._access.client_config.read_text(encoding="utf-8"))["auths"]
            return next((str(kept[key]["auth"]) for key in (name, f"https://{name}") if key in kept), "")
        except (OSError, ValueError, KeyError, TypeError):
            return ""

    def _refused(self, code: int) -> RegistryError:
        found = f"{self._server} refuses {self._image.repository} (HTTP {code})"
        if code in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
            return RegistryError(f"{found}: set docker_registry_credentials, or correct the image's name.")
        return RegistryError(f"{found}: check the image's name, and the image registry's log.")

    def _silent(self, error: Exception, server: str) -> RegistryError:
        """The error for a server that does not answer, or whose answer cannot be used."""
        reason = getattr(error, "reason", error)
        if isinstance(reason, ssl.SSLCertVerificationError):
            advice = "The node does not trust the image registry's certificate: set docker_registry_cas."
        elif isinstance(reason, ssl.SSLError):
            advice = "If the image registry uses plain HTTP, add it to docker_insecure_registries."
        else:
            advice = "Check the image's name, and whether the node reaches the image registry."
        what = "does not answer" if isinstance(error, OSError) else "gives no answer that can be used"
        return RegistryError(f"{server} {what}: {reason}. {advice}")


def login(username: str, password: str) -> str:
    """A login as the file of Docker's client has it."""
    return base64.b64encode(f"{username}:{password}".encode()).decode()


def _listed(host: str, server: str, listed: Sequence[str]) -> bool:
    """Whether a list of HOST[:PORT] and networks has a server."""
    address = None
    with suppress(ValueError):
        address = ipaddress.ip_address(host)
    for one in listed:
        if one in (host, server):
            return True
        with suppress(ValueError):
            if address and address in ipaddress.ip_network(one, strict=False):
                return True
    return False


def _loopback(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _proxy_handler(host: str, access: Access) -> urllib.request.ProxyHandler:
    """The proxies for a host."""
    if _loopback(host) or _listed(host, host, access.no_proxy) or _in_domain(host, access.no_proxy):
        return urllib.request.ProxyHandler({})
    return urllib.request.ProxyHandler({scheme: proxy for scheme, proxy in access.proxies.items() if proxy} or None)


def _in_domain(host: str, listed: Sequence[str]) -> bool:
    """Whether a host is below a domain of a list. A domain may have a leading dot, and `*` matches every host."""
    return any(name == "*" or host.endswith(f".{name.lstrip('.')}") for name in listed)
