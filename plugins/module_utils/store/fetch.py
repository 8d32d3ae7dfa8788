# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Models on their way from the network into the store. Private to the collection.

What is fetched lies in STORE/.incoming until it is complete, checked and hashed: a half-fetched model has no name under
which it could be served.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from ..core.problems import InputError, Problem
from ..models.manifest import REVISION_DIGITS, Manifest
from .hashes import build
from .sources import archive
from .sources import hub as hub_source
from .sources import peer as peer_source
from .sources.hub import Hub
from .sources.peer import Peer
from .sources.remote import ARCHIVE, Remote, remember
from .sources.transfer import Progress, TransferError
from .store import INCOMING, Store, make_directory

ARCHIVE_FILE = "archive"
MODEL = "model"


def workplace(store: Path, name: str, remote: Remote) -> Path:
    """Where a transfer keeps what it has; another source of the same model has another."""
    return store / INCOMING / f"{name}.{remote.key}"


def forget_peers(store: Path, name: str) -> None:
    """Remove what has arrived of a model from other nodes: its own source begins at zero, and needs the space."""
    for partial in (store / INCOMING).glob(f"{name}-{'[0-9a-f]' * REVISION_DIGITS}"):
        shutil.rmtree(partial)


def needed(remote: Remote, work: Path, hub: Hub) -> int:
    """Bytes that the file system must have free for a model to be fetched. Raises TransferError."""
    if remote.kind == ARCHIVE:
        return archive.needed(archive.size(remote.location), work / ARCHIVE_FILE)
    return hub_source.needed(hub_source.sizes(remote, hub), work / MODEL)


def unpack(remote: Remote, work: Path) -> None:
    """Verify a complete archive and unpack it; one that is wrong is removed. Raises TransferError."""
    try:
        archive.verify(work / ARCHIVE_FILE, remote.pin)
    except TransferError:
        shutil.rmtree(work)
        raise
    shutil.rmtree(work / MODEL, ignore_errors=True)
    archive.unpack(work / ARCHIVE_FILE, work / MODEL)


def publish(store: Store, name: str, remote: Remote, work: Path) -> str:
    """Publish a model that has arrived, and note where it came from. Returns its revision.

    Raises InputError where it is not complete.
    """
    where = f"models.{name}"
    manifest, problems = build(work / MODEL, where, store.cache)
    if manifest is None:
        # Its source is complete and has that very content: to fetch it again would not help.
        raise InputError([*problems, Problem(where, f"{remote.location} holds no complete model: correct it")])
    plan = store.plan(name, manifest)
    if not plan.published:
        shutil.rmtree(plan.incoming, ignore_errors=True)
        make_directory(plan.incoming.parent)
        (work / MODEL).rename(plan.incoming)
        for relative, file in manifest.files.items():
            # It was read just now, under another name.
            store.cache.keep(plan.incoming / relative, file.sha256)
        store.publish(plan)
    _settle(store, name, remote, manifest)
    return manifest.revision


def take(store: Store, name: str, remote: Remote, peer: Peer, seconds: float) -> Progress:
    """Bring more of a model from another node, and publish it when it is complete.

    Raises TransferError where it gives nothing, and InputError where what it gave is wrong, which is removed.
    """
    # The same of the model's own source.
    shutil.rmtree(workplace(store.root, name, remote), ignore_errors=True)
    plan = store.plan(name, peer.manifest)
    progress = peer_source.fetch(plan, peer, seconds)
    if progress.done:
        if not plan.published:
            store.publish(plan)
        _settle(store, name, remote, peer.manifest)
    return progress


def _settle(store: Store, name: str, remote: Remote, manifest: Manifest) -> None:
    """Note where a model came from, and leave nothing of transfers from other sources."""
    remember(store.root / name, remote, manifest.revision)
    for done in (store.root / INCOMING).glob(f"{name}.{'[0-9a-f]' * len(remote.key)}"):
        shutil.rmtree(done)


def check_complete(files: dict[str, int], directory: Path) -> None:
    """Raises TransferError where a file of a repository is missing or has another size than the hub says."""
    wrong = [file for file, size in files.items() if not _has(directory / file, size)]
    if wrong:
        raise TransferError(f"the hub's client is done, but {', '.join(sorted(wrong)[:5])} did not arrive: run again")


def _has(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size
