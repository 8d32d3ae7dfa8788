# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model in the store of another node of the site, which shares it for a while. Private to the collection.

The other node is not trusted: the manifest comes from the controller, and nothing is published whose checksums differ.
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
    """A node that shares a revision below `url`, with who knows the token."""

    host: str
    url: str
    token: str
    manifest: Manifest


def fetch(plan: Plan, peer: Peer, seconds: float) -> Progress:
    """Bring more of the missing files, until all are there or the time is over. What has arrived from others stays.

    Raises TransferError as soon as a connection brings nothing: there are other sources.
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
                raise TransferError(f"{relative} does not come from {peer.host}: {reason}")
    coming = sum(size - _held(plan.incoming / relative, size) for relative, size in sizes.items())
    return Progress(total - coming, total, left - coming, time.monotonic() - started, done=not coming)


def _held(target: Path, size: int) -> int:
    """Bytes that are there, of a file that is made where it is missing; one that is too long is begun anew."""
    with target.open("ab") as file:
        if file.tell() > size:
            file.truncate(0)
        return file.tell() if file.tell() <= size else 0
