# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`inferctl`: the screen, the JSON, the exit codes and the errors."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import Docker
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import drains, releases
from ansible_collections.baremetal.inference.plugins.module_utils.node.cli import inferctl

from ..conftest import FakeDocker, stage

CLEAR = ["clear", "main"]

Units = dict[str, dict[str, str]]


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """A node with the instances main, which serves release 1, and side, which has just been staged."""
    paths = Paths(tmp_path)
    for name, port in (("main", 5005), ("side", 5006)):
        stage(paths, name, port, "float32")
        files.write_json(paths.instance(name), {"schema": 1, "release": 1})
    releases.activate(paths, "main", 1)
    releases.commit(paths, "main", 1)
    return paths


SERVING = {
    "LoadState": "loaded",
    "ActiveState": "active",
    "SubState": "running",
    "StatusText": "serving tiny-a",
    "NRestarts": "2",
    "ActiveEnterTimestamp": "@1767225600",
    "InactiveExitTimestamp": "@1767225000",
    "InvocationID": "abc",
    "Job": "",
}
ABSENT = {"LoadState": "not-found", "ActiveState": "inactive", "SubState": "dead", "NRestarts": "0", "InvocationID": ""}


@pytest.fixture
def units(monkeypatch: pytest.MonkeyPatch) -> Units:
    """What systemd says."""
    units: Units = {"vllm@main.service": dict(SERVING), "vllm@side.service": dict(ABSENT)}
    monkeypatch.setattr(systemd, "show", lambda names, properties: {name: units[name] for name in names})
    return units


Output = Callable[[], tuple[str, str]]


@pytest.fixture
def output(capsys: pytest.CaptureFixture[str]) -> Output:
    def read() -> tuple[str, str]:
        captured = capsys.readouterr()
        return captured.out, captured.err

    return read


def test_status_of_a_node_that_is_not_all_well(paths: Paths, units: Units, output: Output) -> None:
    assert inferctl.main(["status"], paths) == 1
    lines = output()[0].splitlines()
    assert lines[0].split()[:4] == ["INSTANCE", "STATE", "PROBE", "SINCE"]
    serving = r"main +serving +- +2026-01-01T00:00:00Z +2 +tiny-a +ab12cd34ef56 +1 +127\.0\.0\.1:5005 +0,1"
    assert re.fullmatch(serving, lines[1])
    assert lines[2].startswith("side      no unit")
    assert any(line.startswith("side: does not serve: journalctl -t vllm@side") for line in lines)
    assert not any("pending" in line for line in lines)


def test_status_of_one_instance_that_serves(paths: Paths, units: Units, output: Output) -> None:
    assert inferctl.main(["status", "main", "--json"], paths) == 0
    document = json.loads(output()[0])
    assert document["schema"] == 1
    (main,) = document["instances"]
    assert main["release"] == {"active": 1, "current": 1, "desired": 1, "wanted": 1}
    assert (main["pending"], main["serving"], main["restarts"]) == (False, True, 2)
    assert main["container"] == "vllm-main"


def test_a_pending_release_is_named_and_is_no_failure(paths: Paths, units: Units, output: Output) -> None:
    stage(paths, "main", 5005, "half")
    files.write_json(paths.instance("main"), {"schema": 1, "release": 2})
    assert inferctl.main(["status", "main"], paths) == 0
    assert "main: release 2 is pending: update_model.yml" in output()[0]


def test_a_unit_that_systemd_gave_up(paths: Paths, units: Units, output: Output) -> None:
    units["vllm@main.service"].update(ActiveState="failed", SubState="failed", Result="start-limit-hit")
    assert inferctl.main(["status", "main"], paths) == 1
    assert "main: systemd gave up (start-limit-hit): systemctl reset-failed vllm@main.service" in output()[0]


def test_an_orphan_is_named_and_is_no_failure(paths: Paths, units: Units, output: Output) -> None:
    paths.instance("side").unlink()
    assert inferctl.main(["status"], paths) == 0
    assert "side: is not in the inventory" in output()[0]


def test_a_damaged_file_is_a_problem(paths: Paths, units: Units, output: Output) -> None:
    paths.instance("main").write_text("{")
    assert inferctl.main(["status", "main"], paths) == 1
    assert "main.json is not JSON" in output()[0]


def test_an_empty_node(tmp_path: Path, output: Output) -> None:
    assert inferctl.main(["status"], Paths(tmp_path)) == 0
    assert "no instance on this node" in output()[0]


def test_wait_ready(paths: Paths, units: Units, output: Output) -> None:
    assert inferctl.main(["wait-ready", "main", "--json"], paths) == 0
    assert json.loads(output()[0])["instances"][0]["state"] == "ready"
    units["vllm@main.service"].update(ActiveState="activating", SubState="start", NRestarts="0")
    assert inferctl.main(["wait-ready", "main", "--timeout", "0"], paths) == 3
    assert output()[0] == "main: loading: serving tiny-a\n"


def test_wait_ready_tells_the_last_words(
    paths: Paths, units: Units, output: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "bin/journalctl"
    journal.parent.mkdir()
    journal.write_text("""#!/bin/sh\necho '{"MESSAGE": "RuntimeError: out of memory"}'\n""")
    journal.chmod(0o755)
    monkeypatch.setenv("PATH", f"{journal.parent}:{os.environ['PATH']}")
    units["vllm@main.service"].update(ActiveState="failed", SubState="failed", Result="exit-code")
    assert inferctl.main(["wait-ready", "main"], paths) == 1
    assert output()[0] == "main: failed: systemd gave up: exit-code\n  RuntimeError: out of memory\n"


def test_an_unknown_instance(paths: Paths, units: Units, output: Output) -> None:
    assert inferctl.main(["status", "mian"], paths) == 2
    assert output()[1] == "inferctl: no instance 'mian' on this node: did you mean 'main'? known: main, side\n"


@pytest.mark.parametrize("arguments", [["prepare", "main", "--release=1"], ["supervise", "main", "--release=1"], CLEAR])
@pytest.mark.parametrize("invocation", ["abc", ""], ids=["started", "never started"])
def test_what_the_unit_calls_is_not_for_people(
    paths: Paths,
    units: Units,
    output: Output,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    invocation: str,
) -> None:
    """Each would take the container from an engine that serves."""
    units["vllm@main.service"]["InvocationID"] = invocation
    monkeypatch.delenv("INVOCATION_ID", raising=False)
    monkeypatch.setattr(inferctl, "Docker", pytest.fail)
    assert inferctl.main(arguments, paths) == 2
    assert "systemctl start vllm@main.service" in output()[1]


def test_the_container_is_cleared_away_without_a_word(
    paths: Paths, units: Units, output: Output, docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the start failed before there was one; but not without a word where dockerd is away."""
    monkeypatch.setenv("INVOCATION_ID", "abc")
    monkeypatch.setattr(inferctl, "Docker", lambda timeout: Docker(docker.path, timeout))
    docker.create("vllm-main")
    assert [inferctl.main(CLEAR, paths), inferctl.main(CLEAR, paths)] == [0, 0]
    assert docker.removed == ["vllm-main"]
    assert output() == ("", "")
    docker.down()
    assert inferctl.main(CLEAR, paths) == 1
    assert "does not answer" in output()[1]


class Ready:
    """Stands for a supervisor whose engine is ready at once, and stopped then. Exits with 1 if that may be quick."""

    def __init__(self, *arguments: object, on_ready: Callable[[], None], is_idle: Callable[[], bool]) -> None:
        self.on_ready = on_ready
        self.is_idle = is_idle

    def run(self) -> int:
        self.on_ready()
        return int(self.is_idle())


def test_a_count_that_cannot_be_kept_keeps_no_engine_down(
    paths: Paths, units: Units, output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Stands for a full or read-only disk, which root does not get from permissions.
    (paths.state / "starts").write_text("")
    monkeypatch.setenv("INVOCATION_ID", "abc")
    reached = []

    monkeypatch.setattr(inferctl.prepare, "prepare", lambda release, docker, say: reached.append(release.number))
    monkeypatch.setattr(inferctl, "Supervisor", Ready)
    assert inferctl.main(["prepare", "main", "--release", "1"], paths) == 0
    assert reached == [1]
    assert "main: the count of failed starts cannot be kept: " in output()[1]
    assert inferctl.main(["supervise", "main", "--release", "1"], paths) == 0
    assert "main: the count of failed starts cannot be kept: " in output()[1]


def test_a_supervisor_learns_whether_its_stop_may_be_quick(
    paths: Paths, units: Units, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INVOCATION_ID", "abc")
    monkeypatch.setattr(inferctl, "Supervisor", Ready)
    monkeypatch.setattr(
        inferctl.idle, "scrape", lambda *_given: "vllm:num_requests_running 0\nvllm:num_requests_waiting 0\n"
    )
    assert inferctl.main(["supervise", "main", "--release", "1"], paths) == 0
    drains.drain(paths, ["main"], drains.Drain("update", "a new model", drains.format_time(datetime.now(UTC))))
    assert inferctl.main(["supervise", "main", "--release", "1"], paths) == 1


def test_a_release_that_is_not_there(
    paths: Paths, units: Units, output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INVOCATION_ID", "abc")
    assert inferctl.main(["supervise", "main", "--release", "9"], paths) == 1
    assert "releases/main/9/release.json" in output()[1]


def test_root_is_needed(output: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert inferctl.main(["status"]) == 2
    assert "sudo inferctl status" in output()[1]


def test_a_bridge_is_told_from_an_instance(paths: Paths, units: Units, output: Output) -> None:
    stage(paths, "main_bridge", 5105, "float32")
    units["vllm@main_bridge.service"] = dict(ABSENT)
    inferctl.main(["status", "main_bridge"], paths)
    said = output()[0]
    assert "main_bridge: stands in for main during an update: update_model.yml removes it" in said
    assert "is not in the inventory" not in said
