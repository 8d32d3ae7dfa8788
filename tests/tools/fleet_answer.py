#!/usr/bin/env -S python3 -IS
# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stands in for ssh: answers as any of many nodes, from what fleet_record.py recorded of one.

Ansible starts this file in place of ssh, so that a task of a simulated node costs the controller a process, as a real
one does. The file imports almost nothing, so that the process costs about what ssh costs. The environment says the
rest (tests/tools/bench_fleet.py, fleet_callback/fleet_task.py): FLEET_RECORDING, the directory; FLEET_STATE, where the
calls of a run are counted; FLEET_TASK, the key of the task, and FLEET_TASK_NAME, its name for people.
"""

from __future__ import annotations

import os
import sys
import time

UNANSWERED = 255
"""What ssh exits with where it does not reach a host."""

NAME, ADDRESS = b"\0name\0", b"\0address\0"
"""Stand in an answer where the recorded node named itself."""


def path_of(directory: str, task: str, call: int) -> str:
    """Where the answer to a task's call of that number is kept, from 0 on."""
    return os.path.join(directory, f"{task}.{call}")


def count(directory: str, host: str, task: str) -> int:
    """How often a task has asked a host before. The calls of one host come one after another."""
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, f"{host}.{task}"), "ab") as calls:
        calls.write(b".")
        return calls.tell() - 1


def name_of(directory: str, host: str) -> str:
    """The name of the node at an address."""
    with open(os.path.join(directory, "nodes")) as nodes:
        return next(line.split()[1] for line in nodes if line.startswith(f"{host} "))


def main() -> int:
    """Answer as the recorded node did, after as long.

    A call too many, as of a task that all hosts delegate to one of them, gets the task's last answer.
    """
    directory, task, host = os.environ["FLEET_RECORDING"], os.environ["FLEET_TASK"], sys.argv[-2]
    call = count(os.environ["FLEET_STATE"], host, task)
    while call >= 0 and not os.path.exists(path_of(directory, task, call)):
        call -= 1
    if call < 0:
        sys.stderr.write(f"{os.environ['FLEET_TASK_NAME']}: the recorded node was not asked this\n")
        return UNANSWERED
    with open(path_of(directory, task, call), "rb") as kept:
        seconds, given, status, length = kept.readline().split()
        answer = kept.read()
    # Ansible ends the input of a command only where it has written some.
    if int(given):
        sys.stdin.buffer.read()
    time.sleep(float(seconds))
    name = name_of(directory, host).encode()
    for stream, text in ((sys.stdout, answer[: int(length)]), (sys.stderr, answer[int(length) :])):
        stream.buffer.write(text.replace(NAME, name).replace(ADDRESS, host.encode()))
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
