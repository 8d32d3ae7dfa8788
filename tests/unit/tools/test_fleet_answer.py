# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in for ssh that answers, started as Ansible starts it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import fleet_answer
import pytest


class Fleet:
    """A recording, and calls that read it."""

    def __init__(self, directory: Path) -> None:
        self.recording, self.state = directory / "recording", directory / "state"
        self.recording.mkdir()
        (self.recording / "nodes").write_text("198.18.0.2 simulated-001\n198.18.0.3 simulated-002\n")

    def keep(self, task: str, call: int, out: bytes, err: bytes = b"", header: str = "0 0 0") -> None:
        """Record an answer."""
        Path(fleet_answer.path_of(str(self.recording), task, call)).write_bytes(
            f"{header} {len(out)}\n".encode() + out + err
        )

    def start(self, host: str, task: str) -> subprocess.Popen[bytes]:
        """Ask as Ansible does, with an input that has not ended."""
        environment = {
            "FLEET_RECORDING": str(self.recording),
            "FLEET_STATE": str(self.state),
            "FLEET_TASK": task,
            "FLEET_TASK_NAME": "site.yml:7: Ask",
            "PATH": "/usr/bin:/bin",
        }
        command = [fleet_answer.__file__, "-C", "-o", "User=root", host, "/bin/sh -c 'python3'"]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe)

    def ask(self, host: str, task: str, given: bytes = b"") -> tuple[int, bytes, bytes]:
        """Exit status, output and errors of a call with an input."""
        process = self.start(host, task)
        out, err = process.communicate(given)
        return process.returncode, out, err


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


def test_an_answer_names_the_node_that_is_asked(fleet: Fleet) -> None:
    said = b"\xff of " + fleet_answer.NAME + b" at " + fleet_answer.ADDRESS
    fleet.keep("aa", 0, said, b"warned\n", "0.01 6 3")
    assert fleet.ask("198.18.0.3", "aa", b"module") == (3, b"\xff of simulated-002 at 198.18.0.3", b"warned\n")


def test_each_call_of_a_task_has_its_own_answer_for_each_host(fleet: Fleet) -> None:
    for task, call, said in (("aa", 0, b"first"), ("aa", 1, b"second"), ("bb", 0, b"other")):
        fleet.keep(task, call, said)
    # A third call was not recorded.
    assert [fleet.ask("198.18.0.2", "aa")[1] for _call in range(3)] == [b"first", b"second", b"second"]
    assert fleet.ask("198.18.0.3", "aa")[1] == b"first"
    assert fleet.ask("198.18.0.2", "bb")[1] == b"other"


def test_a_task_without_a_recorded_answer_is_an_error(fleet: Fleet) -> None:
    assert fleet.ask("198.18.0.2", "cc") == (255, b"", b"site.yml:7: Ask: the recording has no answer to this task\n")


def test_a_command_without_input_is_answered_while_its_input_is_open(fleet: Fleet) -> None:
    fleet.keep("aa", 0, b"done")
    process = fleet.start("198.18.0.2", "aa")
    assert process.stdin is not None and process.stdout is not None
    assert process.wait(timeout=20) == 0
    assert process.stdout.read() == b"done"
    process.stdin.close()


def test_a_long_input_is_taken_whole(fleet: Fleet) -> None:
    fleet.keep("aa", 0, b"done", header="0 5000000 0")
    assert fleet.ask("198.18.0.2", "aa", b"x" * 5_000_000)[1] == b"done"


def test_an_answer_takes_as_long_as_the_recorded_one(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.keep("aa", 0, b"", header="4.5 0 0")
    slept: list[float] = []
    monkeypatch.setattr(fleet_answer.time, "sleep", slept.append)
    monkeypatch.setattr(fleet_answer.sys, "argv", ["ssh", "198.18.0.2", "true"])
    for key, value in (("RECORDING", str(fleet.recording)), ("STATE", str(fleet.state)), ("TASK", "aa")):
        monkeypatch.setenv(f"FLEET_{key}", value)
    monkeypatch.setattr(fleet_answer.sys, "stdout", (fleet.recording / "out").open("w"))
    assert fleet_answer.main() == 0
    assert slept == [4.5]
