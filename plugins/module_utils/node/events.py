# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits for signals, the death of a process and finished jobs, all at once. Private to the collection.

One poll() waits for a pidfd and for a socket to which signals and worker threads write. So no time passes between an
event and its handling, and a call that blocks delays neither a signal nor a death.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Job(Generic[T]):
    """A call that may block, on its own thread. The thread is a daemon, so it never delays the exit."""

    def __init__(self, events: Events, work: Callable[[], T]) -> None:
        self.done = False
        self._result: T
        self._error: BaseException | None = None
        self._events = events
        self._work = work
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            self._result = self._work()
        except BaseException as error:
            self._error = error
        self.done = True
        self._events.wake()

    def result(self) -> T:
        """The result of the call, or its exception. Valid only once the job is done."""
        if self._error is not None:
            raise self._error
        return self._result


class Events:
    """Use as a context manager, in the main thread. SIGTERM or SIGINT sets `stop`."""

    def __init__(self) -> None:
        self.stop = False
        self._reader, self._writer = socket.socketpair()
        self._pidfd: int | None = None
        self._handlers: dict[int, object] = {}
        self._wakeup = -1

    def __enter__(self) -> Events:
        for end in (self._reader, self._writer):
            end.setblocking(False)
        self._wakeup = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._handlers = {number: signal.signal(number, self._on_stop) for number in STOP_SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        signal.set_wakeup_fd(self._wakeup)
        self._reader.close()
        self._writer.close()

    def _on_stop(self, number: int, frame: FrameType | None) -> None:
        self.stop = True

    def watch(self, pidfd: int) -> None:
        """Let wait() also return when this process ends."""
        self._pidfd = pidfd

    def forget(self) -> None:
        """Watch no process. The caller closes the descriptor."""
        self._pidfd = None

    def wake(self) -> None:
        """Let wait() return. May be called from any thread."""
        # A full buffer wakes wait(), too. After the socket is closed, nothing waits.
        with contextlib.suppress(OSError):
            self._writer.send(b"\0")

    @property
    def died(self) -> bool:
        """Whether the watched process has ended."""
        if self._pidfd is None:
            return False
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(0))

    def wait(self, timeout: float | None, *, signals: bool = True) -> None:
        """Return after timeout seconds (None: no limit), at a signal, at the process's death, or when a job is done.

        With signals=False, only the death and the timeout count, so that a second SIGTERM shortens no drain.
        """
        poll = select.poll()
        if self._pidfd is not None:
            poll.register(self._pidfd, select.POLLIN)
        if signals:
            poll.register(self._reader, select.POLLIN)
        poll.poll(None if timeout is None else max(0, int(timeout * 1000) + 1))
        with contextlib.suppress(BlockingIOError):
            while self._reader.recv(4096):
                pass


def open_pidfd(pid: int) -> int | None:
    """A descriptor of a process; None if the process is gone."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None
