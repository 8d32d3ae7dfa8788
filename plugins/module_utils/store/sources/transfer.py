# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A long transfer in turns of some seconds, so that a run can report the progress. Private to the collection."""

from __future__ import annotations

import http
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.sizes import human

TIMEOUT = 30
"""Seconds without a byte after which a connection is closed."""

CHUNK = 1 << 20


@dataclass(frozen=True)
class Progress:
    """The progress of a transfer in bytes; `gained` bytes arrived in the last `seconds`."""

    have: int
    total: int
    gained: int
    seconds: float
    done: bool

    def __str__(self) -> str:
        """As 1.2 GiB of 15.3 GiB, 310.0 MiB a second, 46 s left."""
        text = f"{human(self.have)} of {human(self.total)}"
        if self.gained <= 0 or self.seconds <= 0:
            return text
        speed = self.gained / self.seconds
        left = max(0, self.total - self.have) / speed
        return f"{text}, {human(int(speed))} a second, {_time(left)} left"


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def ask(url: str, headers: Mapping[str, str], method: str = "GET", *, direct: bool = False) -> Any:
    """The answer to a request, for a `with` statement. Uses the proxies of the environment unless `direct`.

    Raises OSError and ValueError.
    """
    request = urllib.request.Request(url, headers={"User-Agent": "baremetal.inference", **headers}, method=method)
    handlers = [_Redirects(), *([urllib.request.ProxyHandler({})] if direct else [])]
    return urllib.request.build_opener(*handlers).open(request, timeout=TIMEOUT)


def append(
    url: str,
    target: Path,
    have: int,
    deadline: float,
    *,
    headers: Mapping[str, str] | None = None,
    size: int | None = None,
    direct: bool = False,
) -> None:
    """Fetch a file from byte `have` on, until its end or the deadline (time.monotonic()). If the server cannot resume,
    fetch the whole file.

    The file never becomes longer than `size` bytes. Raises OSError, http.client.HTTPException and ValueError.
    """
    with ask(url, {**(headers or {}), **({"Range": f"bytes={have}-"} if have else {})}, direct=direct) as answer:
        resumed = answer.status == http.HTTPStatus.PARTIAL_CONTENT
        # A transfer that cannot resume continues after the deadline, because it would start from zero each time.
        resumable = resumed or answer.headers.get("Accept-Ranges") == "bytes"
        with target.open("ab" if resumed else "wb") as file:
            while time.monotonic() < deadline or not resumable:
                chunk = answer.read(CHUNK if size is None else min(CHUNK, size - file.tell()))
                if not chunk:
                    break
                file.write(chunk)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Sends the token only to the first server, not to a server of a redirect, and never without TLS after TLS."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request and (request.host != req.host or (req.type == "https" and request.type != "https")):
            request.remove_header("Authorization")
        return request


class TransferError(Exception):
    """A transfer cannot continue; the message says why."""
