# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`inferctl status`: the screen and the JSON."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import swap_settings
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import gangs, releases, swaps
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.gangs import GangState, MemberState
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.gateway_answers import (
    FORGET_SECONDS,
    GatewayAnswers,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.cli import inferctl

from ..conftest import stage
from .gang.world import gang

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
    """systemd's properties of the units."""
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


def test_the_command_status_fails_and_names_an_instance_that_does_not_serve(
    paths: Paths, units: Units, output: Output
) -> None:
    assert inferctl.main(["status"], paths) == 1
    lines = output()[0].splitlines()
    assert lines[0].split()[:4] == ["INSTANCE", "STATE", "PROBE", "SINCE"]
    serving = r"main +serving +- +2026-01-01T00:00:00Z +2 +tiny-a +ab12cd34ef56 +1 +127\.0\.0\.1:5005 +0,1"
    assert re.fullmatch(serving, lines[1])
    assert lines[2].startswith("side      no unit")
    assert "side: does not serve: journalctl -t vllm@side; journalctl -u vllm@side" in lines
    assert not any("pending" in line for line in lines)


def test_the_command_status_succeeds_for_an_instance_that_serves(paths: Paths, units: Units, output: Output) -> None:
    assert inferctl.main(["status", "main", "--json"], paths) == 0
    document = json.loads(output()[0])
    assert document["schema"] == 1
    (main,) = document["instances"]
    assert main["release"] == {"active": 1, "current": 1, "desired": 1, "wanted": 1}
    assert (main["pending"], main["serving"], main["restarts"]) == (False, True, 2)
    assert main["container"] == "vllm-main"


def test_a_gateway_that_no_longer_checks_is_named(paths: Paths, units: Units, output: Output) -> None:
    answers = GatewayAnswers()
    answers.record("gw1", "up ready", time.monotonic() - 60)
    answers.record("gw2", "drain", time.monotonic())
    files.write_json(paths.gateway_answers("main"), answers.to_json())
    inferctl.main(["status", "main"], paths)
    notes = [line for line in output()[0].splitlines() if "gateway" in line]
    assert len(notes) == 1 and re.match(r"main: gateway gw1 has not checked this instance for 6\d s", notes[0])
    inferctl.main(["status", "main", "--json"], paths)
    found = json.loads(output()[0])["instances"][0]["gateways"]
    assert [(each["name"], each["answer"]) for each in found] == [("gw1", "up"), ("gw2", "drain")]
    assert found[0]["seconds"] >= 60 > 5 > found[1]["seconds"] >= 0


@pytest.mark.parametrize(("listed", "named"), [(["gw1", "gw 3"], True), (["gw 3"], False), ([], False)])
def test_a_gateway_that_no_longer_checks_is_named_only_while_it_is_listed(
    paths: Paths, units: Units, output: Output, listed: list[str], named: bool
) -> None:
    """The agent still has its last answer to gw1. gw2 checks, but is not in the node's list yet."""
    gateways = [{"name": name, "address": "192.0.2.1", "port": 8404} for name in listed]
    files.write(paths.swap_settings, swap_settings.text({"node": "n1", "gateways": gateways}))
    answers = GatewayAnswers()
    for name, age in (("gw1", 60), ("gw2", 0), ("gw_3", 0)):
        answers.record(name, "up ready", time.monotonic() - age)
    files.write_json(paths.gateway_answers("main"), answers.to_json())
    inferctl.main(["status", "main"], paths)
    assert ("gateway gw1 has not checked" in output()[0]) == named
    inferctl.main(["status", "main", "--json"], paths)
    found = [each["name"] for each in json.loads(output()[0])["instances"][0]["gateways"]]
    assert found == (["gw1"] if named else []) + ["gw2", "gw_3"]


@pytest.mark.parametrize(("checks", "named"), [(5, False), (6, True)])
def test_a_listed_gateway_that_the_agent_has_forgotten_is_named(
    paths: Paths, units: Units, output: Output, checks: int, named: bool
) -> None:
    """gw1 is named once gw2 has checked six times: if the agent has just started, gw1 may not have checked yet."""
    gateways = [{"name": name, "address": "192.0.2.1", "port": 8404} for name in ("gw1", "gw2")]
    files.write(paths.swap_settings, swap_settings.text({"node": "n1", "gateways": gateways}))
    answers = GatewayAnswers()
    answers.record("gw1", "up ready", time.monotonic() - FORGET_SECONDS - 1)
    for _check in range(checks):
        answers.record("gw2", "up ready", time.monotonic())
    files.write_json(paths.gateway_answers("main"), answers.to_json())
    inferctl.main(["status", "main"], paths)
    words = "main: gateway gw1 has not checked this instance for 5 minutes, or since inference-agent started: it has"
    assert (words in output()[0]) == named
    inferctl.main(["status", "main", "--json"], paths)
    found = json.loads(output()[0])["instances"][0]["gateways"]
    assert ({"name": "gw1", "answer": "", "seconds": None} in found) == named


def test_a_pending_release_is_named_and_is_no_failure(paths: Paths, units: Units, output: Output) -> None:
    stage(paths, "main", 5005, "half")
    files.write_json(paths.instance("main"), {"schema": 1, "release": 2})
    assert inferctl.main(["status", "main"], paths) == 0
    assert "main: release 2 is pending: run baremetal.inference.update_model" in output()[0]


def make_member(paths: Paths, rank: int, state: str, *details: str) -> None:
    """Make main a member of a gang of two, in a state. `details`: state and detail of the other member, by default the
    same state."""
    path = paths.release("main", 1) / releases.RELEASE_FILE
    release = replace(releases.load(paths, "main", 1), gang=replace(gang(rank), name="main"))
    files.write(path, release.to_json())
    mine = MemberState(f"gpu-{rank}", rank, f"10.0.0.{rank + 1}", state)
    word, detail = details or (state, "")
    other = MemberState(f"gpu-{1 - rank}", 1 - rank, f"10.0.0.{2 - rank}", word, detail)
    members = (mine, other) if rank == 0 else (other, mine)
    known = GangState("main", rank, 4, state, "2026-11-26T04:00:00Z", members=members)
    files.write_json(paths.gang("main"), known.to_json())


def test_a_gang_has_a_line_and_its_members_below(paths: Paths, units: Units, output: Output) -> None:
    make_member(paths, 0, gangs.SERVING)
    assert inferctl.main(["status", "main"], paths) == 0
    lines = output()[0].splitlines()
    assert lines[1].startswith("main      serving")
    assert lines[2] == "main: this node leads the gang, epoch 4: serving since 2026-11-26T04:00:00Z"
    assert [line.split() for line in lines[3:5]] == [
        ["gpu-0", "rank", "0", "10.0.0.1", "serving"],
        ["gpu-1", "rank", "1", "10.0.0.2", "serving"],
    ]


def test_a_gang_that_waits_names_the_member(paths: Paths, units: Units, output: Output) -> None:
    make_member(paths, 0, gangs.WAITING, gangs.MISSING, "was silent for 10 s")
    status = "waits for gpu-1 (rank 1: was silent for 10 s)"
    units["vllm@main.service"].update(ActiveState="activating", SubState="start", StatusText=status)
    assert inferctl.main(["status", "main"], paths) == 1
    lines = output()[0].splitlines()
    assert lines[1].startswith("main      waiting")
    assert lines[4].split() == ["gpu-1", "rank", "1", "10.0.0.2", "missing", "was", "silent", "for", "10", "s"]
    assert lines[5] == f"main: {status}"


@pytest.mark.parametrize("rank", [0, 1])
def test_a_member_that_boots_does_not_serve_yet(paths: Paths, units: Units, output: Output, rank: int) -> None:
    """The record on disk is that of the supervisor before the loss of power."""
    make_member(paths, rank, gangs.SERVING)
    units["vllm@main.service"].update(ActiveState="activating", SubState="start-pre")
    assert inferctl.main(["status", "main", "--json"], paths) == 1
    (main,) = json.loads(output()[0])["instances"]
    assert (main["state"], main["serving"]) == ("loading", False)
    assert (main["gang"]["state"], main["gang"]["epoch"]) == (gangs.STOPPED, 4)


def test_a_follower_serves_only_with_its_leader_and_has_no_port(paths: Paths, units: Units, output: Output) -> None:
    make_member(paths, 1, gangs.SERVING)
    assert inferctl.main(["status", "main"], paths) == 0
    lines = output()[0].splitlines()
    assert "127.0.0.1:5005" not in lines[1]
    assert lines[2].startswith("main: this node follows with rank 1 in the gang, epoch 4: serving")
    # systemd's state stays active while a follower waits for its leader's next epoch.
    make_member(paths, 1, gangs.MISSING)
    assert inferctl.main(["status", "main"], paths) == 1
    assert output()[0].splitlines()[1].startswith("main      missing")
    units["vllm@main.service"].update(ActiveState="inactive", SubState="dead")
    inferctl.main(["status", "main", "--json"], paths)
    (main,) = json.loads(output()[0])["instances"]
    assert (main["state"], main["serving"], main["gang"]["state"]) == ("stopped", False, gangs.STOPPED)
    assert main["leader"] == "gpu-0", "for playbooks that drain the leader"


def test_a_drained_engine_that_was_stopped_no_longer_drains(paths: Paths, units: Units, output: Output) -> None:
    last = "draining: it is drained and has no requests"
    files.write_json(paths.drain("main"), {"schema": 1, "owner": "test", "reason": "new disk", "since": SINCE})
    units["vllm@main.service"].update(ActiveState="deactivating", SubState="stop-sigterm", StatusText=last)
    inferctl.main(["status", "main"], paths)
    assert f"main: {last}" in output()[0], "systemd still waits for the engine's end"
    units["vllm@main.service"].update(ActiveState="inactive", SubState="dead")
    assert inferctl.main(["status", "main"], paths) == 1
    text = output()[0]
    assert re.match(r"main +stopped +-, drained", text.splitlines()[1]) and "draining" not in text
    assert "main: drained by test " in text and "main: does not serve" in text
    inferctl.main(["status", "main", "--json"], paths)
    (main,) = json.loads(output()[0])["instances"]
    assert (main["state"], main["status"], main["drain"]["owner"]) == ("stopped", "", "test")


def test_an_engine_that_failed_and_was_stopped_shows_its_failure(paths: Paths, units: Units, output: Output) -> None:
    last = "the engine ended before it was ready"
    units["vllm@main.service"].update(ActiveState="inactive", SubState="dead", Result="exit-code", StatusText=last)
    assert inferctl.main(["status", "main"], paths) == 1
    assert f"main: {last}" in output()[0]


def test_a_unit_that_systemd_no_longer_restarts_is_named(paths: Paths, units: Units, output: Output) -> None:
    units["vllm@main.service"].update(ActiveState="failed", SubState="failed", Result="start-limit-hit")
    assert inferctl.main(["status", "main"], paths) == 1
    assert (
        "main: systemd no longer restarts it (start-limit-hit): systemctl reset-failed vllm@main.service" in output()[0]
    )


def test_an_orphan_is_named_and_is_no_failure(paths: Paths, units: Units, output: Output) -> None:
    paths.instance("side").unlink()
    assert inferctl.main(["status"], paths) == 0
    assert "side: is not in the inventory" in output()[0]


def test_a_damaged_file_is_a_problem(paths: Paths, units: Units, output: Output) -> None:
    paths.instance("main").write_text("{")
    assert inferctl.main(["status", "main"], paths) == 1
    assert "main.json is not JSON" in output()[0]


def test_a_bridge_is_shown_as_a_bridge(paths: Paths, units: Units, output: Output) -> None:
    stage(paths, "main_bridge", 5105, "float32")
    units["vllm@main_bridge.service"] = dict(ABSENT)
    inferctl.main(["status", "main_bridge"], paths)
    text = output()[0]
    assert (
        "main_bridge: is the bridge of main for an update: the swap, or the next baremetal.inference.update_model,"
        " removes it" in text
    )
    assert "is not in the inventory" not in text


SINCE = "2026-11-25T12:00:00Z"


@pytest.mark.parametrize(
    ("swap", "words"),
    [
        (
            swaps.Swap(1, 2, "run", SINCE, step=swaps.START),
            f"main: is swapped to release 2, step start, since {SINCE}: journalctl -fu inference-swap@main.service",
        ),
        (
            swaps.Swap(1, 2, "run", SINCE, step=swaps.PROBE, returning=True, failure="too slow"),
            f"main: is swapped back to release 1 (too slow), step probe, since {SINCE}",
        ),
        (
            swaps.Swap(1, 2, "run", SINCE, step=swaps.ADMIT, returning=True, failure="too slow", tries=2),
            f"(too slow), step admit, which has failed 2 times, since {SINCE}",
        ),
        (
            swaps.Swap(1, 2, "run", SINCE, step=swaps.STUCK, failure="neither starts"),
            "main: the swap to release 2 is stuck, requests stay away: neither starts. Correct that, then run inferctl"
            " swap main --to 1",
        ),
        (
            swaps.Swap(None, 2, "run", SINCE, step=swaps.STUCK, failure="it does not start"),
            "it does not start. Correct that, then run inferctl swap main --to 2",
        ),
        (
            swaps.Swap(1, 2, "run", SINCE),
            "main: the swap to release 2 was cut off: run baremetal.inference.update_model again",
        ),
    ],
)
def test_a_swap_is_shown(paths: Paths, units: Units, output: Output, swap: swaps.Swap, words: str) -> None:
    swaps.write(paths, "main", swap)
    inferctl.main(["status", "main"], paths)
    assert words in output()[0]
    inferctl.main(["status", "main", "--json"], paths)
    found = json.loads(output()[0])["instances"][0]["swap"]
    assert (found["target"], found["step"], found["failure"]) == (2, swap.step, swap.failure)


def test_a_damaged_record_of_a_swap_is_shown(paths: Paths, units: Units, output: Output) -> None:
    files.write(paths.swap("main"), '{"schema": 2, "ori')
    inferctl.main(["status", "main"], paths)
    text = output()[0]
    assert f"main: {paths.swap('main')} is damaged (is not JSON: " in text
    assert "Requests may stay away until: inferctl swap main --to 1" in text
    inferctl.main(["status", "main", "--json"], paths)
    found = json.loads(output()[0])["instances"][0]["swap"]
    assert (found["target"], found["step"]) == (1, "damaged") and "is damaged" in found["failure"]
    inferctl.main(["releases", "main"], paths)
    assert f"  being swapped: {paths.swap('main')} is damaged (" in output()[0]


def test_the_open_work_of_a_swap_is_shown(paths: Paths, units: Units, output: Output) -> None:
    stage(paths, "main_bridge", 5105, "float32")
    swaps.end(paths, "main", swaps.Report(1, 2, "run", SINCE, SINCE, swaps.DONE, kept_bridge="busy"))
    inferctl.main(["status", "main"], paths)
    words = "main_bridge could not be removed (busy): the next swap removes it"
    assert f"main: {words}" in output()[0]
    inferctl.main(["status", "main", "--json"], paths)
    found = json.loads(output()[0])["instances"][0]
    assert found["left_over"] == [words] and not found["problems"]


def test_without_a_swap_none_is_shown(paths: Paths, units: Units, output: Output) -> None:
    inferctl.main(["status", "main", "--json"], paths)
    assert json.loads(output()[0])["instances"][0]["swap"] is None
