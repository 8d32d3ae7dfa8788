# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sources on the network: what an entry says, what the store remembers, archives fetched from a real server."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.store import fetch
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources import archive as archive_source
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.remote import (
    Remote,
    fetched,
    parse,
    remember,
)
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.transfer import Progress, TransferError
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import Store

SHA256 = "ab" * 32
COMMIT = "0123456789" * 4


def test_an_archive_is_what_its_checksum_says_wherever_it_lies() -> None:
    entry = {"model": "https://files.example.com/a/m.tar.gz?x=1", "checksum": f"sha256:{SHA256}"}
    remote = parse(entry)
    assert remote == Remote("archive", entry["model"], SHA256)
    assert parse({**entry, "model": "http://mirror/m.tar"}).identity == remote.identity  # type: ignore[union-attr]


def test_a_hubs_model_is_what_its_commit_says() -> None:
    remote = parse({"model": "Qwen/Qwen3-8B", "revision": COMMIT})
    assert remote == Remote("hub", "Qwen/Qwen3-8B", COMMIT)
    assert remote.identity == f"Qwen/Qwen3-8B@{COMMIT}"


@pytest.mark.parametrize("text", ["/srv/m", "controller:/srv/m", "", "a/b/c", "../m", "plain"])
def test_others_are_not_fetched(text: str) -> None:
    assert parse({"model": text}) is None


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"model": "https://x/m.tar"}, "needs checksum"),
        ({"model": "https://x/m.tar", "checksum": SHA256}, "needs checksum"),
        ({"model": "https://x/m.zip", "checksum": f"sha256:{SHA256}"}, "must lead to an archive"),
        ({"model": "Qwen/Qwen3-8B"}, "needs revision"),
        ({"model": "Qwen/Qwen3-8B", "revision": "main"}, "needs revision"),
    ],
)
def test_what_is_not_pinned_is_refused(entry: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(entry)


def test_a_damaged_note_costs_a_transfer_and_nothing_else(tmp_path: Path) -> None:
    remote = Remote("hub", "a/b", COMMIT)
    assert fetched(tmp_path, remote) is None
    (tmp_path / ".sources.json").write_text('{"revisions": []}')
    assert fetched(tmp_path, remote) is None
    remember(tmp_path, remote, "0" * 12)
    # Its revision is not there.
    assert fetched(tmp_path, remote) is None


def test_progress_for_people() -> None:
    assert (
        str(Progress(3 << 30, 15 << 30, 1 << 30, 10, done=False))
        == "3.0 GiB of 15.0 GiB, 102.4 MiB a second, 2 min left"
    )
    assert str(Progress(1 << 20, 2 << 40, 1 << 20, 1, done=False)).endswith("582 h 33 min left")
    assert str(Progress(5, 10, 0, 10, done=False)) == "5 bytes of 10 bytes"


class Handler(BaseHTTPRequestHandler):
    """Serves one archive; `broken` answers break off after that many bytes."""

    def __init__(self, state: Web, *arguments: Any) -> None:
        self.state = state
        super().__init__(*arguments)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        asked = self.headers.get("Range", "") if self.state.resumes else ""
        start = int(asked.removeprefix("bytes=").rstrip("-") or 0)
        content = self.state.content[start:]
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(content)))
        if self.state.resumes:
            self.send_header("Accept-Ranges", "bytes")
        self.end_headers()
        if body:
            self.state.ranges.append(asked)
            broken, self.state.broken = self.state.broken, None
            self.wfile.write(content[:broken])

    def log_message(self, *_arguments: object) -> None:
        """Nothing."""


class Web:
    """A server, and what it was asked for."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.resumes = True
        self.broken: int | None = None
        self.ranges: list[str] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, self))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/m.tar"


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(archive_source, "PAUSE", 0.01)
    web = Web(bytes(range(256)) * 1000)
    yield web
    web.server.shutdown()
    web.server.server_close()


def test_a_broken_connection_goes_on_where_it_broke(web: Web, tmp_path: Path) -> None:
    web.broken = 1000
    total = archive_source.size(web.url)
    progress = archive_source.fetch(web.url, tmp_path / "a", total, seconds=20)
    assert (progress.done, progress.gained) == (True, len(web.content))
    assert web.ranges == ["", "bytes=1000-"]
    assert (tmp_path / "a").read_bytes() == web.content


def test_what_has_arrived_stays_between_calls(web: Web, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(web.content[:5000])
    assert archive_source.needed(len(web.content), tmp_path / "a") == 2 * len(web.content) - 5000
    assert archive_source.fetch(web.url, tmp_path / "a", len(web.content), seconds=20).gained == len(web.content) - 5000
    assert web.ranges == ["bytes=5000-"]
    assert archive_source.fetch(web.url, tmp_path / "a", len(web.content), seconds=20).done
    assert len(web.ranges) == 1


def test_a_server_that_cannot_resume_is_asked_for_all_of_it(web: Web, tmp_path: Path) -> None:
    web.resumes = False
    (tmp_path / "a").write_bytes(b"x" * 5000)
    progress = archive_source.fetch(web.url, tmp_path / "a", len(web.content), seconds=0.2)
    assert progress.done
    assert (tmp_path / "a").read_bytes() == web.content


def test_a_server_that_is_gone_is_named(web: Web, tmp_path: Path) -> None:
    web.server.shutdown()
    web.server.server_close()
    with pytest.raises(TransferError, match="cannot be reached from this node"):
        archive_source.size(web.url)
    with pytest.raises(TransferError, match="nothing came in"):
        archive_source.fetch(web.url, tmp_path / "a", 10, seconds=0.1)


def pack(path: Path, source: Path | None = None, *members: tarfile.TarInfo, top: str = "m") -> str:
    """An archive; returns its checksum."""
    with tarfile.open(path, "w:gz") as archive:
        if source:
            archive.add(source, arcname=top)
        for member in members:
            archive.addfile(member, io.BytesIO(b"x" * member.size))
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("top", ["m", "."])
def test_a_directory_that_holds_everything_is_left_out(
    tmp_path: Path, write_model: Callable[..., Path], top: str
) -> None:
    pack(tmp_path / "a", write_model(tmp_path / "source"), top=top)
    archive_source.unpack(tmp_path / "a", tmp_path / "out")
    assert (tmp_path / "out/config.json").is_file()
    assert (tmp_path / "out/templates/chat [1].jinja").is_file()


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil"])
def test_nothing_is_unpacked_outside(tmp_path: Path, name: str) -> None:
    member = tarfile.TarInfo(name)
    member.size = 1
    pack(tmp_path / "a", None, member)
    with pytest.raises(TransferError, match="leads out of the archive"):
        archive_source.unpack(tmp_path / "a", tmp_path / "out")
    assert [path.name for path in tmp_path.rglob("*")] == ["a"]


def test_links_are_not_unpacked(tmp_path: Path) -> None:
    link = tarfile.TarInfo("m/config.json")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    pack(tmp_path / "a", None, link)
    with pytest.raises(TransferError, match="is a link or a device"):
        archive_source.unpack(tmp_path / "a", tmp_path / "out")


def test_what_is_no_archive_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("<html>")
    with pytest.raises(TransferError, match="cannot be unpacked"):
        archive_source.unpack(tmp_path / "a", tmp_path / "out")


class Bed:
    """A complete archive in the workplace of a transfer."""

    def __init__(self, root: Path, source: Path) -> None:
        self.store = Store(root / "store", HashCache())
        checksum = pack(root / "a.tar", source)
        self.remote = Remote("archive", "https://x/m.tar", checksum)
        self.work = fetch.workplace(self.store.root, "m", self.remote)
        self.work.mkdir(parents=True)
        (root / "a.tar").rename(self.work / "archive")


@pytest.fixture
def source(tmp_path: Path, write_model: Callable[..., Path]) -> Path:
    return write_model(tmp_path / "source")


def test_what_was_fetched_is_published_and_found_again(tmp_path: Path, source: Path) -> None:
    bed = Bed(tmp_path, source)
    assert fetched(bed.store.root / "m", bed.remote) is None
    (bed.work.parent / "m.000000000000").mkdir()
    fetch.unpack(bed.remote, bed.work)
    revision = fetch.publish(bed.store, "m", bed.remote, bed.work)
    manifest = fetched(bed.store.root / "m", bed.remote)
    assert manifest
    assert manifest.revision == revision
    plan = bed.store.plan("m", manifest)
    assert (plan.published, plan.damage) == (True, [])
    assert list(bed.work.parent.iterdir()) == []


def test_a_wrong_archive_is_removed(tmp_path: Path, source: Path) -> None:
    bed = Bed(tmp_path, source)
    with pytest.raises(TransferError, match=f"expected sha256 {SHA256}"):
        fetch.unpack(Remote("archive", "https://x/m.tar", SHA256), bed.work)
    assert not bed.work.exists()


def test_an_incomplete_model_gets_no_name(tmp_path: Path, source: Path) -> None:
    (source / "model-00002-of-00002.safetensors").unlink()
    bed = Bed(tmp_path, source)
    fetch.unpack(bed.remote, bed.work)
    with pytest.raises(InputError, match="holds no complete model"):
        fetch.publish(bed.store, "m", bed.remote, bed.work)
    assert not (bed.store.root / "m").exists()


def test_files_that_did_not_arrive_are_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("12")
    fetch.check_complete({"a": 2}, tmp_path)
    with pytest.raises(TransferError, match="a, b did not arrive"):
        fetch.check_complete({"a": 3, "b": 1}, tmp_path)
