# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ports of a machine accept connections."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from node import Node

# 4000 ports at a time, for half a second: the nodes are on one machine.
SCAN = """
import select, socket, sys, time
address, ports = sys.argv[1], eval(sys.argv[2])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
for first in range(0, len(ports), 4000):
    waiting = {}
    poll = select.poll()
    for port in ports[first : first + 4000]:
        connection = socket.socket(family)
        connection.setblocking(False)
        connection.connect_ex((address, port))
        poll.register(connection, select.POLLOUT)
        waiting[connection.fileno()] = (port, connection)
    deadline = time.monotonic() + 0.5
    while waiting and time.monotonic() < deadline:
        for number, _ in poll.poll(100):
            port, connection = waiting.pop(number)
            poll.unregister(connection)
            if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                print(port)
            connection.close()
    for _, connection in waiting.values():
        connection.close()
"""


def scan(source: Node, address: str, ports: Sequence[int]) -> list[int]:
    """The TCP ports of an address that accept a connection from the node."""
    command = f"ulimit -n 8192; python3 -c {shlex.quote(SCAN)} {address} '{ports}'"
    return sorted(int(word) for word in source.run(command).split())
