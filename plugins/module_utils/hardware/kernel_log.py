# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the kernel's log since the last boot, from a running node or a copy of its files. Private to the collection."""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from dataclasses import dataclass
from pathlib import Path

RECORD = re.compile(r"[0-9]+,[0-9]+,([0-9]{1,18}),[^;]*;(.*)")
"""A record of /dev/kmsg: level, number, microseconds since boot, flags; text. Source: dev-kmsg of the kernel's ABI
documentation."""

SYSLOG = re.compile(r"^.{0,200}?\bkernel: +")
STAMP = re.compile(r"^\[ *([0-9]{1,12}\.[0-9]{1,9})\] ?")
ESCAPE = re.compile(r"\\x([0-9a-f]{2})")
BOOT = "Linux version "
"""The first message of every boot."""

LARGEST = 16 << 20
"""How many bytes at the end of a file are read: about a hundred thousand lines."""


@dataclass(frozen=True)
class Line:
    """A line of the log; `time_s` is in seconds since boot, None if the log has no times."""

    time_s: float | None
    text: str


def read(root: Path, timeout: float) -> str | None:
    """The log since the last boot below a root: dev/kmsg, live or a plain file, otherwise var/log/kern.log.

    None if it cannot be read. Reading the live log ends after `timeout` seconds, even if the kernel keeps writing.
    """
    kmsg = root / "dev/kmsg"
    try:
        kind = kmsg.stat().st_mode
        if stat.S_ISCHR(kind) and kmsg == Path("/dev/kmsg"):
            return since_boot(_live(kmsg, timeout))
        if stat.S_ISREG(kind):
            return since_boot(_tail(kmsg))
    # Without permission for the live log, the process may still be able to read kern.log.
    except OSError:
        pass
    try:
        return since_boot(_tail(root / "var/log/kern.log"))
    except OSError:
        return None


def since_boot(text: str) -> str:
    """The part of a log from the last boot on. A file may contain several boots."""
    end = len(text)
    while (found := text.rfind(BOOT, 0, end)) >= 0:
        start = text.rfind("\n", 0, found) + 1
        # Only a message that starts with BOOT counts: other messages may quote BOOT.
        if _lines(text[start : found + len(BOOT)])[0].text == BOOT:
            return text[start:]
        end = found
    return text


def about(text: str, word: str, after: int = 0) -> list[Line]:
    """The lines of a log that contain a word, and `after` lines after each, for messages of several lines.

    The log may have the form of /dev/kmsg, dmesg or syslog, with or without time stamps.
    """
    lines: list[Line] = []
    until = -1
    for number, raw in enumerate(text.splitlines()):
        if word in raw:
            until = number + after
        if number <= until:
            lines += _lines(raw)
    return lines


def _lines(raw: str) -> list[Line]:
    """The lines of a record. A message of several lines is one record with escaped line breaks."""
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
    """Every record in the kernel's buffer. Raises OSError without permission, and for another device.

    A container can have another device in place of the log.
    """
    deadline = time.monotonic() + timeout
    records: list[bytes] = []
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        while time.monotonic() < deadline:
            try:
                record = os.read(handle, 8192)
                if not record:
                    raise OSError(errno.ENODATA, "not the kernel's log", str(path))
                records.append(record)
            except BlockingIOError:
                break
            # The record was overwritten. The next read returns the oldest remaining record.
            except BrokenPipeError:
                continue
    finally:
        os.close(handle)
    return b"".join(records).decode("utf-8", errors="replace")
