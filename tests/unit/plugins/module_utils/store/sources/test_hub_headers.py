# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The headers of a hub's model: the fetched bytes, and the files on the disk."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import gather
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources import hub_headers
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.hub import Hub
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.remote import Remote
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.transfer import TransferError

from ....fake_hub import COMMIT, SHARD, FakeHub

REMOTE = Remote("hub", "acme/tiny", COMMIT)


def test_a_skeleton_has_the_same_facts_as_the_model(hub: FakeHub, tmp_path: Path) -> None:
    found, real = gather(hub_headers.skeleton(tmp_path / "plans", REMOTE, Hub(hub.url))), gather(hub.root)
    assert (found.weights, found.shards, found.problems) == (real.weights, real.shards, ())
    assert (found.chat_template, found.tokenizer) == ("chat_template.jinja", "tokenizer.json")


def test_only_the_headers_of_weights_are_fetched(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A header that is longer than the first request needs a second request."""
    monkeypatch.setattr(hub_headers, "FIRST", 16)
    (hub.root / "original").mkdir()
    shutil.copy(hub.root / SHARD, hub.root / "original" / SHARD)
    found = gather(hub_headers.skeleton(tmp_path / "plans", REMOTE, Hub(hub.url)))
    assert found.shards == gather(hub.root).shards
    header = struct.unpack("<Q", (hub.root / SHARD).read_bytes()[:8])[0] + 8
    texts = sum(
        each.stat().st_size for each in hub.root.rglob("*") if each.is_file() and each.name in hub_headers.TEXTS
    )
    listing = 2000
    assert hub.sent < 2 * (header + 16) + texts + listing
    assert not [path for path, _who in hub.requests if path.endswith(("tokenizer.json", "chat%20%5B1%5D.jinja"))]


def test_a_commit_is_fetched_once(hub: FakeHub, tmp_path: Path) -> None:
    first = hub_headers.skeleton(tmp_path / "plans", REMOTE, Hub(hub.url))
    hub.requests.clear()
    assert hub_headers.skeleton(tmp_path / "plans", REMOTE, Hub(hub.url)) == first
    assert hub.requests == []


def test_a_fetch_that_failed_is_not_kept(hub: FakeHub, tmp_path: Path) -> None:
    shard = hub.root / SHARD
    content = shard.read_bytes()
    hub.token = "some-token"
    with pytest.raises(TransferError, match="refuses the request"):
        hub_headers.skeleton(tmp_path / "plans", REMOTE, Hub(hub.url))
    assert not [path for path in (tmp_path / "plans").iterdir() if not path.name.startswith(".")]
    hub.token = ""
    shard.write_bytes(content[:-100])
    assert gather(hub_headers.skeleton(tmp_path / "plans", REMOTE, Hub(hub.url))).cut_shards == (SHARD,)


def test_a_hub_that_names_files_outside_of_the_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TransferError, match="outside of the model"):
        hub_headers.fetch(tmp_path / "m", {"../up": 1}, lambda file, first, last: b"x")
    assert not (tmp_path / "up").exists()


def test_a_text_of_absurd_length_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TransferError, match="allowed are"):
        hub_headers.fetch(tmp_path / "m", {"config.json": hub_headers.LARGEST_TEXT + 1}, lambda file, first, last: b"")


def test_a_file_of_weights_without_a_header_keeps_its_size(tmp_path: Path) -> None:
    """The reader of headers reports the mistake."""
    sizes = {"short.safetensors": 4, "absurd.safetensors": 100, "empty.safetensors": 0}
    hub_headers.fetch(tmp_path, sizes, lambda file, first, last: b"\xff" * (last - first))
    assert {path.name: path.stat().st_size for path in tmp_path.iterdir()} == sizes
