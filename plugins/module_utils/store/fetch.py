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
from typing import Any

from ..core import files as node_files
from ..core.paths import Paths
from ..core.problems import InputError, Problem
from ..models.manifest import REVISION_DIGITS, Manifest
from .describe import build
from .sources import archive
from .sources import hub as hub_source
from .sources import peer as peer_source
from .sources.hub import Download, Hub, Run
from .sources.peer import Peer
from .sources.remote import ARCHIVE, HUB, Remote, remember
from .sources.transfer import Progress, TransferError
from .store import INCOMING, Store, make_directory

ARCHIVE_FILE = "archive"
MODEL = "model"


class Fetcher:
    """Fetches one model in turns of `seconds`, and publishes it when it is complete."""

    def __init__(
        self, store: Store, name: str, remote: Remote, seconds: float, paths: Paths, run: Run, docker: str | None
    ) -> None:
        self._store = store
        self._name = name
        self._remote = remote
        self._seconds = seconds
        self._run = run
        self._docker = docker
        self._token_file = paths.hub_token(remote.key)

    def from_network(self, hub: Hub, image: str) -> tuple[Progress, str | None]:
        """Bring more of the model from its own source. Returns how far it is, and the revision once it is published.

        Raises TransferError, InputError, OSError and ValueError.
        """
        work = workplace(self._store.root, self._name, self._remote)
        forget_peers(self._store.root, self._name)
        make_directory(work)
        progress = self._archive(work) if self._remote.kind == ARCHIVE else self._hub(work, hub, image)
        return progress, publish(self._store, self._name, self._remote, work) if progress.done else None

    def from_peer(self, host: str, url: str, token: str, manifest: Any) -> Progress:
        """Bring more of the model from another node, whose server is at `url`, empty where that node shares nothing.

        Raises TransferError, InputError, OSError and ValueError.
        """
        if not url:
            raise TransferError(f"{host} shares nothing")
        known = Manifest.from_dict(manifest)
        peer = Peer(host, f"{url}/{self._name}/{known.revision}", token, known)
        return take(self._store, self._name, self._remote, peer, self._seconds)

    def end_download(self) -> None:
        """End the download that an earlier run has begun, before another source is used: it would go on meanwhile."""
        if self._remote.kind == HUB:
            if self._docker:
                self._run([self._docker, "rm", "--force", hub_source.container(self._remote)])
            self._token_file.unlink(missing_ok=True)

    def _archive(self, work: Path) -> Progress:
        """Bring more of an archive, and unpack it when it is complete. Raises TransferError."""
        total = archive.size(self._remote.location)
        progress = archive.fetch(self._remote.location, work / ARCHIVE_FILE, total, self._seconds)
        if progress.done:
            unpack(self._remote, work)
        return progress

    def _hub(self, work: Path, hub: Hub, image: str) -> Progress:
        """Bring more of a repository. Raises TransferError."""
        if not self._docker:
            raise TransferError("docker is not on this node: it runs the hub's client of the engine's image")
        if not image:
            raise TransferError("image is missing: the engine's image holds the hub's client")
        files = hub_source.sizes(self._remote, hub)
        target = work / MODEL
        download = Download(self._run, self._docker, image, self._remote, hub.endpoint, target)
        if hub.token:
            node_files.write(self._token_file, hub.token, 0o600)
            download.token_file = self._token_file
        progress = download.fetch(files, self._seconds)
        if progress.done:
            self._token_file.unlink(missing_ok=True)
            check_complete(files, target)
        return progress


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
