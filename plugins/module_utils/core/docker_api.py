# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A minimal client for the Docker engine's API over its socket. Private to the collection.

The command `docker` would need a process and 30 MiB for each call, and its errors would have to be parsed. The paths of
the API have no version: the Docker engine then uses its newest version.
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
"""Timeout of a call, in seconds."""

PARTS = (("Containers", "ContainerUsage"), ("Images", "ImageUsage"), ("BuildCache", "BuildCacheUsage"))
"""The parts of Docker's disk usage, by the names of their lists before API version 1.52."""


class DockerUnavailable(Exception):
    """The Docker engine does not answer: it is stopped, restarting or overloaded. A later call may succeed."""


class DockerError(Exception):
    """The Docker engine refused the call. The message is the Docker engine's."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


class Docker:
    """The calls that this collection needs. Each raises DockerUnavailable or DockerError; `timeout` is in seconds."""

    def __init__(self, path: Path | None = None, timeout: float = TIMEOUT) -> None:
        self.path = path or SOCKET
        self.timeout = timeout

    def ping(self) -> None:
        """Return if the Docker engine answers."""
        self._call("GET", "/_ping")

    def inspect(self, container: str) -> dict[str, Any] | None:
        """A container in the form of `docker inspect`; None without a container of this name or id."""
        return self._read(f"/containers/{quote(container, safe='')}/json")

    def inspect_image(self, image: str) -> dict[str, Any] | None:
        """An image in the form of `docker image inspect`; None if it is not on this machine."""
        return self._read(f"/images/{quote(image, safe='/:@')}/json")

    def start(self, container: str) -> None:
        """Start a container. A running container stays as it is."""
        self._call("POST", f"/containers/{quote(container, safe='')}/start")

    def remove(self, container: str) -> None:
        """Remove a container, even a running one, with its anonymous volumes. No error if there is none."""
        self._delete(f"/containers/{quote(container, safe='')}?force=1&v=1")

    def disk_usage(self) -> dict[str, Any]:
        """`Containers`, `Images` and `BuildCache`: lists of all on this machine, with their sizes on disk in bytes."""
        # Before API version 1.52, Docker knows neither `verbose` nor PARTS: the lists are in the answer itself.
        found = self._read("/system/df?verbose=1") or {}
        return {name: (found[part].get("Items") if part in found else found.get(name)) or [] for name, part in PARTS}

    def remove_image(self, reference: str) -> None:
        """Remove a name of an image; the last name removes the image. No error if there is no such image."""
        self._delete(f"/images/{quote(reference, safe='/:@')}")

    def prune_builds(self) -> None:
        """Remove the parts of the build cache that no build uses."""
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
            raise DockerUnavailable(f"the Docker engine at {self.path} did not answer with JSON: {error}") from error
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
        # 304 is no error: the container already runs.
        if response.status >= http.HTTPStatus.BAD_REQUEST:
            raise DockerError(response.status, _message(body) or f"HTTP {response.status}")
        return body


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"]).strip()
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace").strip()
