# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes messages with fields to the journal, for people and programs. Private to the collection.

The journal's protocol allows fields besides the message: `journalctl INFERENCE_INSTANCE=main` finds all messages of an
instance. Source: systemd's documentation "Native Journal Protocol".
"""

# pylint: disable=ansible-bad-function  # a service, which prints where there is no journal
from __future__ import annotations

import socket
import sys
from pathlib import Path

SOCKET = Path("/run/systemd/journal/socket")

WARNING, NOTICE, INFO = 4, 5, 6
"""Priorities of syslog(3)."""


class Journal:
    """Writes entries to the journal, or to stderr if the journal does not take them."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or SOCKET

    def say(self, message: str, priority: int = INFO, **fields: str | int | None) -> None:
        """Write one entry. Names of fields get the prefix INFERENCE_. Fields with the value None are left out."""
        entry = {"MESSAGE": message, "PRIORITY": priority, "SYSLOG_IDENTIFIER": "inferctl"}
        entry |= {f"INFERENCE_{name.upper()}": value for name, value in fields.items() if value is not None}
        # A line break would begin another field.
        lines = "".join(f"{name}={' '.join(str(value).split())}\n" for name, value in entry.items())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
                # A journal that hangs must not block the caller.
                channel.setblocking(False)
                channel.sendto(lines.encode(), str(self._path))
        except OSError:
            print(message, file=sys.stderr, flush=True)
