# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An archive on a web server: fetched with resume from a real server, and unpacked."""

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

from ansible_collections.baremetal.inference.plugins.module_utils.store.sources import archive as archive_source
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.transfer import TransferError


class Handler(BaseHTTPRequestHandler):
    """Serves one archive. The next answer breaks off after `broken` bytes, if set."""

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
        """Print nothing."""


class Web:
    """A server, and the ranges that were asked for."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.resumes = True
        self.broken: int | None = None
        self.ranges: list[str] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, self))
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
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


def test_a_transfer_continues_where_the_connection_broke(web: Web, tmp_path: Path) -> None:
    web.broken = 1000
    total = archive_source.size(web.url)
    progress = archive_source.fetch(web.url, tmp_path / "a", total, seconds=20)
    assert (progress.done, progress.gained) == (True, len(web.content))
    assert web.ranges == ["", "bytes=1000-"]
    assert (tmp_path / "a").read_bytes() == web.content


def test_bytes_that_have_arrived_stay_between_calls(web: Web, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(web.content[:5000])
    assert archive_source.needed(len(web.content), tmp_path / "a") == 2 * len(web.content) - 5000
    assert archive_source.fetch(web.url, tmp_path / "a", len(web.content), seconds=20).gained == len(web.content) - 5000
    assert web.ranges == ["bytes=5000-"]
    assert archive_source.fetch(web.url, tmp_path / "a", len(web.content), seconds=20).done
    assert len(web.ranges) == 1


def test_a_server_that_cannot_resume_sends_the_whole_archive(web: Web, tmp_path: Path) -> None:
    web.resumes = False
    (tmp_path / "a").write_bytes(b"x" * 5000)
    progress = archive_source.fetch(web.url, tmp_path / "a", len(web.content), seconds=0.2)
    assert progress.done
    assert (tmp_path / "a").read_bytes() == web.content


def test_a_server_that_does_not_answer_is_an_error(web: Web, tmp_path: Path) -> None:
    web.server.shutdown()
    web.server.server_close()
    with pytest.raises(TransferError, match="cannot be reached from this node"):
        archive_source.size(web.url)
    with pytest.raises(TransferError, match="no byte arrived in"):
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
def test_a_single_directory_at_the_top_is_left_out(tmp_path: Path, write_model: Callable[..., Path], top: str) -> None:
    pack(tmp_path / "a", write_model(tmp_path / "source"), top=top)
    archive_source.unpack(tmp_path / "a", tmp_path / "out")
    assert (tmp_path / "out/config.json").is_file()
    assert (tmp_path / "out/templates/chat [1].jinja").is_file()


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil"])
def test_a_file_outside_of_the_target_is_not_unpacked(tmp_path: Path, name: str) -> None:
    member = tarfile.TarInfo(name)
    member.size = 1
    pack(tmp_path / "a", None, member)
    with pytest.raises(TransferError, match="lies outside of the archive"):
        archive_source.unpack(tmp_path / "a", tmp_path / "out")
    assert [path.name for path in tmp_path.rglob("*")] == ["a"]


def test_an_archive_with_a_file_without_a_name_is_an_error(tmp_path: Path) -> None:
    member = tarfile.TarInfo(".")
    member.size = 1
    pack(tmp_path / "a", None, member)
    with pytest.raises(TransferError, match="cannot be unpacked"):
        archive_source.unpack(tmp_path / "a", tmp_path / "out")


def test_links_are_not_unpacked(tmp_path: Path) -> None:
    link = tarfile.TarInfo("m/config.json")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    pack(tmp_path / "a", None, link)
    with pytest.raises(TransferError, match="is a link or a device"):
        archive_source.unpack(tmp_path / "a", tmp_path / "out")


def test_a_file_that_is_no_archive_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("<html>")
    with pytest.raises(TransferError, match="cannot be unpacked"):
        archive_source.unpack(tmp_path / "a", tmp_path / "out")


@pytest.mark.parametrize("form", ["gz", "bz2", "xz"])
def test_an_archive_with_damaged_data_is_an_error(tmp_path: Path, form: str) -> None:
    source = tmp_path / "source"
    source.write_text(
        "".join(hashlib.sha256(bytes([number % 256, number // 256])).hexdigest() for number in range(9000))
    )
    with tarfile.open(tmp_path / "a", f"w:{form}") as archive:  # type: ignore[call-overload]
        archive.add(source, arcname="m/model.safetensors")
    whole, noise = (tmp_path / "a").read_bytes(), b"".join(hashlib.sha256(bytes([each])).digest() for each in range(62))
    half = len(whole) // 2
    (tmp_path / "a").write_bytes(whole[:half] + noise + whole[half + len(noise) :])
    with pytest.raises(TransferError, match="cannot be unpacked"):
        archive_source.unpack(tmp_path / "a", tmp_path / "out")


def test_an_archive_with_another_checksum_is_an_error(tmp_path: Path) -> None:
    checksum = pack(tmp_path / "a")
    archive_source.verify(tmp_path / "a", checksum)
    with pytest.raises(TransferError, match="the archive has a wrong checksum"):
        archive_source.verify(tmp_path / "a", "0" * 64)
