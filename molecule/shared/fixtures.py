# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of every scenario; each scenario's conftest.py imports them."""

from __future__ import annotations

import os

import pytest
from lanes import nodes_of
from node import Node

# The containers that are the scenario's nodes, as in .config/molecule/config.yml.
NAMES = {f"deb{release}": f"{os.environ.get('NODES') or 'deb'}{release}" for release in (12, 13)}


@pytest.fixture(scope="session")
def deb12() -> Node:
    return Node(NAMES["deb12"])


@pytest.fixture(scope="session")
def deb13() -> Node:
    return Node(NAMES["deb13"])


@pytest.fixture(params=["deb12", "deb13"])
def node(request: pytest.FixtureRequest) -> Node:
    """Each node in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def used(request: pytest.FixtureRequest) -> list[Node]:
    """The nodes that the test uses."""
    return [request.getfixturevalue(name) for name in nodes_of(request.node)]


def _one_of(wanted: str) -> pytest.MarkDecorator:
    """A test of each node, of which `make test` asks one: the releases do not differ in what it is about."""
    nodes = [name if name == wanted else pytest.param(name, marks=pytest.mark.full) for name in NAMES]
    return pytest.mark.parametrize("node", nodes, indirect=True)


on_deb12 = _one_of("deb12")
on_deb13 = _one_of("deb13")
