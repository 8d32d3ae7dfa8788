# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model from another node: from the real server, and from servers that break off, die or send wrong data."""

from __future__ import annotations

import socket
from typing import BinaryIO

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.models.manifest import Manifest
from ansible_collections.baremetal.inference.plugins.module_utils.store import fetch
from ansible_collections.baremetal.inference.plugins.module_utils.store.share_server import Handler
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources import transfer
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.peer import Peer
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.remote import Remote, fetched
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.transfer import TransferError
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import Store

from ..conftest import TOKEN, Nodes

REMOTE = Remote("hub", "acme/tiny", "0123456789" * 4)


def take(store: Store, peer: Peer, seconds: float = 20) -> transfer.Progress:
    return fetch.take(store, "m", REMOTE, peer, seconds)


def published(store: Store) -> list[str]:
    return sorted(path.name for path in store.root.glob("[!.]*/[0-9a-f]*"))


class Cut(Handler):
    """Sends a third of the weights each time, then the connection breaks."""

    def _give(self, file: BinaryIO, start: int, count: int) -> None:
        super()._give(file, start, min(count, 1 << 20))
        self.connection.shutdown(socket.SHUT_RDWR)


class Dies(Cut):
    """Sends a third of the weights once. Later requests for weights get no answer."""

    alive = True

    def do_GET(self) -> None:
        if "weights" in self.path:
            if not Dies.alive:
                return
            Dies.alive = False
        super().do_GET()


class Lies(Handler):
    """Sends wrong weights of the right size, and all other files as they are."""

    def _send(self, file: BinaryIO) -> None:
        if "weights" not in self.path:
            super()._send(file)
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(bytes(3 << 20))


class Floods(Handler):
    """Sends much more than the file has."""

    def _send(self, _file: BinaryIO) -> None:
        self.send_response(200)
        self.end_headers()
        for _part in range(16):
            self.wfile.write(bytes(1 << 20))


def test_a_model_from_a_peer_is_published_and_recorded_as_fetched(
    store: Store, nodes: Nodes, manifest: Manifest
) -> None:
    left = store.root / ".incoming" / f"m.{REMOTE.key}" / "model"
    left.mkdir(parents=True)
    progress = take(store, nodes.start())
    assert (progress.done, progress.have, progress.gained) == (True, manifest.bytes, manifest.bytes)
    assert published(store) == [manifest.revision]
    assert fetched(store.root / "m", REMOTE) == manifest
    # The node's own unfinished transfer from the network is removed.
    assert list((store.root / ".incoming").iterdir()) == []


def test_a_transfer_continues_after_each_broken_connection(store: Store, nodes: Nodes) -> None:
    assert take(store, nodes.start(Cut)).done


def test_the_bytes_of_a_dead_node_stay_and_another_node_sends_the_rest(store: Store, nodes: Nodes) -> None:
    Dies.alive = True
    with pytest.raises(TransferError, match=r"weights/part 1.bin does not arrive from node1"):
        take(store, nodes.start(Dies))
    assert published(store) == []
    progress = take(store, nodes.start())
    assert (progress.done, progress.gained) == (True, 2 << 20)


def test_a_turn_ends_and_the_next_turn_continues(store: Store, nodes: Nodes) -> None:
    peer = nodes.start()
    assert not take(store, peer, seconds=0).done
    assert take(store, peer).done


def test_wrong_content_is_an_error_and_is_not_published(store: Store, nodes: Nodes, manifest: Manifest) -> None:
    with pytest.raises(InputError, match=r"part 1.bin arrived wrong and was removed"):
        take(store, nodes.start(Lies))
    assert published(store) == []
    # Only this file is fetched again.
    assert take(store, nodes.start()).gained == 3 << 20
    assert published(store) == [manifest.revision]


def test_no_file_gets_more_bytes_than_its_size_in_the_manifest(store: Store, nodes: Nodes, manifest: Manifest) -> None:
    with pytest.raises(InputError, match="arrived wrong"):
        take(store, nodes.start(Floods))
    assert sum(path.stat().st_size for path in store.root.rglob("*") if path.is_file()) <= manifest.bytes


def test_a_client_without_the_token_gets_nothing(store: Store, nodes: Nodes) -> None:
    with pytest.raises(TransferError, match="403"):
        take(store, nodes.start(token="another"))


def test_a_node_that_has_the_model_fetches_nothing(store: Store, nodes: Nodes) -> None:
    take(store, nodes.start())
    progress = take(store, Peer("gone", "http://127.0.0.1:9", TOKEN, nodes.manifest))
    assert (progress.done, progress.gained) == (True, 0)
