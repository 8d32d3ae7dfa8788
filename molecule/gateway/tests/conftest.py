# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this scenario's tests share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(os.environ["MOLECULE_PROJECT_DIRECTORY"]) / "molecule/shared"))

from fixtures import deb12, deb13, node
from gateway import Gateway, reset
from lanes import pytest_collection_modifyitems, pytest_runtest_protocol
from node import PROJECT, Node

__all__ = ["deb12", "deb13", "node", "pytest_collection_modifyitems", "pytest_runtest_protocol"]

Node.playbook = str(PROJECT / "molecule/gateway/converge.yml")


@pytest.fixture
def gateway(node: Node) -> Iterator[Gateway]:
    """Each node's gateway, with engines as they were at the beginning, before and after the test."""
    found = Gateway(node)
    reset(found)
    yield found
    reset(found)
