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
from fleet import Fleet
from node import Node
from swap_costs import pytest_terminal_summary

__all__ = ["deb12", "deb13", "node", "pytest_terminal_summary"]


@pytest.fixture(scope="session")
def fleet(deb12: Node, deb13: Node) -> Fleet:
    # Clients pause: busy engines would take CI's two cores from the update. A test of a single swap calls busy(), as 20
    # requests must come in its short time.
    return Fleet(gateway=deb12, nodes=(deb12, deb13), key="rolling-load-key-4c1d", pause_seconds=3.0)
