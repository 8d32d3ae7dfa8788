# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Only root can read a bundle, and a bundle that fails leaves no file."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.node.bundle import archive, item

from ..conftest import unpack

NOW = datetime(2026, 5, 4, 3, 0, tzinfo=UTC)


def test_a_link_at_the_path_of_a_bundle_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "bundle.tar.gz").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        archive.destination(tmp_path / "bundle.tar.gz", NOW)
    with pytest.raises(OSError):
        archive.write(tmp_path / "bundle.tar.gz", [], NOW, {}, lambda _text: None)
    assert not (tmp_path / "elsewhere").exists()


def test_a_bundle_that_cannot_be_written_leaves_no_file(tmp_path: Path) -> None:
    def full(_text: str) -> None:
        raise OSError(28, "No space left on device")

    items: list[Any] = [item.Item("x", "y", lambda: "words", 1)]
    with pytest.raises(OSError, match="No space"):
        archive.write(tmp_path / "b.tar.gz", items, NOW, {}, full)
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_in_a_directory_is_named_by_host_and_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive.socket, "gethostname", lambda: "gpu7")
    name = "inferctl-bundle-gpu7-2026-05-04T030000Z.tar.gz"
    assert archive.destination(tmp_path, NOW) == tmp_path / name
    monkeypatch.setattr(archive, "DIRECTORY", tmp_path)
    assert archive.destination(None, NOW) == tmp_path / name
    (tmp_path / name).write_text("an earlier bundle")
    with pytest.raises(FileExistsError, match="exists already: give another file with --output"):
        archive.destination(tmp_path, NOW)


def test_a_bundle_has_its_parts_and_a_manifest(tmp_path: Path) -> None:
    def absent() -> str:
        raise item.Absent("there is none")

    progress: list[str] = []
    items = [item.Item("a/x.txt", "x -q", lambda: "words\n", 1), item.Item("y", "y", absent, 1)]
    bundle = archive.write(tmp_path / "b.tar.gz", items, NOW, {"since": None}, progress.append)
    assert progress == ["1/2 a/x.txt", "2/2 y"]
    assert bundle.count() == {item.COLLECTED: 1, item.ABSENT: 1}
    assert bundle.path.stat().st_mode & 0o777 == 0o600 and bundle.size == bundle.path.stat().st_size
    found = unpack(bundle.path)
    assert set(found) == {"a/x.txt", "manifest.json"} and found["a/x.txt"] == "words\n"
    manifest = json.loads(found["manifest.json"])
    assert (manifest["schema"], manifest["made"], manifest["since"]) == (1, "2026-05-04T03:00:00Z", None)
    document = bundle.to_json()
    assert document["parts"] == manifest["parts"] and document["path"] == str(bundle.path)
    assert [part["status"] for part in manifest["parts"]] == ["collected", "absent"]
