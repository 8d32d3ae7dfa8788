# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node in memory that serves release 1, and keeps release 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from .fake_node import FakeNode


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNode:
    node = FakeNode(tmp_path, monkeypatch)
    node.serve()
    return node
