# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of every scenario; each scenario's conftest.py imports them."""

from __future__ import annotations

import pytest
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
