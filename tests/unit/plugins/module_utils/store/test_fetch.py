# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Models from the network: only a complete model is published in the store."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.store import fetch
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.hub import Hub
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.remote import Remote, fetched
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.transfer import Progress, TransferError
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import Store

SHA256 = "ab" * 32
HUB = Remote("hub", "acme/tiny", "0123456789" * 4)


def pack(path: Path, source: Path) -> str:
    """An archive of a directory; returns its checksum."""
    with tarfile.open(path, "w:gz") as archive:
        archive.add(source, arcname="m")
    return hashlib.sha256(path.read_bytes()).hexdigest()


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


def test_a_fetched_model_is_published_and_found_again(tmp_path: Path, source: Path) -> None:
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


def test_an_archive_with_a_wrong_checksum_is_removed(tmp_path: Path, source: Path) -> None:
    bed = Bed(tmp_path, source)
    with pytest.raises(TransferError, match=f"expected sha256 {SHA256}"):
        fetch.unpack(Remote("archive", "https://x/m.tar", SHA256), bed.work)
    assert not bed.work.exists()


def test_an_incomplete_model_is_not_published(tmp_path: Path, source: Path) -> None:
    (source / "model-00002-of-00002.safetensors").unlink()
    bed = Bed(tmp_path, source)
    fetch.unpack(bed.remote, bed.work)
    with pytest.raises(InputError, match="does not contain a complete model"):
        fetch.publish(bed.store, "m", bed.remote, bed.work)
    assert not (bed.store.root / "m").exists()


def test_files_that_did_not_arrive_are_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("12")
    fetch.check_complete({"a": 2}, tmp_path)
    with pytest.raises(TransferError, match="a, b did not arrive"):
        fetch.check_complete({"a": 3, "b": 1}, tmp_path)


# --- in turns


class Calls:
    """Records commands."""

    def __init__(self) -> None:
        self.made: list[list[str]] = []

    def __call__(self, command: list[str]) -> tuple[int, str, str]:
        self.made.append(command)
        return 0, "", ""


def fetcher(root: Path, remote: Remote, run: Calls, docker: str | None = "docker") -> fetch.Fetcher:
    return fetch.Fetcher(Store(root / "store", HashCache()), "m", remote, 5, Paths(root / "node"), run, docker)


def test_an_archive_that_is_complete_is_published(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bed = Bed(tmp_path, source)
    size = (bed.work / "archive").stat().st_size
    monkeypatch.setattr(fetch.archive, "size", lambda _url: size)
    progress, revision = fetcher(tmp_path, bed.remote, Calls()).from_network(Hub(""), "")
    assert progress.done and revision
    assert (bed.store.root / "m" / revision / "manifest.json").is_file()


def test_an_incomplete_archive_has_no_revision(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bed = Bed(tmp_path, source)
    monkeypatch.setattr(fetch.archive, "size", lambda _url: 100)
    monkeypatch.setattr(fetch.archive, "fetch", lambda *_given: Progress(5, 100, 5, 1, done=False))
    assert fetcher(tmp_path, bed.remote, Calls()).from_network(Hub(""), "")[1] is None
    assert not (bed.store.root / "m").exists()


@pytest.mark.parametrize(("docker", "message"), [(None, "needs Docker, which is not"), ("docker", "image is missing")])
def test_a_hub_needs_docker_and_the_image(tmp_path: Path, docker: str | None, message: str) -> None:
    with pytest.raises(TransferError, match=message):
        fetcher(tmp_path, HUB, Calls(), docker).from_network(Hub(""), "")


def test_root_owns_the_files_of_the_hubs_client_before_they_are_published(
    tmp_path: Path, write_model: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client runs as another user, who must not own published files."""
    steps: list[object] = []

    class Client:
        """A client that brings the whole model in one turn."""

        def __init__(self, *given: Any) -> None:
            self.target = given[-1]

        def fetch(self, files: dict[str, int], _seconds: float) -> Progress:
            write_model(self.target)
            total = sum(files.values())
            return Progress(total, total, total, 1, done=True)

    def publish(*_given: Any, **_options: Any) -> str:
        steps.append("publish")
        return "r"

    monkeypatch.setattr(fetch, "Download", Client)
    monkeypatch.setattr(fetch.hub_source, "sizes", lambda _remote, _hub: {"config.json": 1})
    monkeypatch.setattr(fetch.hub_source, "give", lambda path, owner: steps.append((path, owner)))
    monkeypatch.setattr(fetch, "check_complete", lambda _files, _target: None)
    monkeypatch.setattr(fetch, "publish", publish)
    made = fetcher(tmp_path, HUB, Calls())
    assert made.from_network(Hub(""), "image")[1] == "r"
    target = fetch.workplace(tmp_path / "store", "m", HUB) / fetch.MODEL
    assert steps[-2:] == [(target, 0), "publish"]


def test_the_end_of_a_download_removes_its_container_and_token(tmp_path: Path) -> None:
    run, token = Calls(), Paths(tmp_path / "node").hub_token(HUB.key)
    token.parent.mkdir(parents=True)
    token.write_text("secret")
    fetcher(tmp_path, HUB, run).end_download()
    assert run.made == [["docker", "rm", "--force", f"inference-fetch-{HUB.key}"]]
    assert not token.exists()


def test_a_peer_that_shares_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TransferError, match="node7 shares no models"):
        fetcher(tmp_path, HUB, Calls()).from_peer("node7", "", "token", {})
    with pytest.raises(ValueError, match="is not a manifest"):
        fetcher(tmp_path, HUB, Calls()).from_peer("node7", "http://127.0.0.1:9", "token", {})
