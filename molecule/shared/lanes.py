# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of different nodes side by side.

With pytest-xdist's --dist loadgroup, each node's tests run in a process of their own, in the order in which they stand.
A conftest.py imports the two hooks.
"""

from __future__ import annotations

import fcntl
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from node import EPHEMERAL

NODES = ("deb12", "deb13")


def nodes_of(item: pytest.Item) -> list[str]:
    """The nodes that a test or a fixture of it names."""
    names = list(getattr(item, "fixturenames", ()))
    if callspec := getattr(item, "callspec", None):
        names += callspec.params.values()
    return [name for name in NODES if name in names]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test of both nodes goes with those of the last; one of none with those of the first."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group((nodes_of(item) or NODES[:1])[-1]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Hold the test's nodes, so that one of both nodes does not meet what the other process does to one of them."""
    with ExitStack() as held:
        # Who waits for a node has the turn: the other process cannot take it again for its own next test.
        with _lock("turn"):
            for name in nodes_of(item):
                held.enter_context(_lock(name))
        return (yield)


@contextmanager
def _lock(name: str) -> Iterator[None]:
    with (EPHEMERAL / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
