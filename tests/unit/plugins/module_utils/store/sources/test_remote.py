# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sources on the network: the keys of an entry, and the record of the store."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.remote import (
    Remote,
    fetched,
    parse,
    record_source,
)

SHA256 = "ab" * 32
COMMIT = "0123456789" * 4


def test_the_checksum_identifies_an_archive_at_any_address() -> None:
    entry = {"model": "https://files.example.com/a/m.tar.gz?x=1", "checksum": f"sha256:{SHA256}"}
    remote = parse(entry)
    assert remote == Remote("archive", entry["model"], SHA256)
    assert parse({**entry, "model": "http://mirror/m.tar"}).identity == remote.identity  # type: ignore[union-attr]


def test_the_commit_identifies_a_hubs_model() -> None:
    remote = parse({"model": "Qwen/Qwen3-8B", "revision": COMMIT})
    assert remote == Remote("hub", "Qwen/Qwen3-8B", COMMIT)
    assert remote.identity == f"Qwen/Qwen3-8B@{COMMIT}"


@pytest.mark.parametrize("text", ["/srv/m", "controller:/srv/m", "", "a/b/c", "../m", "plain"])
def test_directories_and_other_texts_are_no_remote_source(text: str) -> None:
    assert parse({"model": text}) is None


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"model": "https://x/m.tar"}, "needs the key checksum"),
        ({"model": "https://x/m.tar", "checksum": SHA256}, "needs the key checksum"),
        ({"model": "https://x/m.tar", "checksum": f"sha256:{SHA256}\n"}, "needs the key checksum"),
        ({"model": "https://x/m.zip", "checksum": f"sha256:{SHA256}"}, "must be the URL of an archive"),
        ({"model": "Qwen/Qwen3-8B"}, "needs the key revision"),
        ({"model": "Qwen/Qwen3-8B", "revision": "main"}, "needs the key revision"),
    ],
)
def test_a_remote_source_with_a_wrong_url_checksum_or_revision_is_refused(entry: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(entry)


def test_a_damaged_record_counts_as_no_record(tmp_path: Path) -> None:
    remote = Remote("hub", "a/b", COMMIT)
    assert fetched(tmp_path, remote) is None
    (tmp_path / ".sources.json").write_text('{"revisions": []}')
    assert fetched(tmp_path, remote) is None
    record_source(tmp_path, remote, "0" * 12)
    # The store does not have the recorded revision.
    assert fetched(tmp_path, remote) is None
