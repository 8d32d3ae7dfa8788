# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds user, address and port of the SSH session to which a process belongs. Private to the collection."""

from __future__ import annotations

import os
import pwd
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")

CONNECTION = b"SSH_CONNECTION="
"""Client's address and port, server's address and port. Source: ssh(1), ENVIRONMENT"""


@dataclass(frozen=True)
class Login:
    """A session's user, the client's address, and the server's port."""

    user: str
    address: str
    port: int = 0


def login(pid: int | None = None) -> Login | None:
    """The SSH session of a process, by default of this process; None for a process outside SSH sessions.

    The oldest ancestor with the variable SSH_CONNECTION decides: processes below sudo or su have another user.
    """
    found = None
    pid = pid or os.getpid()
    while pid > 1:
        directory = PROC / str(pid)
        try:
            parent = int(directory.joinpath("stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
            uid = directory.stat().st_uid
        except (OSError, IndexError, ValueError):  # The process has ended.
            break
        with suppress(OSError, KeyError, ValueError):
            for item in directory.joinpath("environ").read_bytes().split(b"\0"):
                if item.startswith(CONNECTION):
                    address, _port, _server, port = item.removeprefix(CONNECTION).decode(errors="replace").split()
                    found = Login(pwd.getpwuid(uid).pw_name, address, int(port))
        pid = parent
    return found
