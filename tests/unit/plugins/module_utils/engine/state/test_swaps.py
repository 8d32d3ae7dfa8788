# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The note of a swap that is under way."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import swaps

NEVER = "2026-01-01T00:00:00Z"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path)


def test_a_swap_is_noted(paths: Paths) -> None:
    swap = swaps.Swap(1, 2, "a", NEVER)
    assert swaps.read(paths, "main") is None
    assert swaps.begin(paths, "main", swap) is True
    assert swaps.read(paths, "main") == swap
    assert swaps.end(paths, "main") is True
    assert swaps.end(paths, "main") is False
    files.write(paths.swap("main"), "[]")
    assert swaps.read(paths, "main") is None


def test_a_swap_with_other_keys_is_none(paths: Paths) -> None:
    files.write_json(paths.swap("main"), {"schema": 1, "origin": 1})
    assert swaps.read(paths, "main") is None
    files.write_json(paths.swap("main"), {"schema": 2, "origin": 1, "target": 2, "run_id": "a", "since": NEVER})
    assert swaps.read(paths, "main") is None
