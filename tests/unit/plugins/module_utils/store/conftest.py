# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Other nodes that share a model, each with a real server."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.manifest import File, Manifest
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache
from ansible_collections.baremetal.inference.plugins.module_utils.store.share_server import Handler, Server
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.peer import Peer
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import Store

TOKEN = "a-token"
BIG = "weights/part 1.bin"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A directory that the store accepts as a model."""
    root = tmp_path / "other/m"
    (root / "weights").mkdir(parents=True)
    (root / "config.json").write_text("{}")
    (root / "empty.txt").write_text("")
    (root / BIG).write_bytes(os.urandom(3 << 20))
    return root


@pytest.fixture
def manifest(model: Path) -> Manifest:
    paths = {path.relative_to(model).as_posix(): path for path in model.rglob("*") if path.is_file()}
    digests = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in paths.items()}
    return Manifest({name: File(path.stat().st_size, digests[name]) for name, path in paths.items()}, 0)


class Nodes:
    """Other nodes, each with a server."""

    def __init__(self, model: Path, manifest: Manifest) -> None:
        self.model = model
        self.manifest = manifest
        self.servers: list[Server] = []

    def start(self, handler: type[Handler] = Handler, token: str = TOKEN) -> Peer:
        files = {f"/m/{self.manifest.revision}/{each}": str(self.model / each) for each in self.manifest.files}
        server = Server("127.0.0.1", 0, TOKEN, files)
        # Replaces the handler that Server has set.
        server.RequestHandlerClass = lambda *given: handler(TOKEN, files, *given)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        self.servers.append(server)
        url = f"http://127.0.0.1:{server.server_port}/m/{self.manifest.revision}"
        return Peer(f"node{len(self.servers)}", url, token, self.manifest)


@pytest.fixture
def nodes(model: Path, manifest: Manifest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nodes]:
    # No proxy answers at this address: requests to nodes must use no proxy.
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    nodes = Nodes(model, manifest)
    yield nodes
    for server in nodes.servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", HashCache())
