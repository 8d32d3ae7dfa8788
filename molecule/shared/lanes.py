# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the tests of different nodes at the same time.

With pytest-xdist's --dist loadgroup, the tests of each node run in a separate process, in the order of the files. A
conftest.py imports the two hooks.
"""

from __future__ import annotations

import fcntl
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from node import EPHEMERAL

NODES = ("deb12", "deb13")


def nodes_of(item: pytest.Item) -> list[str]:
    """The nodes that a test uses, by fixture or parameter."""
    names = list(getattr(item, "fixturenames", ()))
    if callspec := getattr(item, "callspec", None):
        names += callspec.params.values()
    return [name for name in NODES if name in names]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test of both nodes runs with the tests of the last node; a test without a node with the tests of the first."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group((nodes_of(item) or NODES[:1])[-1]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Lock the test's nodes against tests in the other process."""
    with ExitStack() as locks:
        # The waiting process holds the lock `turn`, so that the other process cannot take the node for its next test.
        with _lock("turn"):
            for name in nodes_of(item):
                locks.enter_context(_lock(name))
        return (yield)


@contextmanager
def _lock(name: str) -> Iterator[None]:
    with (EPHEMERAL / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
