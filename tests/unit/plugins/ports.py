# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Free ports for tests that start servers."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import socket
from collections.abc import Iterator
from functools import cache

FIRST, SIZE, PARTS = 20000, 1000, 12
"""Ports from 20000 to 31999: the kernel gives none of them to a connection (ip_local_port_range begins at 32768)."""


@cache
def _ports() -> Iterator[int]:
    """The ports of this process of the tests, in random order, repeated without end."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % PARTS
    first = FIRST + SIZE * worker
    return itertools.cycle(random.sample(range(first, first + SIZE), SIZE))


def free_port() -> int:
    """A port that is free at 127.0.0.1 now. Neither a connection nor another process of the tests takes it.

    A port that a test has given back comes again only after all other ports of this process.
    """
    for port in itertools.islice(_ports(), SIZE):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError(f"no port of this process is free: it has {SIZE} from {FIRST} on")
