# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of this scenario's tests."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(os.environ["MOLECULE_PROJECT_DIRECTORY"]) / "molecule/shared"))

from fixtures import deb12, deb13
from node import Node

__all__ = ["deb12", "deb13", "node"]


@pytest.fixture
def node(deb13: Node) -> Node:
    """The node that this scenario sets up."""
    return deb13
