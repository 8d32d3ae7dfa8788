# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proves that the server of a repository lets a node delete no backups. Private to the collection.

A server checks the permission to delete first, and looks for the object after that. So the requests name objects that
do not exist: no object is lost, even if the server allows the deletion. In a bucket with versions, each deletion that
the server allows leaves a delete marker.
"""

from __future__ import annotations

import base64
import http.client
import re
import secrets
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit

from . import repository, s3_request
from .restic import Access

SECONDS = 30.0
"""Timeout of a request."""

KINDS = ("data", "index", "keys", "snapshots")
"""Directories of a repository without which backups are lost. Source: restic's manual, "Repository Layout"."""

_REFUSED = (403, 405)

_GUIDE = 'See "A rooted node cannot delete backups" in docs/backup.md'

_CREDENTIALS = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "RequestTimeTooSkewed", "ExpiredToken", "InvalidToken")
"""Codes of S3 with status 403 that say nothing about permissions."""


class NotProven(Exception):
    """The node can delete or replace backups, or cannot delete its own locks, or the server does not say which. The
    message says what to do."""


class _NoAnswer(Exception):
    """The server's answer says nothing about permissions."""


@dataclass(frozen=True)
class Answer:
    """A server's answer."""

    status: int
    text: str = ""


Send = Callable[[str, str, Mapping[str, str], str], Answer]
"""Sends a request (method, URL, headers, path of a CA certificate or ""). Raises OSError without an answer."""


def send(method: str, url: str, headers: Mapping[str, str], ca_file: str) -> Answer:
    """Send a request without a body, and return the answer. Raises OSError."""
    request = urllib.request.Request(url, method=method, headers=dict(headers))
    context = ssl.create_default_context(cafile=ca_file or None)
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(request, timeout=SECONDS) as response:
            return Answer(response.status, response.read(65536).decode(errors="replace"))
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.read(65536).decode(errors="replace"))


def prove(access: Access, ask: Send = send) -> None:
    """Raise NotProven unless the server deletes no backups, keeps each replaced object, and deletes locks."""
    parsed = repository.parse(access.address)
    try:
        found = _problem(_S3(access, ask) if parsed.kind == repository.S3 else _Rest(access, ask))
    except (OSError, http.client.HTTPException) as error:
        said = str(error) or type(error).__name__
        found = f"cannot be reached: {said}. Check the server, its firewall and its certificate (backup_ca_file)"
    if found:
        raise NotProven(f"backup_append_only is true, but the repository at {repository.mask(access.address)} {found}")


def _problem(server: _Rest | _S3) -> str:
    """What is wrong with the server's permissions, or why the server does not show them; empty if they are right.

    Raises OSError.
    """
    try:
        allowed = [kind for kind in KINDS if server.deletes(kind)]
        if allowed:
            return f"lets this node delete backups ({', '.join(allowed)}): {server.advice}. {_GUIDE}"
        if not server.keeps_versions():
            return (
                "lets this node destroy backups: the bucket keeps no versions, so the node can replace each object."
                f" Enable versions for the bucket. {_GUIDE}"
            )
        if not server.deletes("locks"):
            return (
                "does not let this node delete its own locks, so each job would leave a lock: allow deletion below"
                f" locks/ alone. {_GUIDE}"
            )
    except _NoAnswer as error:
        return f"does not say whether this node can delete backups: {error}. {_GUIDE}"
    return ""


class _Rest:
    """A REST server. Source of the requests: restic's manual, "REST Backend"."""

    advice = "start the REST server with --append-only"

    def __init__(self, access: Access, ask: Send) -> None:
        self._ask = ask
        self._ca_file = access.ca_file
        # The address may also have the user, before the host.
        scheme, _colon, rest = access.address.removeprefix("rest:").partition("://")
        self._base = f"{scheme}://{rest.rpartition('@')[2]}".rstrip("/")
        user, secret = (access.environment.get(name, "") for name in (repository.REST_USER, repository.REST_SECRET))
        token = base64.b64encode(f"{user}:{secret}".encode()).decode()
        self._headers = {"Authorization": f"Basic {token}"} if user else {}

    def deletes(self, kind: str) -> bool:
        """Whether the server lets the node delete an object of this kind."""
        answer = self._ask("DELETE", f"{self._base}/{kind}/{secrets.token_hex(32)}", self._headers, self._ca_file)
        if answer.status == 401:
            raise _NoAnswer(
                f"the server refuses the node's user ({repository.REST_USER}, {repository.REST_SECRET} in"
                " backup_environment), or this path is another user's"
            )
        if answer.status == 400:
            # 400 is the answer of a server with TLS to a request without TLS. Source: Go's net/http.
            raise _NoAnswer(
                f"the server answered 400: {answer.text.strip()[:200]}. If the server has TLS, backup_repository must"
                " begin with rest:https://"
            )
        return _verdict(answer)

    def keeps_versions(self) -> bool:
        """True: a REST server never replaces an object."""
        return True


class _S3:
    """A bucket of an S3 server, addressed by its path."""

    advice = "allow this node's key s3:DeleteObject below locks/ alone"

    def __init__(self, access: Access, ask: Send) -> None:
        self._ask = ask
        self._ca_file = access.ca_file
        self._credentials = access.environment
        self._region = access.environment.get("AWS_DEFAULT_REGION") or "us-east-1"
        address = access.address.removeprefix("s3:")
        parts = urlsplit(address if "://" in address else f"https://{address}")
        bucket, _slash, self._prefix = parts.path.strip("/").partition("/")
        self._bucket = f"{parts.scheme}://{parts.netloc}/{quote(bucket)}"

    def _send(self, method: str, url: str) -> Answer:
        answer = self._signed(method, url)
        # A bucket elsewhere names its region: Amazon S3's API reference, "Error Responses".
        region = re.search(r"<Region>([a-z0-9-]+)</Region>", answer.text) if answer.status in (301, 400) else None
        if region:
            self._region = region[1]
            answer = self._signed(method, url)
        code = re.search(r"<Code>(\w+)</Code>", answer.text)
        if answer.status == 401 or (code and code[1] in _CREDENTIALS):
            raise _NoAnswer(
                f"the server refuses the node's key ({s3_request.KEY}, {s3_request.SECRET} in backup_environment):"
                f" {code[1] if code else answer.status}"
            )
        if code and code[1] == "NoSuchBucket":
            raise _NoAnswer("there is no such bucket: make the bucket")
        return answer

    def _signed(self, method: str, url: str) -> Answer:
        signed = s3_request.headers(method, url, self._credentials, self._region, datetime.now(UTC))
        return self._ask(method, url, signed, self._ca_file)

    def _object(self, kind: str) -> str:
        # In a bucket with versions, each allowed deletion leaves a delete marker. A fixed name keeps them at one place.
        name = "0" * 64 if kind == "locks" else secrets.token_hex(32)
        directory = f"{kind}/{name[:2]}" if kind == "data" else kind
        return f"{self._bucket}/{quote('/'.join(filter(None, (self._prefix, directory, name))))}"

    def deletes(self, kind: str) -> bool:
        """Whether the server lets the node delete an object of this kind, or an earlier version of an object."""
        url = self._object(kind)
        allowed = _verdict(self._send("DELETE", url))
        if kind == "locks":
            return allowed
        return allowed or _verdict(self._send("DELETE", f"{url}?versionId=null"))

    def keeps_versions(self) -> bool:
        """Whether the bucket keeps an object when the node writes another one with its name."""
        answer = self._send("GET", f"{self._bucket}?versioning")
        if answer.status in _REFUSED:
            raise _NoAnswer(
                "its key may not read whether the bucket keeps versions. Allow the key s3:GetBucketVersioning"
            )
        if answer.status != 200:
            raise _NoAnswer(f"the server answered {answer.status} to the question whether the bucket keeps versions")
        return bool(re.search(r"<Status>\s*Enabled\s*</Status>", answer.text))


def _verdict(answer: Answer) -> bool:
    """Whether the server would have deleted. Raises _NoAnswer for an answer that says neither yes nor no."""
    if answer.status in _REFUSED:
        return False
    # 400: Amazon S3 for a version that does not exist, after it has found that the key may delete versions.
    if answer.status < 300 or answer.status in (400, 404):
        return True
    raise _NoAnswer(f"the server answered {answer.status} to a request to delete an object that does not exist")
