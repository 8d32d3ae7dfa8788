# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of HAProxy on a gateway, by its admin socket."""

from __future__ import annotations

import re

from node import Node

STATUS, WEIGHT = 17, 18
"""Columns of `show stat`."""


def command(gateway: Node, words: str) -> str:
    """HAProxy's answer to a command."""
    return gateway.run(f"echo '{words}' | socat -t 10 - UNIX-CONNECT:/run/haproxy/admin.sock")


def states(gateway: Node, backend: str, column: int = STATUS) -> dict[str, str]:
    """The status, or another column, of each server of a backend."""
    rows = [line.split(",") for line in command(gateway, "show stat").splitlines()]
    return {row[1]: row[column] for row in rows if row[0] == backend and row[1] != "BACKEND"}


def up(gateway: Node, backend: str) -> list[str]:
    """The servers of a backend that get requests."""
    return sorted(server for server, status in states(gateway, backend).items() if status == "UP")


def pid(gateway: Node) -> str:
    """The number of the process that answers; empty if its answer is empty."""
    found = re.search(r"^Pid: (\d+)$", command(gateway, "show info"), re.MULTILINE)
    return found[1] if found else ""
