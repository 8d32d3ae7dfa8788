# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fetches models from the network into the store. Private to the collection.

A model lies in STORE/.incoming until it is complete, checked and hashed. So an incomplete model has no name under which
an engine could load it.
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
from .sources.remote import ARCHIVE, HUB, Remote, record_source
from .sources.transfer import Progress, TransferError
from .store import INCOMING, Store, make_directory

ARCHIVE_FILE = "archive"
MODEL = "model"


class Fetcher:
    """Fetches one model in turns of `seconds`, and publishes it when it is complete."""

    def __init__(
        self,
        store: Store,
        name: str,
        remote: Remote,
        seconds: float,
        paths: Paths,
        run: Run,
        docker: str | None,
        *,
        adapter: bool = False,
    ) -> None:
        self._store = store
        self._adapter = adapter
        self._name = name
        self._remote = remote
        self._seconds = seconds
        self._run = run
        self._docker = docker
        self._token_file = paths.hub_token(remote.key)

    def from_network(self, hub: Hub, image: str) -> tuple[Progress, str | None]:
        """Fetch more of the model from its own source. Returns the progress, and the revision once it is published.

        Raises TransferError, InputError, OSError and ValueError.
        """
        work = workplace(self._store.root, self._name, self._remote)
        forget_peers(self._store.root, self._name)
        make_directory(work)
        progress = self._archive(work) if self._remote.kind == ARCHIVE else self._hub(work, hub, image)
        if not progress.done:
            return progress, None
        return progress, publish(self._store, self._name, self._remote, work, adapter=self._adapter)

    def from_peer(self, host: str, url: str, token: str, manifest: Any) -> Progress:
        """Fetch more of the model from a peer, whose server is at `url`. An empty `url`: the peer shares nothing.

        Raises TransferError, InputError, OSError and ValueError.
        """
        if not url:
            raise TransferError(f"{host} shares no models")
        known = Manifest.from_dict(manifest)
        peer = Peer(host, f"{url}/{self._name}/{known.revision}", token, known)
        return take(self._store, self._name, self._remote, peer, self._seconds)

    def end_download(self) -> None:
        """Stop the hub's client of an earlier run, before another source is used: its container would keep running
        otherwise."""
        if self._remote.kind == HUB:
            if self._docker:
                self._run([self._docker, "rm", "--force", hub_source.container(self._remote)])
            self._token_file.unlink(missing_ok=True)

    def _archive(self, work: Path) -> Progress:
        """Fetch more of an archive, and unpack it when it is complete. Raises TransferError."""
        total = archive.size(self._remote.location)
        progress = archive.fetch(self._remote.location, work / ARCHIVE_FILE, total, self._seconds)
        if progress.done:
            unpack(self._remote, work)
        return progress

    def _hub(self, work: Path, hub: Hub, image: str) -> Progress:
        """Fetch more of a repository. Raises TransferError."""
        if not self._docker:
            raise TransferError("the hub's client needs Docker, which is not on this node: run the role docker first")
        if not image:
            raise TransferError("image is missing: set it to the engine's image, which contains the hub's client")
        files = hub_source.sizes(self._remote, hub)
        target = work / MODEL
        download = Download(self._run, self._docker, image, self._remote, hub.endpoint, target)
        if hub.token:
            node_files.write(self._token_file, hub.token, 0o600)
            download.token_file = self._token_file
        progress = download.fetch(files, self._seconds)
        if progress.done:
            self._token_file.unlink(missing_ok=True)
            hub_source.give(target, 0)
            check_complete(files, target)
        return progress


def workplace(store: Path, name: str, remote: Remote) -> Path:
    """The directory of a transfer. Each source of a model has its own directory."""
    return store / INCOMING / f"{name}.{remote.key}"


def forget_peers(store: Path, name: str) -> None:
    """Remove files that peers have sent. A transfer from the model's own source cannot use them and needs the space."""
    for partial in (store / INCOMING).glob(f"{name}-{'[0-9a-f]' * REVISION_DIGITS}"):
        shutil.rmtree(partial)


def needed(remote: Remote, work: Path, hub: Hub) -> int:
    """Free bytes that the file system needs to fetch a model. Raises TransferError."""
    if remote.kind == ARCHIVE:
        return archive.needed(archive.size(remote.location), work / ARCHIVE_FILE)
    return hub_source.needed(hub_source.sizes(remote, hub), work / MODEL)


def unpack(remote: Remote, work: Path) -> None:
    """Verify a complete archive and unpack it. Removes a wrong archive. Raises TransferError."""
    try:
        archive.verify(work / ARCHIVE_FILE, remote.digest)
    except TransferError:
        shutil.rmtree(work)
        raise
    shutil.rmtree(work / MODEL, ignore_errors=True)
    archive.unpack(work / ARCHIVE_FILE, work / MODEL)


def publish(store: Store, name: str, remote: Remote, work: Path, *, adapter: bool = False) -> str:
    """Publish a fetched model, and record its source. Returns its revision.

    Raises InputError if the model is incomplete.
    """
    where = f"models.{name}"
    manifest, problems = build(work / MODEL, where, store.cache, adapter=adapter)
    if manifest is None:
        # The transfer is complete and has the pinned content, so a second transfer would not help.
        message = f"{remote.location} does not contain a complete model: correct this source, or choose another one"
        raise InputError([*problems, Problem(where, message)])
    plan = store.plan(name, manifest)
    if not plan.published:
        shutil.rmtree(plan.incoming, ignore_errors=True)
        make_directory(plan.incoming.parent)
        (work / MODEL).rename(plan.incoming)
        for relative, file in manifest.files.items():
            # build() has just hashed the file under its former path.
            store.cache.keep(plan.incoming / relative, file.sha256)
        store.publish(plan)
    _settle(store, name, remote, manifest)
    return manifest.revision


def take(store: Store, name: str, remote: Remote, peer: Peer, seconds: float) -> Progress:
    """Fetch more of a model from a peer, and publish it when it is complete.

    Raises TransferError if the peer sends nothing. Raises InputError for wrong files, which are removed.
    """
    # Files from the model's own source are not used here and take space.
    shutil.rmtree(workplace(store.root, name, remote), ignore_errors=True)
    plan = store.plan(name, peer.manifest)
    progress = peer_source.fetch(plan, peer, seconds)
    if progress.done:
        if not plan.published:
            store.publish(plan)
        _settle(store, name, remote, peer.manifest)
    return progress


def _settle(store: Store, name: str, remote: Remote, manifest: Manifest) -> None:
    """Record the source of a model, and remove the directories of all its transfers."""
    record_source(store.root / name, remote, manifest.revision)
    for done in (store.root / INCOMING).glob(f"{name}.{'[0-9a-f]' * len(remote.key)}"):
        shutil.rmtree(done)


def check_complete(files: dict[str, int], directory: Path) -> None:
    """Compare a repository's files with the hub's list. Raises TransferError for a missing file or a wrong size."""
    wrong = [file for file, size in files.items() if not _has(directory / file, size)]
    if wrong:
        raise TransferError(f"the hub's client has ended, but {', '.join(sorted(wrong)[:5])} did not arrive: run again")


def _has(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size
