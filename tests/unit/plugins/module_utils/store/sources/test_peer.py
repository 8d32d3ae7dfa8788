# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model from another node: by the real server, and from ones that lie, break off and die."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import stat
import threading
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.models.manifest import File, Manifest
from ansible_collections.baremetal.inference.plugins.module_utils.store import fetch
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache
from ansible_collections.baremetal.inference.plugins.module_utils.store.share import ShareError, Sharing
from ansible_collections.baremetal.inference.plugins.module_utils.store.share_server import Handler, Server
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources import transfer
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.peer import Peer
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.remote import Remote, fetched
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.transfer import TransferError
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import Store

TOKEN = "a-token"
REMOTE = Remote("hub", "acme/tiny", "0123456789" * 4)
BIG = "weights/part 1.bin"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A directory that holds a model, as far as the store can tell."""
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
        # As Server does it, with another handler.
        server.RequestHandlerClass = lambda *given: handler(TOKEN, files, *given)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.servers.append(server)
        url = f"http://127.0.0.1:{server.server_port}/m/{self.manifest.revision}"
        return Peer(f"node{len(self.servers)}", url, token, self.manifest)


@pytest.fixture
def nodes(model: Path, manifest: Manifest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nodes]:
    # Nobody answers there: nodes are asked without a proxy.
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    nodes = Nodes(model, manifest)
    yield nodes
    for server in nodes.servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", HashCache())


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
    """The same, but only once."""

    alive = True

    def do_GET(self) -> None:
        if "weights" in self.path:
            if not Dies.alive:
                return
            Dies.alive = False
        super().do_GET()


class Lies(Handler):
    """Sends other weights of the same size, and has other files as they are."""

    def _send(self, file: BinaryIO) -> None:
        if "weights" not in self.path:
            super()._send(file)
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(bytes(3 << 20))


class Floods(Handler):
    """Sends much more than it should."""

    def _send(self, _file: BinaryIO) -> None:
        self.send_response(200)
        self.end_headers()
        for _part in range(16):
            self.wfile.write(bytes(1 << 20))


def test_a_model_comes_whole_and_is_noted_as_if_it_were_fetched(store: Store, nodes: Nodes, manifest: Manifest) -> None:
    left = store.root / ".incoming" / f"m.{REMOTE.key}" / "model"
    left.mkdir(parents=True)
    progress = take(store, nodes.start())
    assert (progress.done, progress.have, progress.gained) == (True, manifest.bytes, manifest.bytes)
    assert published(store) == [manifest.revision]
    assert fetched(store.root / "m", REMOTE) == manifest
    # What the node itself had begun to fetch from the network is of no use any more.
    assert list((store.root / ".incoming").iterdir()) == []


def test_a_connection_that_breaks_goes_on_where_it_broke(store: Store, nodes: Nodes) -> None:
    assert take(store, nodes.start(Cut)).done


def test_what_a_dead_node_gave_stays_and_another_gives_the_rest(store: Store, nodes: Nodes) -> None:
    Dies.alive = True
    with pytest.raises(TransferError, match=r"weights/part 1.bin does not come from node1"):
        take(store, nodes.start(Dies))
    assert published(store) == []
    progress = take(store, nodes.start())
    assert (progress.done, progress.gained) == (True, 2 << 20)


def test_a_time_slice_ends_and_the_next_goes_on(store: Store, nodes: Nodes) -> None:
    peer = nodes.start()
    assert not take(store, peer, seconds=0).done
    assert take(store, peer).done


def test_wrong_content_is_named_and_never_published(store: Store, nodes: Nodes, manifest: Manifest) -> None:
    with pytest.raises(InputError, match=r"part 1.bin arrived wrong and was removed"):
        take(store, nodes.start(Lies))
    assert published(store) == []
    # Only that file is brought again.
    assert take(store, nodes.start()).gained == 3 << 20
    assert published(store) == [manifest.revision]


def test_no_more_is_written_than_the_manifest_says(store: Store, nodes: Nodes, manifest: Manifest) -> None:
    with pytest.raises(InputError, match="arrived wrong"):
        take(store, nodes.start(Floods))
    assert sum(path.stat().st_size for path in store.root.rglob("*") if path.is_file()) <= manifest.bytes


def test_who_does_not_know_the_token_gets_nothing(store: Store, nodes: Nodes) -> None:
    with pytest.raises(TransferError, match="403"):
        take(store, nodes.start(token="another"))
    peer = nodes.start()
    for headers in ({}, {"Authorization": "Bearer "}, {"Authorization": TOKEN}, {"Authorization": f"Bearer {TOKEN}x"}):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            transfer.ask(f"{peer.url}/config.json", headers, direct=True)


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../../../etc/passwd",
        "/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/./config.json",
        "/weights/../config.json",
        "/config.json?x",
        "/",
        "/manifest.json",
    ],
)
def test_only_what_is_listed_is_given(nodes: Nodes, path: str) -> None:
    peer = nodes.start()
    with pytest.raises(urllib.error.HTTPError, match="404"):
        transfer.ask(f"{peer.url}{path}", {"Authorization": f"Bearer {TOKEN}"}, direct=True)


@pytest.mark.parametrize("asked", ["bytes=2-", "bytes=99-", "bytes=0-1", "bytes=-1", "lines=1-"])
def test_a_range_that_is_not_there_is_refused(nodes: Nodes, asked: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Range": asked}
    with pytest.raises(urllib.error.HTTPError, match="416"):
        transfer.ask(f"{nodes.start().url}/config.json", headers, direct=True)


def test_a_node_that_has_it_already_takes_nothing(store: Store, nodes: Nodes) -> None:
    take(store, nodes.start())
    progress = take(store, Peer("gone", "http://127.0.0.1:9", TOKEN, nodes.manifest))
    assert (progress.done, progress.gained) == (True, 0)


# --- the unit


class Machine:
    """Remembers what it was told to run."""

    def __init__(self, code: int = 0) -> None:
        self.code = code
        self.calls: list[list[str]] = []
        self.given: dict[str, Any] = {}

    def __call__(self, command: list[str]) -> tuple[int, str, str]:
        self.calls.append(command)
        for word in command:
            if word.startswith("--property=StandardInput=file:"):
                file = Path(word.partition("file:")[2])
                assert stat.S_IMODE(file.stat().st_mode) == 0o600
                self.given = json.loads(file.read_text())
        return (self.code if command[0] == "systemd-run" else 0), "Traceback\nOSError: cannot bind\nexited", ""


@pytest.fixture
def shared(store: Store, nodes: Nodes) -> Store:
    take(store, nodes.start())
    return store


def test_the_token_is_in_no_command_and_stays_in_no_file(tmp_path: Path, shared: Store, manifest: Manifest) -> None:
    machine, root = Machine(), tmp_path / "root"
    sharing = Sharing(machine, Paths(root))
    share = sharing.start(shared.root, {"m": manifest.revision}, "192.0.2.7", 5003, 600)
    assert (share.url, share.manifests) == ("http://192.0.2.7:5003", {"m": manifest})
    assert len(share.token) >= 32
    (command,) = [call for call in machine.calls if call[0] == "systemd-run"]
    assert not [word for word in command if share.token in word]
    assert "--property=RuntimeMaxSec=600" in command and "--property=DynamicUser=yes" in command
    assert f"--property=BindReadOnlyPaths={shared.root}/m/{manifest.revision}" in command
    assert (machine.given["token"], machine.given["address"]) == (share.token, "192.0.2.7")
    assert set(machine.given["files"]) == {f"/m/{manifest.revision}/{each}" for each in manifest.files}
    assert not [path for path in root.rglob("*") if path.is_file() and share.token.encode() in path.read_bytes()]
    assert sharing.start(shared.root, {"m": manifest.revision}, "192.0.2.7", 5003, 600).token != share.token
    assert sharing.stop()
    assert machine.calls[-1] == ["systemctl", "stop", "--quiet", "inference-share.service"]
    assert not (root / "run/inference/share").exists()


def test_what_was_installed_is_the_whole_server(tmp_path: Path, shared: Store, manifest: Manifest) -> None:
    """By Debian's Python alone, with nothing of Ansible."""
    Sharing(Machine(), Paths(tmp_path)).start(shared.root, {"m": manifest.revision}, "::1", 5003, 600)
    installed = tmp_path / "run/inference/share"
    assert sorted(path.name for path in installed.rglob("*.py")) == [
        "__init__.py",
        "__init__.py",
        "__init__.py",
        "share_server.py",
        "systemd.py",
    ]
    assert "from share.store.share_server import main" in (installed / "serve").read_text()


def test_a_node_that_cannot_share_says_why(tmp_path: Path, shared: Store, manifest: Manifest) -> None:
    given = (shared.root, {"m": manifest.revision})
    with pytest.raises(ShareError, match="model_store_peer_address"):
        Sharing(Machine(), Paths(tmp_path)).start(*given, "", 5003, 600)
    with pytest.raises(ShareError, match="port 5003: OSError: cannot bind"):
        Sharing(Machine(code=1), Paths(tmp_path)).start(*given, "192.0.2.7", 5003, 600)
    (shared.root / "m" / manifest.revision / "manifest.json").write_text("{}")
    with pytest.raises(ShareError, match="its manifest"):
        Sharing(Machine(), Paths(tmp_path)).start(*given, "192.0.2.7", 5003, 600)
