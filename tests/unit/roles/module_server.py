# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the modules of plays without the start of a Python for each module.

A module as Ansible sends it is a script, which unpacks and compiles Ansible's libraries: most of the time of a small
module. The process here has imported these libraries, and nothing of Ansible's controller. Each module runs in a copy
of this process. A request (script, directory, environment) and its answer (exit status, output, errors) are pickled.
"""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
import traceback
from importlib import import_module
from typing import IO

LIBRARIES = ("ansible.module_utils.basic", "ansible.module_utils._internal._ansiballz._loader")


def run(script: bytes, directory: str, environment: dict[str, str], streams: tuple[IO[bytes], IO[bytes]]) -> None:
    """Become the module. Never returns."""
    status = 1
    try:
        os.chdir(directory)
        os.environ.clear()
        os.environ.update(environment)
        for number, stream in enumerate(streams, 1):
            os.dup2(stream.fileno(), number)
        exec(compile(script, "module", "exec"), {"__name__": "__main__"})
        status = 0
    except SystemExit as ended:
        status = int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Run the requests until their end."""
    while True:
        try:
            script, directory, environment = pickle.load(requests)
        except EOFError:
            return
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            process = os.fork()
            if process == 0:
                run(script, directory, environment, (output, errors))
            _process, status = os.waitpid(process, 0)
            output.seek(0), errors.seek(0)
            pickle.dump((os.waitstatus_to_exitcode(status), output.read(), errors.read()), answers)
            answers.flush()


if __name__ == "__main__":
    for library in LIBRARIES:
        import_module(library)
    # What a module prints goes elsewhere: this process's own output has the answers.
    answers = os.fdopen(os.dup(1), "wb")
    serve(os.fdopen(os.dup(0), "rb"), answers)
