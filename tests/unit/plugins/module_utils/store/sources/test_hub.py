# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hub's client in its container, with a fake of Docker."""

from __future__ import annotations

import errno
import http.client
import os
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.store.sources import hub
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.hub import (
    Download,
    Hub,
    excluded,
    sizes,
)
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.remote import Remote
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.transfer import TransferError

REMOTE = Remote("hub", "acme/tiny", "0123456789" * 4)
FILES = {"config.json": 4000, "model.safetensors": 8000}


class Docker:
    """Each started container adds `brings` bytes, and ends with the next exit code of `ends`, if any is left."""

    def __init__(self, target: Path, *ends: int, brings: int = 4096) -> None:
        self._target = target
        self._ends = list(ends)
        self._brings = brings
        self.state = ""
        self.started: list[list[str]] = []

    def __call__(self, argv: list[str]) -> tuple[int, str, str]:
        verb = argv[1]
        if verb == "run":
            self.started.append(argv)
            (self._target / f"part{len(self.started)}").write_bytes(b"x" * self._brings)
            self.state = f"exited {self._ends.pop(0)}" if self._ends else "running 0"
        elif verb == "inspect":
            return (0, self.state, "") if self.state else (1, "", "no such container")
        elif verb == "rm":
            self.state = ""
        elif verb == "logs":
            return 0, "Downloading\n", "Error: the network is unreachable\nHint: set HF_DEBUG\n"
        return 0, "", ""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub.time, "sleep", lambda seconds: None)


def download(docker: Docker, target: Path) -> Download:
    return Download(docker, "docker", "image", REMOTE, "https://mirror.example.com", target)


def test_a_client_that_fails_is_started_again(tmp_path: Path) -> None:
    docker = Docker(tmp_path, 1, 0)
    progress = download(docker, tmp_path).fetch(FILES, 5)
    assert (progress.done, progress.have, len(docker.started)) == (True, 12000, 2)


def test_the_client_keeps_running_between_calls(tmp_path: Path) -> None:
    docker = Docker(tmp_path)
    progress = download(docker, tmp_path).fetch(FILES, 0.05)
    assert (progress.done, progress.have) == (False, 4096)
    # The next call finds the running container.
    download(docker, tmp_path).fetch(FILES, 0.05)
    assert len(docker.started) == 1


def test_a_client_that_fetches_nothing_is_an_error_with_its_last_error_line(tmp_path: Path) -> None:
    with pytest.raises(TransferError, match=r"acme/tiny: no byte arrived .* the network is unreachable"):
        download(Docker(tmp_path, *[1] * 100_000, brings=0), tmp_path).fetch(FILES, 0.05)


def test_the_client_gets_the_commit_the_mirror_and_the_token_in_a_file(tmp_path: Path) -> None:
    docker = Docker(tmp_path, 0)
    made = download(docker, tmp_path)
    made.token_file = tmp_path / "hub-token"
    made.token_file.write_text("secret")
    made.fetch(FILES, 5)
    ((*options, _last),) = docker.started
    said = " ".join(options)
    assert "HF_ENDPOINT=https://mirror.example.com" in said
    assert f"download acme/tiny --revision {REMOTE.digest} --local-dir /model" in said
    assert f"source={made.token_file},target=/run/hub-token,readonly" in said and "secret" not in said
    assert "HF_TOKEN_PATH=/run/hub-token" in said
    assert "--cap-drop ALL" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_client_owns_its_files_and_its_token_until_root_takes_them_back(tmp_path: Path) -> None:
    """The client runs as nobody. The target of a link that the client makes keeps its owner."""
    target, token, secret = tmp_path / "model", tmp_path / "token", tmp_path / "secret"
    (target / "below").mkdir(parents=True)
    for path in (target / "below/earlier", token, secret):
        path.write_text("x")
    (target / "link").symlink_to(secret)
    (target / "links").symlink_to(tmp_path)
    docker = Docker(target, 0)
    client = download(docker, target)
    client.token_file = token
    assert client.fetch(FILES, 5).done

    def owners() -> set[int]:
        return {path.lstat().st_uid for path in (target, *target.rglob("*"), token) if path.name != "part1"}

    assert owners() == {hub.FETCHER} and secret.stat().st_uid == 0
    (argv,) = docker.started
    assert argv[argv.index("--user") + 1] == "65534:65534"
    hub.give(target, 0)
    hub.give(token, 0)
    assert owners() == {0}


def test_a_store_where_root_cannot_take_files_back_is_refused_before_the_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on NFS with root_squash: root acts as nobody, and can make nobody the owner of a file, but not root."""

    def lchown(_path: str, user: int, _group: int) -> None:
        if user != hub.FETCHER:
            raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(hub.os, "geteuid", lambda: 0)
    monkeypatch.setattr(hub.os, "lchown", lchown)
    docker = Docker(tmp_path, 0)
    words = f"{tmp_path}: root cannot change the owner .* root_squash: export the store with no_root_squash"
    with pytest.raises(TransferError, match=words):
        download(docker, tmp_path).fetch(FILES, 5)
    assert docker.started == []


def test_a_container_that_never_started_is_replaced(tmp_path: Path) -> None:
    docker = Docker(tmp_path, 0)
    docker.state = "created 127"
    assert download(docker, tmp_path).fetch(FILES, 1).done
    assert len(docker.started) == 1


def test_files_that_no_engine_reads_are_left_out() -> None:
    assert "*.bin" in excluded({"model.safetensors": 1, "pytorch_model.bin": 1})
    assert "*.bin" not in excluded({"pytorch_model.bin": 1})
    assert "original/*" in excluded({})


def test_a_hub_that_cannot_be_reached_is_an_error() -> None:
    with pytest.raises(TransferError, match=r"the hub http://127\.0\.0\.1:9 does not answer as expected"):
        sizes(REMOTE, Hub("http://127.0.0.1:9"))


def test_an_answer_that_breaks_off_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_words: object) -> None:
        raise http.client.IncompleteRead(b"{")

    monkeypatch.setattr(hub, "ask", broken)
    with pytest.raises(TransferError, match="does not answer as expected: IncompleteRead"):
        sizes(REMOTE, Hub("http://mirror"))
