# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all commands of `inferctl` share: exit codes, errors, and names of instances."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.node.cli import command

from .conftest import Run


def options(run: Callable[..., int]) -> argparse.Namespace:
    return argparse.Namespace(command="status", run=run)


def failing(error: BaseException) -> argparse.Namespace:
    def run(_options: argparse.Namespace, _paths: Paths) -> int:
        raise error

    return options(run)


def test_inferctl_exits_with_the_code_of_its_command(paths: Paths) -> None:
    assert command.answer(options(lambda _options, given: 3 if given is paths else 0), paths, ()) == 3


@pytest.mark.parametrize(
    ("error", "code"), [(command.UsageError("which?"), command.USAGE), (OSError("no space"), command.FAILED)]
)
def test_an_expected_error_is_printed_without_a_traceback(
    paths: Paths, capsys: pytest.CaptureFixture[str], error: Exception, code: int
) -> None:
    assert command.answer(failing(error), paths, (OSError,)) == code
    assert capsys.readouterr().err == f"inferctl: {error}\n"


def test_after_ctrl_c_there_is_no_traceback(paths: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.answer(failing(KeyboardInterrupt()), paths, (OSError,)) == command.INTERRUPTED
    assert capsys.readouterr().err == "inferctl: interrupted\n"


def test_a_command_whose_output_is_not_read_prints_no_traceback(paths: Paths) -> None:
    """An example is `inferctl drains | head -n0`."""
    code = f"""
from pathlib import Path
from {command.__package__} import entry
from {Paths.__module__} import Paths
raise SystemExit(entry.main(["drains"], Paths(Path({str(paths.root)!r}))))"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read().decode()
    assert (errors, process.returncode) == ("", command.NO_READER)


def test_an_unexpected_error_is_raised(paths: Paths) -> None:
    with pytest.raises(KeyError):
        command.answer(failing(KeyError("name")), paths, (OSError,))


def test_a_command_must_run_as_root(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert command.answer(options(pytest.fail), None, ()) == command.USAGE
    assert "must run as root: sudo inferctl status" in capsys.readouterr().err


def test_without_names_a_command_is_for_all_instances_and_an_unknown_name_is_wrong_usage(paths: Paths) -> None:
    assert command.known(paths, []) == ["main", "side"]
    assert command.known(paths, ["side", "side"]) == ["side"]
    with pytest.raises(command.UsageError, match="did you mean 'main'"):
        command.known(paths, ["mian"])


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "soon"])
@pytest.mark.parametrize("words", [("wait-ready", "main", "--timeout"), ("rdma", "apply", "--wait")])
def test_an_impossible_time_to_wait_is_wrong_usage(run: Run, words: tuple[str, ...], value: str) -> None:
    with pytest.raises(SystemExit) as error:
        run(*words[:-1], f"{words[-1]}={value}")
    assert error.value.code == command.USAGE
