# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fetches a model from a peer, another node that shares models from its store. Private to the collection.

The peer is not trusted: the manifest comes from the controller, and a file with another checksum is not published.
"""

from __future__ import annotations

import http.client
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from ...models.manifest import Manifest
from ..store import Plan
from .transfer import Progress, TransferError, append


@dataclass(frozen=True)
class Peer:
    """A node that shares a revision below `url` for requests with the token."""

    host: str
    url: str
    token: str
    manifest: Manifest


def fetch(plan: Plan, peer: Peer, seconds: float) -> Progress:
    """Fetch more of the missing files for `seconds` or until all have arrived. Files from other peers stay.

    Raises TransferError as soon as a connection brings no byte, so that the node can try another source.
    """
    started = time.monotonic()
    sizes = {relative: plan.manifest.files[relative].size for relative in plan.missing}
    total, left = sum(sizes.values()), plan.missing_bytes
    for relative, size in sorted(sizes.items()):
        target = plan.incoming / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        while (have := _held(target, size)) < size and time.monotonic() - started < seconds:
            reason = "the connection was closed"
            try:
                append(
                    f"{peer.url}/{quote(relative)}",
                    target,
                    have,
                    deadline=started + seconds,
                    headers={"Authorization": f"Bearer {peer.token}"},
                    size=size,
                    direct=True,
                )
            except (OSError, http.client.HTTPException, ValueError) as error:
                reason = str(error) or type(error).__name__
            if _held(target, size) <= have and time.monotonic() - started < seconds:
                raise TransferError(f"{relative} does not arrive from {peer.host}: {reason}")
    coming = sum(size - _held(plan.incoming / relative, size) for relative, size in sizes.items())
    return Progress(total - coming, total, left - coming, time.monotonic() - started, done=not coming)


def _held(target: Path, size: int) -> int:
    """Bytes of a file that have arrived. Creates a missing file, and empties a file that is too long."""
    with target.open("ab") as file:
        if file.tell() > size:
            file.truncate(0)
        return file.tell() if file.tell() <= size else 0
