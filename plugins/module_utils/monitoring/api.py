# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks Prometheus and Alertmanager on their own machine. Private to the collection."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from .settings import INTERNAL_USER

SECONDS = 10.0
"""For one answer."""


class NoAnswer(Exception):
    """There was no answer, or an unexpected one; the text says what was seen."""


@dataclass(frozen=True)
class Server:
    """One of the two, as the machine itself reaches it."""

    url: str
    password: str = ""
    """The internal user's."""

    def text(self, path: str) -> str:
        """What is at a path. Raises NoAnswer."""
        parts = urlsplit(self.url)
        host, port = parts.hostname or "", parts.port
        if parts.scheme == "https":
            # The certificate is for the name that people use; this connection stays on the machine.
            context = ssl._create_unverified_context()
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=SECONDS, context=context
            )
        else:
            connection = http.client.HTTPConnection(host, port, timeout=SECONDS)
        headers = {}
        if self.password:
            pair = base64.b64encode(f"{INTERNAL_USER}:{self.password}".encode()).decode()
            headers["Authorization"] = f"Basic {pair}"
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            body = answer.read().decode("utf-8", errors="replace")
        except (OSError, http.client.HTTPException) as error:
            raise NoAnswer(f"{self.url}{path}: {error or type(error).__name__}") from error
        finally:
            connection.close()
        if answer.status != http.client.OK:
            raise NoAnswer(f"{self.url}{path}: {answer.status}: {body[:200].strip()}")
        return body

    def data(self, path: str) -> Any:
        """The data of the API at a path. Raises NoAnswer."""
        try:
            return json.loads(self.text(path))["data"]
        except (ValueError, KeyError, TypeError) as error:
            raise NoAnswer(f"{self.url}{path}: this is no answer of Prometheus' API") from error
