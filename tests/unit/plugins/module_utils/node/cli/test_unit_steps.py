# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands that the unit of an engine calls."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import Docker
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.systemd import SystemdError
from ansible_collections.baremetal.inference.plugins.module_utils.engine import prepare, swap_settings
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import drains, gangs, releases
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.gangs import GangState
from ansible_collections.baremetal.inference.plugins.module_utils.node.cli import unit_steps
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang import sides
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import in_flight
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.deaths import Request, Seen
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.deaths import read as read_deaths

from ...conftest import FakeDocker
from ..gang.world import gang
from ..test_prober import Unit
from .conftest import Run

CLEAR = ["clear", "main"]


@pytest.fixture(autouse=True)
def serving(unit: Unit) -> None:
    unit.properties |= {"StatusText": "serving tiny-a", "NRestarts": "2", "InvocationID": "abc"}


@pytest.mark.parametrize("arguments", [["prepare", "main", "--release=1"], ["supervise", "main", "--release=1"], CLEAR])
@pytest.mark.parametrize("invocation", ["abc", ""], ids=["started", "never started"])
def test_the_commands_of_a_unit_refuse_other_callers(
    run: Run, unit: Unit, monkeypatch: pytest.MonkeyPatch, arguments: list[str], invocation: str
) -> None:
    """Each command would take the container from an engine that serves."""
    unit.properties["InvocationID"] = invocation
    monkeypatch.delenv("INVOCATION_ID", raising=False)
    monkeypatch.setattr(unit_steps, "Docker", pytest.fail)
    code, _out, errors = run(*arguments)
    assert code == 2
    assert "systemctl start vllm@main.service" in errors


def test_the_command_clear_removes_the_container_and_prints_only_errors(
    run: Run, docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing container is no error, but a Docker that does not answer is an error."""
    monkeypatch.setenv("INVOCATION_ID", "abc")
    monkeypatch.setattr(unit_steps, "Docker", lambda timeout: Docker(docker.path, timeout))
    docker.create("vllm-main")
    assert [run(*CLEAR), run(*CLEAR)] == [(0, "", ""), (0, "", "")]
    assert docker.removed == ["vllm-main"]
    docker.down()
    code, _out, errors = run(*CLEAR)
    assert code == 1
    assert "does not answer" in errors


class Ready:
    """A fake supervisor whose engine is ready at once, and then stops. Exits with 1 if the engine is idle."""

    def __init__(
        self, *arguments: object, on_ready: Callable[[], None], is_idle: Callable[[], bool], gang: object = None
    ) -> None:
        self.gang = gang
        self.on_ready = on_ready
        self.is_idle = is_idle

    def run(self) -> int:
        self.on_ready()
        return int(self.is_idle())


def test_an_engine_starts_although_its_start_cannot_be_counted(
    run: Run, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A file in place of the directory: each write fails, as on a full disk. Permissions would not stop root.
    (paths.state / "starts").write_text("")
    monkeypatch.setenv("INVOCATION_ID", "abc")
    reached = []

    monkeypatch.setattr(unit_steps.prepare, "prepare", lambda release, docker, say: reached.append(release.number))
    monkeypatch.setattr(unit_steps, "Supervisor", Ready)
    code, _out, errors = run("prepare", "main", "--release", "1")
    assert code == 0
    assert reached == [1]
    assert "main: the count of failed starts cannot be recorded: " in errors
    code, _out, errors = run("supervise", "main", "--release", "1")
    assert code == 0
    assert "main: the count of failed starts cannot be recorded: " in errors


def test_each_problem_of_a_start_is_named_and_the_start_is_counted(
    run: Run, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_release: object, _docker: object, say: Callable[[str], None]) -> None:
        say("looks for the port")
        raise prepare.NotPrepared(["port 5005 is taken", "no GPU 1"])

    monkeypatch.setenv("INVOCATION_ID", "abc")
    monkeypatch.setattr(unit_steps.prepare, "prepare", refuse)
    code, _out, errors = run("prepare", "main", "--release", "1")
    assert code == 1
    assert errors.splitlines() == [
        "main: looks for the port",
        "inferctl: main: port 5005 is taken",
        "inferctl: main: no GPU 1",
    ]
    assert paths.starts("main").exists()


def test_a_supervisor_finds_a_drained_engine_without_requests_idle(
    run: Run, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INVOCATION_ID", "abc")
    monkeypatch.setattr(unit_steps, "Supervisor", Ready)
    monkeypatch.setattr(
        unit_steps.idle, "scrape", lambda *_given: "vllm:num_requests_running 0\nvllm:num_requests_waiting 0\n"
    )
    assert run("supervise", "main", "--release", "1")[0] == 0
    drains.drain(paths, ["main"], drains.Drain("update", "a new model", drains.format_time(datetime.now(UTC))))
    assert run("supervise", "main", "--release", "1")[0] == 1


def make_member(paths: Paths, rank: int) -> None:
    """Make the instance a member of a gang."""
    path = paths.release("main", 1) / releases.RELEASE_FILE
    files.write(path, replace(releases.load(paths, "main", 1), gang=gang(rank)).to_json())


def test_rank_0_of_a_gang_leads_and_another_rank_follows(
    run: Run, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def leads(*arguments: object) -> str:
        made.append("leads")
        return "the leader's side"

    def follows(*arguments: object) -> Ready:
        made.append("follows")
        return Ready(on_ready=lambda: None, is_idle=lambda: True)

    monkeypatch.setenv("INVOCATION_ID", "abc")
    monkeypatch.setattr(sides, "leads", leads)
    monkeypatch.setattr(sides, "follows", follows)
    monkeypatch.setattr(unit_steps, "Supervisor", Ready)
    make_member(paths, 0)
    assert run("supervise", "main", "--release", "1")[0] == 0
    make_member(paths, 1)
    assert run("supervise", "main", "--release", "1")[0] == 1
    assert made == ["leads", "follows"]


@pytest.mark.parametrize(("planned", "deaths", "calls"), [(False, 1, []), (True, 0, ["vllm@main.service"])])
def test_the_end_of_a_gang_for_a_member_that_leaves_is_no_death_and_no_start_for_systemds_limit(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, planned: bool, deaths: int, calls: list[str]
) -> None:
    """Otherwise systemd would not start the leader again after members have left five times in a row."""
    called: list[str] = []

    def systemctl(verb: str, unit: str) -> str:
        assert verb == "reset-failed"
        called.append(unit)
        raise SystemdError("no answer")

    monkeypatch.setattr(unit_steps.systemd, "systemctl", systemctl)
    known = GangState("main", 0, 1, gangs.ENDED, "2026-11-26T04:00:00Z", "gpu-1 leaves", planned)
    files.write_json(paths.gang("main"), known.to_json())
    unit_steps.count_start(paths, "main", restarts=1)
    assert len(read_deaths(paths, "main").own) == deaths
    assert called == calls
    # The next start follows a start that failed: the limit holds.
    unit_steps.count_start(paths, "main", restarts=1)
    assert called == calls


def test_a_death_is_recorded_and_reported_with_its_requests(
    run: Run, paths: Paths, monkeypatch: pytest.MonkeyPatch, unit: Unit
) -> None:
    """Without a gateway, only the death is recorded."""
    asked: list[tuple[object, ...]] = []
    requests = tuple(Request(f"req-{number}", "bob", "/v1/completions", 502) for number in range(7))

    def report(*arguments: object) -> tuple[list[Seen], dict[str, str]]:
        asked.append(arguments)
        return [Seen("main", "gpu-1", 2, ("bob",), requests)], {"gw2": "timed out"}

    monkeypatch.setenv("INVOCATION_ID", "abc")
    monkeypatch.setattr(unit_steps.prepare, "prepare", lambda *_given: None)
    unit.properties |= {"NRestarts": "1", unit_steps.LAST_END: str(int((time.monotonic() - 3) * 1e6))}
    assert run("prepare", "main", "--release", "1") == (0, "", "")
    assert len(read_deaths(paths, "main").own) == 1

    gateways = [{"name": name, "address": "192.0.2.1", "port": 8404} for name in ("gw1", "gw2")]
    files.write(paths.swap_settings, swap_settings.text({"node": "gpu-1", "gateways": gateways}), swap_settings.MODE)
    monkeypatch.setattr(in_flight, "report", report)
    paths.starts("main").unlink()
    code, _out, errors = run("prepare", "main", "--release", "1")
    shown = "; ".join(f"req-{number} (key bob, /v1/completions)" for number in range(5))
    assert (code, errors.splitlines()) == (
        0,
        [
            f"main: requests in flight at its death: {shown}; and 2 more",
            "main: cannot read from gw2 which requests were in flight: timed out",
        ],
    )
    ((given, name, node, age),) = asked
    assert (given, name, node) == (swap_settings.read(paths).gateways, "main", "gpu-1")
    assert isinstance(age, float) and 3 <= age < 30
    assert read_deaths(paths, "main").own[-1].requests == requests


@pytest.mark.parametrize("text", ["", "0", "n/a"])
def test_an_engine_that_never_ended_counts_0_seconds(text: str) -> None:
    assert unit_steps.seconds_since(text) == 0


def test_a_missing_release_is_an_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INVOCATION_ID", "abc")
    code, _out, errors = run("supervise", "main", "--release", "9")
    assert code == 1
    assert "releases/main/9/release.json" in errors
