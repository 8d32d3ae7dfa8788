# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this scenario's tests share."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(os.environ["MOLECULE_PROJECT_DIRECTORY"]) / "molecule/shared"))

from fixtures import deb12, deb13
from node import Node
from watcher import Watcher

__all__ = ["deb12", "deb13"]


@pytest.fixture(scope="session")
def watcher(deb12: Node) -> Watcher:
    found = Watcher(deb12, "operator", "molecule-watcher-9b7c31", hook=8098)
    found.listen()
    return found
