# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trees of files: listed, copied, compared."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.backup import trees
from ansible_collections.baremetal.inference.plugins.module_utils.backup.trees import Difference


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "live"
    (root / "etc/a/tmp").mkdir(parents=True)
    (root / "etc/a/x.json").write_text("x")
    (root / "etc/a/x.json").chmod(0o640)
    (root / "etc/a/tmp/y").write_text("y")
    (root / "etc/a/link").symlink_to("x.json")
    os.mkfifo(root / "etc/a/pipe")
    return root


def test_patterns_select_files_and_directories(root: Path) -> None:
    found = trees.listing(root, ["/etc/*", "/nowhere"], ["/etc/a/tmp"])
    assert {path: one.kind for path, one in found.items()} == {
        "etc/a": "directory",
        "etc/a/x.json": "file",
        "etc/a/link": "link",
    }
    assert found["etc/a/x.json"].mode == 0o640 and found["etc/a/link"].target == "x.json"
    assert "" in trees.walk(root, root)


def test_a_directory_that_becomes_a_file_during_the_listing_is_no_error(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    def replaced(path: Path) -> object:
        if path == root / "etc/a/tmp":
            raise NotADirectoryError(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", replaced)
    assert "etc/a/tmp/y" not in trees.listing(root, ["/etc/*"])


def test_parents_are_the_directories_above() -> None:
    assert trees.parents(["etc/a/x", "etc/b", ""]) == ["etc", "etc/a"]


def test_a_copy_differs_in_nothing(root: Path, tmp_path: Path) -> None:
    saved = trees.listing(root, ["/etc"])
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in sorted(saved):
        trees.copy(root / path, copy / path, saved[path])
    assert trees.compare(saved, root, copy) == []
    assert (copy / "etc/a/x.json").stat().st_mtime_ns == saved["etc/a/x.json"].mtime_ns
    with pytest.raises(FileExistsError):
        trees.copy(root / "etc/a/x.json", copy / "etc/a/x.json", saved["etc/a/x.json"])


def test_nothing_behind_a_link_counts_as_the_content_of_a_saved_directory(root: Path, tmp_path: Path) -> None:
    saved, copy = trees.listing(root, ["/etc"]), tmp_path / "copy"
    copy.mkdir()
    (copy / "etc").symlink_to(root / "etc")
    differences = trees.compare(saved, root, copy)
    assert differences[0] == Difference("etc", ("kind",))
    assert {one.path: one.differs for one in differences[1:]} == {path: ("missing",) for path in saved if path != "etc"}
    below = trees.walk(root / "etc", root / "etc")
    assert {one.differs for one in trees.compare(below, root / "etc", copy / "etc") if one.path} == {("missing",)}


def test_each_difference_is_named(root: Path, tmp_path: Path) -> None:
    saved = trees.listing(root, ["/etc"])
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in sorted(saved):
        trees.copy(root / path, copy / path, saved[path])
    (copy / "etc/a/x.json").write_text("z")
    (copy / "etc/a/x.json").chmod(0o600)
    (copy / "etc/a/link").unlink()
    (copy / "etc/a/link").symlink_to("y")
    (copy / "etc/a/tmp/y").unlink()
    (copy / "etc/a/tmp").rmdir()
    (copy / "etc/a/tmp").write_text("")
    assert trees.compare(saved, root, copy) == [
        Difference("etc/a/link", ("target",)),
        Difference("etc/a/tmp", ("kind",)),
        Difference("etc/a/tmp/y", ("missing",)),
        Difference("etc/a/x.json", ("content", "mode")),
    ]
    (copy / "etc/a/x.json").write_text("longer")
    one = {"etc/a/x.json": saved["etc/a/x.json"]}
    (found,) = trees.compare(one, root, copy, lambda _one: (4711, 4711))
    assert found.differs == ("content", "mode", "owner")
