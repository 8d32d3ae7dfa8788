# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Directories where users can write: created only below the root, and never through a symbolic link."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import directories
from ansible_collections.baremetal.inference.plugins.module_utils.debian.directories import DirectoryError

ME = (os.getuid(), os.getgid())


def test_a_created_directory_has_the_declared_owner_and_mode(tmp_path: Path) -> None:
    root = str(tmp_path)
    assert directories.identify(root, "a/b") is None
    directories.make_all(root, [("a", (*ME, 0o750)), ("a/b", (*ME, 0o2770))])
    assert directories.identify(root, "a") == (*ME, 0o750)
    assert directories.identify(root, "a/b") == (*ME, 0o2770)
    directories.make(root, "a/b", (*ME, 0o700))
    assert stat.S_IMODE((tmp_path / "a/b").stat().st_mode) == 0o700


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_link_or_a_file_in_place_of_a_directory_is_refused(tmp_path: Path, kind: str) -> None:
    """With a link, a user could have root write below /etc."""
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    root.mkdir()
    elsewhere.mkdir()
    (root / "a").symlink_to(elsewhere) if kind == "link" else (root / "a").touch()
    with pytest.raises(DirectoryError, match="a is a file or a symbolic link"):
        directories.make(str(root), "a/b", (*ME, 0o755))
    with pytest.raises(DirectoryError, match="remove a"):
        directories.identify(str(root), "a/b")
    assert list(elsewhere.iterdir()) == []


def test_owners_are_found_by_name_and_by_number() -> None:
    assert directories.identity("1234", "passwd") == 1234
    assert directories.identity("root", "passwd") == directories.identity("root", "group") == 0
    with pytest.raises(DirectoryError, match="'no-one-at-all' is not in the node's group database"):
        directories.identity("no-one-at-all", "group")
