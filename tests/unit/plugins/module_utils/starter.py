# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts programs of the node tool, and fake engines, as copies of a Python that has imported what the programs need.

The start of a Python for each program would take most of the program's time.

A request is pickled: a program to start, or the number of a process whose exit status is wanted. The answer is the
number of the new process, or the exit status.
"""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from importlib import import_module
from typing import IO

IMPORTED = ("inference.node.supervisor", "inference.node.gang.follows", "inference.node.gang.leads", "http.server")
"""Modules of the node tool's library, and a module for fake engines."""


def run(code: str, arguments: list[str], environment: dict[str, str], errors: str) -> None:
    """Become the program, whose errors go to a file. Never returns."""
    status = 1
    try:
        os.environ.clear()
        os.environ.update(environment)
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
        sys.argv = ["program", *arguments]
        exec(compile(code, "program", "exec"), {"__name__": "__main__"})
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def ended(process: int) -> int | None:
    """The exit status of a process; None while it runs."""
    found, status = os.waitpid(process, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests until their end."""
    while True:
        try:
            asked = pickle.load(requests)
        except EOFError:
            return
        answer: int | None
        if isinstance(asked, int):
            answer = ended(asked)
        else:
            answer = os.fork()
            if answer == 0:
                run(*asked)
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    for name in IMPORTED:
        import_module(name)
    serve(sys.stdin.buffer, sys.stdout.buffer)
