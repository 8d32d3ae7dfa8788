# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the kernel's log since the last boot, of a running node or of a copy of its files. Private to the
collection."""

from __future__ import annotations

import os
import re
import stat
import time
from dataclasses import dataclass
from pathlib import Path

RECORD = re.compile(r"[0-9]+,[0-9]+,([0-9]+),[^;]*;(.*)")
"""A record of /dev/kmsg: level, number, microseconds since boot, flags; text. Source: dev-kmsg of the kernel's ABI
documentation."""

SYSLOG = re.compile(r"^.{0,200}?\bkernel: +")
STAMP = re.compile(r"^\[ *([0-9]+\.[0-9]+)\] ?")
ESCAPE = re.compile(r"\\x([0-9a-f]{2})")
BOOT = re.compile(r"Linux version [0-9]")

LARGEST = 64 << 20
"""Bytes of a file that are read, the last ones."""


@dataclass(frozen=True)
class Line:
    """A line of the log; `time_s` is seconds since boot, None where the log has none."""

    time_s: float | None
    text: str


def read(root: Path, timeout: float) -> list[Line] | None:
    """The log below a root: dev/kmsg, live or a plain file, else var/log/kern.log. None where it cannot be read.

    Reading the live log ends after `timeout` seconds, however fast the kernel writes.
    """
    kmsg = root / "dev/kmsg"
    try:
        kind = kmsg.stat().st_mode
        if stat.S_ISCHR(kind) and kmsg == Path("/dev/kmsg"):
            return parse(_live(kmsg, timeout))
        if stat.S_ISREG(kind):
            return parse(_tail(kmsg))
    # Without the right to read the live log, a container or a user may still have the file.
    except OSError:
        pass
    try:
        return parse(_tail(root / "var/log/kern.log"))
    except OSError:
        return None


def parse(text: str) -> list[Line]:
    """The lines since the last boot, of any form: records of /dev/kmsg, dmesg, or syslog, with or without time."""
    lines: list[Line] = []
    for raw in text.splitlines():
        for line in _lines(raw):
            # A file goes on over boots.
            if BOOT.match(line.text):
                lines = []
            lines.append(line)
    return lines


def _lines(raw: str) -> list[Line]:
    """A record as lines: a message of several is one record, its line breaks escaped."""
    if match := RECORD.match(raw):
        text = ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), match[2])
        return [Line(int(match[1]) / 1e6, part) for part in text.splitlines() or [""]]
    text = SYSLOG.sub("", raw, count=1)
    match = STAMP.match(text)
    return [Line(float(match[1]), text[match.end() :]) if match else Line(None, text)]


def _tail(path: Path) -> str:
    with open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - LARGEST))
        return file.read(LARGEST).decode("utf-8", errors="replace")


def _live(path: Path, timeout: float) -> str:
    """Every record that the kernel's buffer holds. Raises OSError where it may not be read."""
    deadline = time.monotonic() + timeout
    records: list[bytes] = []
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        while time.monotonic() < deadline:
            try:
                records.append(os.read(handle, 8192))
            except BlockingIOError:
                break
            # Overwritten before it was read: the next read goes on with the oldest that is left.
            except BrokenPipeError:
                continue
    finally:
        os.close(handle)
    return b"".join(records).decode("utf-8", errors="replace")
