# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes files on its own thread. Private to the collection."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from ..core import files


class Writer:
    """Writes the newest text of each file. A disk that hangs or is full does not block the callers.

    A failure is reported once, until the file can be written again.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._wanted: dict[Path, str | None] = {}
        self._failed: dict[Path, str] = {}
        self._idle = True
        self._changed = threading.Condition()
        # A daemon thread, since a disk that hangs must not delay the exit either.
        threading.Thread(target=self._run, daemon=True).start()

    def put(self, path: Path, text: str | None) -> None:
        """Write the text to the file later. None removes the file."""
        with self._changed:
            self._wanted[path] = text
            self._changed.notify_all()

    def flush(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds until every file is written or has failed. Returns whether this was reached."""
        with self._changed:
            return self._changed.wait_for(lambda: self._idle and not self._wanted, timeout)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._idle = True
                self._changed.notify_all()
                self._changed.wait_for(lambda: bool(self._wanted))
                self._idle = False
                path = next(iter(self._wanted))
                text = self._wanted.pop(path)
            self._write(path, text)

    def _write(self, path: Path, text: str | None) -> None:
        try:
            files.write(path, text)
            self._failed.pop(path, None)
        except OSError as error:
            problem = error.strerror or str(error)
            if self._failed.get(path) != problem:
                self._failed[path] = problem
                self._say(f"{path} cannot be written: {problem}")
