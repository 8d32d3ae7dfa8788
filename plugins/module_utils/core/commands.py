# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a program with a strict time limit, even for a program that hangs. Private to the collection."""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

SYSTEM_DIRECTORIES = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Directories to search after those in PATH: the PATH of an SSH login has no sbin directories."""

OUTPUT_LIMIT = 16 << 20
"""Bytes of output after which a program counts as broken. The longest normal report, of sixteen GPUs, has 0.5 MB."""

KILL_SECONDS = 1.0
"""Seconds to wait for the end of a killed program. A program that waits in the kernel (state D) may never end."""

NOT_INSTALLED, NOT_RUNNABLE, TIMEOUT, ENDLESS = "not_installed", "not_runnable", "timeout", "endless_output"


@dataclass(frozen=True)
class Outcome:
    """The result of a run. The output includes text that was printed before a failure."""

    code: int | None
    """The exit status, negative for a signal; None with a `failure`."""
    stdout: str = ""
    stderr: str = ""
    failure: str | None = None
    """Why there is no exit status: `not_installed`, `not_runnable`, `timeout` or `endless_output`."""
    message: str = ""
    """The failure as text for an operator."""


def run(
    command: Sequence[str], timeout: float, environment: Mapping[str, str] | None = None, *, stdin: str = ""
) -> Outcome:
    """Run a program for at most `timeout` seconds. At the end, kill the processes of its process group.

    Returns at most KILL_SECONDS after the timeout, even if the program hangs in the kernel and keeps running. The
    program's messages are in English. `environment` is added to the caller's environment. `stdin` must fit into a
    pipe, as PIPE_BUF bytes (4096) always do: the time limit does not count while it is written. Raises nothing.
    """
    deadline = time.monotonic() + timeout
    path = f"{os.environ.get('PATH') or os.defpath}:{SYSTEM_DIRECTORIES}"
    program = shutil.which(command[0], path=path)
    if program is None:
        # A name without a directory is not a file of the current directory.
        there = bool(os.path.dirname(command[0])) and os.path.isfile(command[0])
        message = f"{command[0]} is not executable" if there else f"{command[0]} is not installed"
        return Outcome(None, failure=NOT_RUNNABLE if there else NOT_INSTALLED, message=message)
    try:
        process = subprocess.Popen(
            [program, *command[1:]],
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C.UTF-8", "LANGUAGE": "", **(environment or {})},
            # In a new process group, so that processes that the program starts are killed with it.
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return Outcome(None, failure=NOT_RUNNABLE, message=f"{command[0]} cannot be run: {error}")
    if process.stdin:
        # A program that ends without reading its input is no error here: the exit status decides.
        with suppress(BrokenPipeError), process.stdin:
            process.stdin.write(stdin.encode())
    return _watch(process, command[0], timeout, deadline)


def _watch(process: subprocess.Popen[bytes], name: str, timeout: float, deadline: float) -> Outcome:
    pipes = [pipe for pipe in (process.stdout, process.stderr) if pipe]
    output = {pipe.fileno(): bytearray() for pipe in pipes}
    # Readable when the process has ended, even if other processes still hold its pipes. Source: pidfd_open(2).
    end = os.pidfd_open(process.pid)
    failure, message = None, ""
    try:
        with selectors.DefaultSelector() as selector:
            for handle in (*output, end):
                selector.register(handle, selectors.EVENT_READ)
            while True:
                left = deadline - time.monotonic()
                # At most an hour at once: the system call accepts no more than 24 days.
                ready = [key.fd for key, _events in selector.select(min(max(left, 0), 3600))]
                for handle in ready:
                    if handle != end and not _read(handle, output[handle]):
                        selector.unregister(handle)
                if sum(map(len, output.values())) > OUTPUT_LIMIT:
                    failure, message = ENDLESS, f"{name} printed more than {OUTPUT_LIMIT >> 20} MiB and was stopped"
                    break
                # The process has ended, and all its output has been read.
                if ready == [end]:
                    break
                if left <= 0:
                    failure, message = TIMEOUT, f"{name} did not end within {timeout:g} s"
                    break
        # Before poll(), no other process can get this id. PermissionError: a process that changed its user.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        if not _ended(end):
            message += f". A kill did not end it: process {process.pid} hangs in the kernel"
        code = process.poll()
    finally:
        os.close(end)
        for pipe in pipes:
            pipe.close()
    out, err = (bytes(part).decode("utf-8", errors="replace") for part in output.values())
    return Outcome(None if failure else code, out, err, failure, message)


def _read(handle: int, into: bytearray) -> bool:
    """Read the present content of a pipe; False at its end."""
    data = os.read(handle, 1 << 16)
    into += data
    return bool(data)


def _ended(pidfd: int) -> bool:
    """Wait up to KILL_SECONDS for the end of a process. Returns whether it has ended."""
    with selectors.DefaultSelector() as selector:
        selector.register(pidfd, selectors.EVENT_READ)
        return bool(selector.select(KILL_SECONDS))
