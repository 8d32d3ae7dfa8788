# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sends commands to a running HAProxy through its socket. Private to the collection."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

from .stat import BACKEND, FRONTEND, rows

SECONDS = 10.0
"""Seconds for one answer."""

Ask = Callable[[str], str]
"""Sends a command, and returns the answer. Raises OSError."""


class RuntimeRefusal(Exception):
    """HAProxy refused a command; the text is HAProxy's own."""


def ask(path: Path) -> Ask:
    """A function that sends commands to the socket at `path`."""

    def send(command: str) -> str:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(SECONDS)
            connection.connect(str(path))
            connection.sendall(command.encode() + b"\n")
            # HAProxy closes the connection after the answer, and some commands wait for the end of the input.
            connection.shutdown(socket.SHUT_WR)
            parts = []
            while part := connection.recv(1 << 16):
                parts.append(part)
        return b"".join(parts).decode("utf-8", errors="replace").strip()

    return send


def worker(send: Ask) -> int | None:
    """The process id of the HAProxy that serves now; None if there is no answer."""
    try:
        found = re.search(r"^Pid: (\d+)$", send("show info"), re.M)
    except OSError:
        return None
    return int(found[1]) if found else None


def replace_map(send: Ask, name: str, text: str) -> None:
    """Replace a whole map at once, while requests use it. Raises RuntimeRefusal and OSError."""
    answer = send(f"prepare map {name}")
    version = re.search(r"New version created: (\d+)", answer)
    if not version:
        raise RuntimeRefusal(f"prepare map {name}: {answer}")
    # An empty line ends the lines to add.
    steps = [f"add map @{version[1]} {name} <<\n{text}"] if text else []
    for step in [*steps, f"commit map @{version[1]} {name}"]:
        answer = send(step)
        if answer:
            raise RuntimeRefusal(f"{step.splitlines()[0]}: {answer}")


def server_states(send: Ask) -> Mapping[str, Mapping[str, str]]:
    """The status of each server by backend, as `show stat` shows it: UP, DOWN 1/2, DRAIN … Raises OSError."""
    found: dict[str, dict[str, str]] = {}
    for row in rows(send("show stat")):
        if row["svname"] not in (FRONTEND, BACKEND):
            found.setdefault(row["pxname"], {})[row["svname"]] = row["status"]
    return found
