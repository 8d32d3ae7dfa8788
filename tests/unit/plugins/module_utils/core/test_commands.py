# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs with a time limit: their input, output, failures and children."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import commands

Tool = Callable[[str], list[str]]


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    """Makes a shell script into a program."""

    def make(script: str) -> list[str]:
        path = tmp_path / "tool"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return [str(path)]

    return make


def gone(pid: int, within: float = 2) -> bool:
    """Whether a process has ended. A zombie has ended."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


def test_output_error_output_and_exit_status_are_kept_apart(tool: Tool) -> None:
    outcome = commands.run(tool("echo out; echo err >&2; exit 9"), 10)
    assert (outcome.code, outcome.stdout, outcome.stderr, outcome.failure) == (9, "out\n", "err\n", None)


def test_a_signal_is_a_negative_status(tool: Tool) -> None:
    assert commands.run(tool("kill -SEGV $$"), 10).code == -signal.SIGSEGV


def test_output_is_read_whole_even_if_it_exceeds_a_pipe(tool: Tool) -> None:
    outcome = commands.run(tool("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2"), 10)
    assert (len(outcome.stdout), len(outcome.stderr)) == (3000000, 3000000)


def test_output_is_english_and_invalid_bytes_are_replaced(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.setenv("LANGUAGE", "de")
    outcome = commands.run(tool(r"printf '%s %s \377' $LC_ALL ${LANGUAGE:-none}"), 10)
    assert outcome.stdout == "C.UTF-8 none \ufffd"


def test_a_program_has_no_input_by_default(tool: Tool) -> None:
    assert commands.run(tool("cat; echo done"), 10).stdout == "done\n"


def test_a_program_reads_the_given_input(tool: Tool) -> None:
    assert commands.run(tool("cat"), 7, stdin="pass\nword\n").stdout == "pass\nword\n"
    # A program that does not read its input is no error.
    assert commands.run(tool("exec 0<&-; exit 3"), 7, stdin="x" * 4096).code == 3


def test_a_missing_program_is_a_failure(tmp_path: Path) -> None:
    outcome = commands.run([str(tmp_path / "none")], 10)
    assert outcome.code is None and outcome.failure == "not_installed" and "not installed" in outcome.message


def test_a_file_of_the_current_directory_is_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "no-such-program").touch()
    monkeypatch.chdir(tmp_path)
    outcome = commands.run(["no-such-program"], 10)
    assert (outcome.failure, outcome.message) == ("not_installed", "no-such-program is not installed")


@pytest.mark.parametrize(("mode", "content"), [(0o644, "#!/bin/sh\n"), (0o755, "#!/no/such/shell\n"), (0o755, "\0")])
def test_a_program_that_cannot_be_run_is_a_failure(tmp_path: Path, mode: int, content: str) -> None:
    path = tmp_path / "tool"
    path.write_text(content)
    path.chmod(mode)
    outcome = commands.run([str(path)], 10)
    assert outcome.failure == "not_runnable" and str(path) in outcome.message


def test_an_argument_with_a_null_byte_is_a_failure(tool: Tool) -> None:
    assert commands.run([*tool("true"), "a\0b"], 10).failure == "not_runnable"


def test_programs_of_the_system_are_found_with_any_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert commands.run(["true"], 10).code == 0


def test_a_program_that_hangs_is_killed_with_its_children_and_its_output_is_kept(tool: Tool, tmp_path: Path) -> None:
    start = time.monotonic()
    outcome = commands.run(tool(f"sleep 60 & echo $! > {tmp_path}/child; echo first; wait"), 0.5)
    assert time.monotonic() - start < 2
    assert (outcome.code, outcome.failure, outcome.stdout) == (None, "timeout", "first\n")
    assert outcome.message.endswith("did not end within 0.5 s")
    assert gone(int((tmp_path / "child").read_text()))


def test_a_program_that_ignores_signals_is_killed_too(tool: Tool) -> None:
    start = time.monotonic()
    assert commands.run(tool("trap '' TERM INT HUP; while :; do sleep 1; done"), 0.5).failure == "timeout"
    assert time.monotonic() - start < 2


def test_a_time_limit_can_be_infinite(tool: Tool) -> None:
    assert commands.run(tool("sleep 0.1"), float("inf")).code == 0


def test_a_program_that_closed_its_output_is_still_waited_for(tool: Tool) -> None:
    outcome = commands.run(tool("exec >&- 2>&-; sleep 0.3; exit 3"), 10)
    assert outcome.code == 3


def test_a_child_that_keeps_the_output_open_does_not_hold_up_the_answer(tool: Tool, tmp_path: Path) -> None:
    start = time.monotonic()
    outcome = commands.run(tool(f"sleep 60 & echo $! > {tmp_path}/child; echo all"), 30)
    assert time.monotonic() - start < 2
    assert (outcome.code, outcome.stdout) == (0, "all\n")
    assert gone(int((tmp_path / "child").read_text()))


def test_endless_output_is_stopped(tool: Tool) -> None:
    outcome = commands.run(tool("exec yes"), 60)
    assert outcome.failure == "endless_output" and outcome.code is None
    assert len(outcome.stdout) < 2 * commands.OUTPUT_LIMIT


def test_a_program_that_a_kill_does_not_end_is_left_behind(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    survivors = []
    with monkeypatch.context() as patch:
        # As in state D: a signal waits until the kernel has answered the process.
        patch.setattr(os, "killpg", lambda group, _signal: survivors.append(group))
        start = time.monotonic()
        outcome = commands.run(tool("exec sleep 60"), 0.2)
    with suppress(ProcessLookupError):
        os.killpg(survivors[0], signal.SIGKILL)
    assert time.monotonic() - start < 0.2 + commands.KILL_SECONDS + 1
    assert outcome.failure == "timeout"
    assert f"process {survivors[0]} hangs in the kernel" in outcome.message


def test_no_file_descriptor_is_left_open(tool: Tool) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for script in ("true", "exec sleep 9"):
        commands.run(tool(script), 0.1)
    assert len(os.listdir("/proc/self/fd")) == before
