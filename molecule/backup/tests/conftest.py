# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of this scenario's tests."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(os.environ["MOLECULE_PROJECT_DIRECTORY"]) / "molecule/shared"))

from fixtures import deb12, deb13, node
from lanes import pytest_collection_modifyitems, pytest_runtest_protocol
from node import Node
from saved import Saved

__all__ = ["deb12", "deb13", "node", "pytest_collection_modifyitems", "pytest_runtest_protocol"]

Node.playbook = "baremetal.inference.backup"


@pytest.fixture
def saved(node: Node) -> Saved:
    """Each node in turn."""
    return Saved(node)


@pytest.fixture
def own(deb13: Node) -> Saved:
    """The node with a local directory as its repository."""
    return Saved(deb13)


@pytest.fixture
def remote(deb12: Node) -> Saved:
    """The node with its repository on an SFTP server."""
    return Saved(deb12)
