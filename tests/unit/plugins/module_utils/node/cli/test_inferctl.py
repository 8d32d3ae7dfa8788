# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`inferctl`: its exit codes and errors, and the commands that the units call."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import Docker
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import prepare
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import drains
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.apply import Result
from ansible_collections.baremetal.inference.plugins.module_utils.node.cli import inferctl

from ...conftest import FakeDocker
from ..test_prober import Unit
from .conftest import Run, RunJson

CLEAR = ["clear", "main"]


@pytest.fixture(autouse=True)
def serving(unit: Unit) -> None:
    unit.properties |= {"StatusText": "serving tiny-a", "NRestarts": "2", "InvocationID": "abc"}


def test_the_exit_code_of_status_says_whether_all_serve(run: Run, run_json: RunJson, unit: Unit) -> None:
    assert run("status")[0] == 0
    assert run_json("status", "side")[1]["instances"][0]["serving"] is True
    unit.properties.update(ActiveState="failed", SubState="failed", Result="exit-code")
    assert run("status")[0] == 1
    assert run_json("status")[0] == 1


def test_an_empty_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert inferctl.main(["status"], Paths(tmp_path)) == 0
    assert "no instance on this node" in capsys.readouterr().out


def test_wait_ready(run: Run, run_json: RunJson, unit: Unit) -> None:
    code, document = run_json("wait-ready", "main")
    assert code == 0
    assert document["instances"][0]["state"] == "ready"
    unit.properties.update(ActiveState="activating", SubState="start", NRestarts="0")
    assert run("wait-ready", "main", "--timeout", "0")[:2] == (3, "main: loading: serving tiny-a\n")


def test_wait_ready_tells_the_last_words(run: Run, unit: Unit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = tmp_path / "bin/journalctl"
    journal.parent.mkdir()
    journal.write_text("""#!/bin/sh\necho '{"MESSAGE": "RuntimeError: out of memory"}'\n""")
    journal.chmod(0o755)
    monkeypatch.setenv("PATH", f"{journal.parent}:{os.environ['PATH']}")
    unit.properties.update(ActiveState="failed", SubState="failed", Result="exit-code")
    code, out, _errors = run("wait-ready", "main")
    assert code == 1
    assert out == "main: failed: systemd gave up: exit-code\n  RuntimeError: out of memory\n"


def test_an_unknown_instance(run: Run) -> None:
    code, _out, errors = run("status", "mian")
    assert code == 2
    assert errors == "inferctl: no instance 'mian' on this node: did you mean 'main'? known: main, side\n"


def test_gpu_settings_that_a_gpu_refuses(run: Run, run_json: RunJson, monkeypatch: pytest.MonkeyPatch) -> None:
    change: Any = "GPU 0: 300 W"
    result = Result(changes=[change])
    monkeypatch.setattr(inferctl.boot, "apply", lambda _paths: result)
    assert run("gpu-settings") == (0, "GPU 0: 300 W\n", "")
    result.failures.append("GPU 1: its power limit stays")
    assert run("gpu-settings") == (1, "GPU 0: 300 W\n", "inferctl: GPU 1: its power limit stays\n")
    result.changes.clear()
    code, document = run_json("gpu-settings")
    assert (code, document["failures"]) == (1, ["GPU 1: its power limit stays"])


@pytest.mark.parametrize("arguments", [["prepare", "main", "--release=1"], ["supervise", "main", "--release=1"], CLEAR])
@pytest.mark.parametrize("invocation", ["abc", ""], ids=["started", "never started"])
def test_what_the_unit_calls_is_not_for_people(
    run: Run, unit: Unit, monkeypatch: pytest.MonkeyPatch, arguments: list[str], invocation: str
) -> None:
    """Each would take the container from an engine that serves."""
    unit.properties["InvocationID"] = invocation
    monkeypatch.delenv("INVOCATION_ID", raising=False)
    monkeypatch.setattr(inferctl, "Docker", pytest.fail)
    code, _out, errors = run(*arguments)
    assert code == 2
    assert "systemctl start vllm@main.service" in errors


def test_the_container_is_cleared_away_without_a_word(
    run: Run, docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the start failed before there was one; but not without a word where dockerd is away."""
    monkeypatch.setenv("INVOCATION_ID", "abc")
    monkeypatch.setattr(inferctl, "Docker", lambda timeout: Docker(docker.path, timeout))
    docker.create("vllm-main")
    assert [run(*CLEAR), run(*CLEAR)] == [(0, "", ""), (0, "", "")]
    assert docker.removed == ["vllm-main"]
    docker.down()
    code, _out, errors = run(*CLEAR)
    assert code == 1
    assert "does not answer" in errors


class Ready:
    """Stands for a supervisor whose engine is ready at once, and stopped then. Exits with 1 if that may be quick."""

    def __init__(self, *arguments: object, on_ready: Callable[[], None], is_idle: Callable[[], bool]) -> None:
        self.on_ready = on_ready
        self.is_idle = is_idle

    def run(self) -> int:
        self.on_ready()
        return int(self.is_idle())


def test_a_count_that_cannot_be_kept_keeps_no_engine_down(
    run: Run, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Stands for a full or read-only disk, which root does not get from permissions.
    (paths.state / "starts").write_text("")
    monkeypatch.setenv("INVOCATION_ID", "abc")
    reached = []

    monkeypatch.setattr(inferctl.prepare, "prepare", lambda release, docker, say: reached.append(release.number))
    monkeypatch.setattr(inferctl, "Supervisor", Ready)
    code, _out, errors = run("prepare", "main", "--release", "1")
    assert code == 0
    assert reached == [1]
    assert "main: the count of failed starts cannot be kept: " in errors
    code, _out, errors = run("supervise", "main", "--release", "1")
    assert code == 0
    assert "main: the count of failed starts cannot be kept: " in errors


def test_each_problem_of_a_start_is_named_and_the_start_is_counted(
    run: Run, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_release: object, _docker: object, say: Callable[[str], None]) -> None:
        say("looks for the port")
        raise prepare.NotPrepared(["port 5005 is taken", "no GPU 1"])

    monkeypatch.setenv("INVOCATION_ID", "abc")
    monkeypatch.setattr(inferctl.prepare, "prepare", refuse)
    code, _out, errors = run("prepare", "main", "--release", "1")
    assert code == 1
    assert errors.splitlines() == [
        "main: looks for the port",
        "inferctl: main: port 5005 is taken",
        "inferctl: main: no GPU 1",
    ]
    assert paths.starts("main").exists()


def test_a_supervisor_learns_whether_its_stop_may_be_quick(
    run: Run, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INVOCATION_ID", "abc")
    monkeypatch.setattr(inferctl, "Supervisor", Ready)
    monkeypatch.setattr(
        inferctl.idle, "scrape", lambda *_given: "vllm:num_requests_running 0\nvllm:num_requests_waiting 0\n"
    )
    assert run("supervise", "main", "--release", "1")[0] == 0
    drains.drain(paths, ["main"], drains.Drain("update", "a new model", drains.format_time(datetime.now(UTC))))
    assert run("supervise", "main", "--release", "1")[0] == 1


def test_a_release_that_is_not_there(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INVOCATION_ID", "abc")
    code, _out, errors = run("supervise", "main", "--release", "9")
    assert code == 1
    assert "releases/main/9/release.json" in errors


def test_root_is_needed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert inferctl.main(["status"]) == 2
    assert "sudo inferctl status" in capsys.readouterr().err
