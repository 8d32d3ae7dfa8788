# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A minimal client of the Docker engine's API over its socket. Private to the collection.

The `docker` command would cost a process and 30 MiB each time, and its errors would have to be parsed.
Paths carry no version: the engine then answers with its own newest one, and the calls used here have not changed
since 1.24.
"""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .local_http import LocalConnection

SOCKET = Path("/var/run/docker.sock")

TIMEOUT = 60.0
"""Seconds for one call. Starting a container with many GPUs takes some; a healthy engine answers the rest at once."""


class DockerUnavailable(Exception):
    """The engine does not answer: it is stopped, restarting or overloaded. Asking again later may help."""


class DockerError(Exception):
    """The engine refused; the message is its own. Asking again does not help."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


class Docker:
    """The calls that the node tool needs. Each raises DockerUnavailable or DockerError; `timeout` is in seconds."""

    def __init__(self, path: Path = SOCKET, timeout: float = TIMEOUT) -> None:
        self.path = path
        self.timeout = timeout

    def ping(self) -> None:
        """Return when the engine answers."""
        self._call("GET", "/_ping")

    def inspect(self, container: str) -> dict[str, Any] | None:
        """A container as `docker inspect` shows it; None where there is none of that name or id."""
        return self._read(f"/containers/{quote(container, safe='')}/json")

    def inspect_image(self, image: str) -> dict[str, Any] | None:
        """An image as `docker image inspect` shows it; None where it is not on this machine."""
        return self._read(f"/images/{quote(image, safe='/:@')}/json")

    def start(self, container: str) -> None:
        """Start a container; one that runs already is left alone."""
        self._call("POST", f"/containers/{quote(container, safe='')}/start")

    def remove(self, container: str) -> None:
        """Remove a container, running or not, with its anonymous volumes. None of that name is fine."""
        self._delete(f"/containers/{quote(container, safe='')}?force=1&v=1")

    def disk_usage(self) -> dict[str, Any]:
        """All containers, images and parts of the build cache, with what they take on disk."""
        return self._read("/system/df") or {}

    def remove_image(self, reference: str) -> None:
        """Take a name from an image, and with its last one the image. None of that name is fine."""
        self._delete(f"/images/{quote(reference, safe='/:@')}")

    def prune_builds(self) -> None:
        """Remove what builds have left and no build uses now."""
        self._call("POST", "/build/prune?all=1")

    def _delete(self, path: str) -> None:
        try:
            self._call("DELETE", path)
        except DockerError as error:
            if error.status != http.HTTPStatus.NOT_FOUND:
                raise

    def _read(self, path: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads(self._call("GET", path))
        except DockerError as error:
            if error.status == http.HTTPStatus.NOT_FOUND:
                return None
            raise
        except ValueError as error:
            raise DockerUnavailable(f"the Docker engine at {self.path} answers no JSON: {error}") from error
        return found

    def _call(self, method: str, path: str) -> bytes:
        connection = LocalConnection(self.path, self.timeout)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise DockerUnavailable(f"the Docker engine at {self.path} does not answer: {reason}") from error
        finally:
            connection.close()
        # 304: the container is started already.
        if response.status >= http.HTTPStatus.BAD_REQUEST:
            raise DockerError(response.status, _message(body) or f"HTTP {response.status}")
        return body


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"]).strip()
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace").strip()
