# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host of the checks: it runs programs within a limit, and reads each fact once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.check import CannotTell
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.host import TOOL_TIMEOUT, Host

from ..conftest import GPU_DATA, install, missing, plug, write
from .conftest import host


def test_a_program_gets_the_time_limit_of_tools(tmp_path: Path) -> None:
    asked = []

    def run(command: Sequence[str], timeout: float) -> Outcome:
        asked.append((command, timeout))
        return Outcome(0, "words")

    assert Host(Paths(tmp_path), run).ask("a", "b") == "words"
    assert asked == [(("a", "b"), TOOL_TIMEOUT)]


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (missing("tool"), "^tool is not installed$"),
        (Outcome(3, "out", "err"), "^tool: err$"),
        (Outcome(3, "out"), "^tool: out$"),
        (Outcome(3), "^tool: exit status 3$"),
    ],
)
def test_a_program_that_fails_is_unknown(tmp_path: Path, outcome: Outcome, words: str) -> None:
    with pytest.raises(CannotTell, match=words):
        host(tmp_path, {"tool": outcome}).ask("tool")


def test_gpus_are_read_once(tmp_path: Path) -> None:
    plug(tmp_path, "0000:1b:00.0", "0000:9d:00.0")
    asked = []

    def run(command: Sequence[str], _timeout: float) -> Outcome:
        asked.append(tuple(command))
        report = command[1:] == ["-q", "-x"]
        return Outcome(0, (GPU_DATA / "report-580.xml").read_text()) if report else missing(command[0])

    one = Host(Paths(tmp_path), run)
    assert one.has_gpus() and len(one.gpus()["gpus"]) == 2
    assert asked.count(("nvidia-smi", "-q", "-x")) == 1


def test_a_node_without_gpus_and_rdma_has_no_devices_and_no_driver(tmp_path: Path) -> None:
    one = host(tmp_path)
    assert not one.has_gpus() and not one.wants_gpus()
    assert one.rdma()["rdma_devices"] == []
    assert one.driver().module_version is None


def test_gpus_are_wanted_by_an_instance_that_computes_on_them(tmp_path: Path) -> None:
    install(Paths(tmp_path))
    assert not host(tmp_path).wants_gpus()
    install(Paths(tmp_path), "side", accelerator="nvidia", gpus=["0"])
    assert host(tmp_path).wants_gpus()


def test_an_instance_whose_release_is_damaged_is_left_out(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    for name in ("main", "side"):
        install(paths, name)
    (paths.release("side", 1) / "release.json").write_text("{")
    assert list(host(tmp_path).releases()) == ["main"]


def test_before_its_first_start_an_instance_has_its_desired_release(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    install(paths)
    paths.active("main").unlink()
    assert host(tmp_path).releases() == {}
    write(paths.instance("main"), '{"release": 1}')
    assert host(tmp_path).releases()["main"].number == 1


def test_the_kernel_log_is_read_from_its_file_or_unknown(tmp_path: Path) -> None:
    with pytest.raises(CannotTell, match="kernel's log"):
        host(tmp_path).kernel_log()
    write(tmp_path / "var/log/kern.log", "words\n")
    assert host(tmp_path).kernel_log() == "words\n"
