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

__all__ = ["deb12", "deb13", "node"]


@pytest.fixture(scope="session")
def fleet(deb12: Node, deb13: Node) -> Fleet:
    # Short pauses: a run on a fast machine takes some seconds, in which 20 requests must come.
    return Fleet(gateway=deb12, nodes=(deb12, deb13), key="maintenance-load-key-7be2", pause_seconds=0.5)
