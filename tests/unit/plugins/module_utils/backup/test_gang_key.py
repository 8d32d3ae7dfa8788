# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A gang key that has changed since the snapshot."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.backup import gang_key
from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths

OLD, NEW = "0123456789abcdef-old\n", "0123456789abcdef-new\n"


def node(root: Path, key: str | None) -> Paths:
    """A node, or a snapshot, with a key."""
    if key is not None:
        files.write(Paths(root).gang_key, key, 0o600)
    return Paths(root)


def test_the_key_of_this_node_stays(tmp_path: Path) -> None:
    saved, live = node(tmp_path / "saved", OLD), node(tmp_path / "live", NEW)
    assert gang_key.keep(saved.root, live.root) == [str(live.gang_key)]
    assert saved.gang_key.read_text() == live.gang_key.read_text() == NEW
    assert saved.gang_key.stat().st_mode & 0o777 == 0o600
    assert gang_key.keep(saved.root, live.root) == []


@pytest.mark.parametrize("key", [None, "", " \n"], ids=["missing", "empty", "blank"])
def test_a_node_without_a_key_gets_the_key_of_the_snapshot(tmp_path: Path, key: str | None) -> None:
    saved = node(tmp_path / "saved", OLD)
    assert gang_key.keep(saved.root, node(tmp_path / "live", key).root) == []
    assert saved.gang_key.read_text() == OLD


def test_a_snapshot_without_a_key_stays_without_one(tmp_path: Path) -> None:
    saved = node(tmp_path / "saved", None)
    assert gang_key.keep(saved.root, node(tmp_path / "live", NEW).root) == []
    assert not saved.gang_key.exists()
