#!/usr/bin/env python3
# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes the place of ssh: calls the real ssh, and records the answer for fleet_answer.py.

FLEET_RECORDING and FLEET_TASK mean the same as in fleet_answer.py. FLEET_NODE is the node's name. The recorded answer
has marks in place of the node's name and address.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress

from fleet_answer import ADDRESS, NAME, count, path_of


def marked(answer: bytes, name: str, address: str) -> bytes:
    """An answer with marks in place of the node's name and address, but not in longer words with them."""
    for text, mark in ((name, NAME), (address, ADDRESS)):
        # Within JSON, a line or a field begins after the letter of an escape.
        pattern = rb"(?:(?<![\w.-])|(?<=\\[nt]))" + re.escape(text.encode()) + rb"(?![\w-]|\.\d)"
        answer = re.sub(pattern, mark, answer)
    return answer


def pass_on(given: list[int], process: subprocess.Popen[bytes]) -> None:
    """Pass Ansible's input to the real ssh, and count the bytes: without any byte, Ansible never closes the input."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        while chunk := os.read(0, 65536):
            given.append(len(chunk))
            process.stdin.write(chunk)
            process.stdin.flush()
        process.stdin.close()


def main(arguments: list[str]) -> int:
    """Call ssh, record the answer, and pass it on. The arguments are ssh's: options, the host, the command."""
    directory, task, host = os.environ["FLEET_RECORDING"], os.environ["FLEET_TASK"], arguments[-2]
    given: list[int] = []
    started = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(["ssh", *arguments], stdin=subprocess.PIPE, stdout=out, stderr=err)
        threading.Thread(target=pass_on, args=(given, process), daemon=True).start()
        status = process.wait()
        seconds = time.monotonic() - started
        out.seek(0)
        err.seek(0)
        answers = [out.read(), err.read()]
    sys.stdout.buffer.write(answers[0])
    sys.stderr.buffer.write(answers[1])
    kept = [marked(answer, os.environ["FLEET_NODE"], host) for answer in answers]
    call = count(os.path.join(directory, "calls"), host, task)
    with open(path_of(directory, task, call), "wb") as answer:
        answer.write(f"{seconds:.3f} {sum(given)} {status} {len(kept[0])}\n".encode() + kept[0] + kept[1])
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
