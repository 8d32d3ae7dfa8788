# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller of the first day, and its two machines."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(os.environ["MOLECULE_PROJECT_DIRECTORY"]) / "molecule/shared"))

from newcomer import Controller
from node import Node


@pytest.fixture(scope="session")
def gateway() -> Node:
    """The machine without a GPU."""
    return Node("deb12")


@pytest.fixture(scope="session")
def gpu() -> Node:
    """The machine with a GPU."""
    return Node("deb13")


@pytest.fixture(scope="session")
def controller(gateway: Node, gpu: Node) -> Controller:
    return Controller([gateway, gpu])
