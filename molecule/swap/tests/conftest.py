# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of this scenario's tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(os.environ["MOLECULE_PROJECT_DIRECTORY"]) / "molecule/shared"))

from fixtures import deb12, deb13, node
from fleet import Fleet
from node import Node, wait_for
from swap_costs import pytest_terminal_summary

__all__ = ["deb12", "deb13", "node", "pytest_terminal_summary"]


@pytest.fixture(scope="session")
def fleet(deb12: Node, deb13: Node) -> Fleet:
    return Fleet(gateway=deb12, nodes=(deb12, deb13), key="swap-load-key-91f0", more_gateways=(deb13,))


@pytest.fixture(scope="session")
def lone(fleet: Fleet) -> Iterator[Fleet]:
    """A fleet of the first node alone. The last test of an only replica starts the engine of the second node."""
    first, second = fleet.nodes
    fleet.wait_up()
    second.run("systemctl stop vllm@main")
    wait_for("only the first node is up", lambda: fleet.up() == [first.name], 60)
    yield fleet.only(first)
    # The last test of an only replica may have failed, or may not be in this run. The second node may be dead.
    second.run("systemctl start --no-block vllm@main", check=False)
