# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures that the conftest.py files of scenarios import."""

from __future__ import annotations

import pytest
from lanes import NODES, nodes_of
from node import Node


@pytest.fixture(scope="session")
def deb12() -> Node:
    return Node("deb12")


@pytest.fixture(scope="session")
def deb13() -> Node:
    return Node("deb13")


@pytest.fixture(params=["deb12", "deb13"])
def node(request: pytest.FixtureRequest) -> Node:
    """Each node in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def used(request: pytest.FixtureRequest) -> list[Node]:
    """The nodes that the test uses."""
    return [request.getfixturevalue(name) for name in nodes_of(request.node)]


def _one_of(wanted: str) -> pytest.MarkDecorator:
    """A mark for tests that do not depend on the Debian release: `make test` runs them on the wanted node alone."""
    nodes = [name if name == wanted else pytest.param(name, marks=pytest.mark.full) for name in NODES]
    return pytest.mark.parametrize("node", nodes, indirect=True)


on_deb12 = _one_of("deb12")
on_deb13 = _one_of("deb13")
