# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads Prometheus and Alertmanager from their own host. Private to the collection."""

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
"""Limit for one answer."""


class NoAnswer(Exception):
    """There was no answer, or an unexpected one. The text describes it."""


@dataclass(frozen=True)
class Server:
    """Prometheus or Alertmanager, as its own host reaches it."""

    url: str
    password: str = ""
    """The internal user's password; empty for none."""

    def text(self, path: str) -> str:
        """The text at a path. Raises NoAnswer."""
        parts = urlsplit(self.url)
        host, port = parts.hostname or "", parts.port
        if parts.scheme == "https":
            # The certificate has the name that people use. This connection stays on the machine.
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
