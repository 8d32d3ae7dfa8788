#!/usr/bin/env -S python3 -IS
# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes the place of ssh: answers as any of many nodes, from the recording that fleet_record.py made of one node.

Ansible starts this file in place of ssh, so a task of a simulated node costs the controller a process, like a task of a
real node. The file imports almost nothing, so the process costs about as much as ssh. tests/tools/bench_fleet.py and
fleet_callback/fleet_task.py set the environment: FLEET_RECORDING, the directory; FLEET_STATE, the directory with the
counts of a run; FLEET_TASK, the key of the task; FLEET_TASK_NAME, the task's name for messages.
"""

from __future__ import annotations

import os
import sys
import time

UNANSWERED = 255
"""The exit code of ssh for a host that it does not reach."""

NAME, ADDRESS = b"\0name\0", b"\0address\0"
"""Marks in an answer, in place of the name and address of the recorded node."""


def path_of(directory: str, task: str, call: int) -> str:
    """The file with the answer to a task's call, by number from 0 on."""
    return os.path.join(directory, f"{task}.{call}")


def count(directory: str, host: str, task: str) -> int:
    """The number of earlier calls of a task to a host. The calls of one host do not overlap."""
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, f"{host}.{task}"), "ab") as calls:
        calls.write(b".")
        return calls.tell() - 1


def name_of(directory: str, host: str) -> str:
    """The name of the node at an address."""
    with open(os.path.join(directory, "nodes")) as nodes:
        return next(line.split()[1] for line in nodes if line.startswith(f"{host} "))


def main() -> int:
    """Answer as the recorded node did, after the same time.

    If the recording has too few calls, as for a task that all hosts delegate to one host, the last answer counts.
    """
    directory, task, host = os.environ["FLEET_RECORDING"], os.environ["FLEET_TASK"], sys.argv[-2]
    call = count(os.environ["FLEET_STATE"], host, task)
    while call >= 0 and not os.path.exists(path_of(directory, task, call)):
        call -= 1
    if call < 0:
        sys.stderr.write(f"{os.environ['FLEET_TASK_NAME']}: the recording has no answer to this task\n")
        return UNANSWERED
    with open(path_of(directory, task, call), "rb") as kept:
        seconds, given, status, length = kept.readline().split()
        answer = kept.read()
    # Ansible closes the input of a command only if it has written input.
    if int(given):
        sys.stdin.buffer.read()
    time.sleep(float(seconds))
    name = name_of(directory, host).encode()
    for stream, text in ((sys.stdout, answer[: int(length)]), (sys.stderr, answer[int(length) :])):
        stream.buffer.write(text.replace(NAME, name).replace(ADDRESS, host.encode()))
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
