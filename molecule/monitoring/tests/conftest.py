# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of this scenario's tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(os.environ["MOLECULE_PROJECT_DIRECTORY"]) / "molecule/shared"))

from fixtures import deb12, deb13
from load import Load, Shape
from node import Node, playbook
from watcher import Watcher

__all__ = ["deb12", "deb13"]


@pytest.fixture(scope="session")
def watcher(deb12: Node) -> Watcher:
    found = Watcher(deb12, "operator", "molecule-watcher-9b7c31", hook=8098)
    found.listen()
    return found


@pytest.fixture(scope="session")
def load(deb12: Node) -> Callable[[int], Load]:
    """A function that takes a number of clients, and returns their load on the gateway."""
    key = "monitoring-load-key-7e20"
    url = f"http://{deb12.address}:8000"
    return lambda clients: Load(url, ("main",), clients, key, (Shape(True, 40),), pause_seconds=0.1)


@pytest.fixture(scope="session")
def saved(deb13: Node) -> Node:
    """A node with one backup."""
    own: dict[str, Any] = {
        "run_backup": True,
        "backup_repository": "/srv/own",
        "backup_password": "molecule-password-2c81e0",
    }
    playbook(deb13.name, name="baremetal.inference.backup", **own)
    return deb13
