# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The begin of a swap, its refusals, its progress, and the wait for its end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import bridges, swap_settings
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import gangs, pins, releases, swaps
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.gangs import GangState, MemberState
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.swaps import Report, Swap
from ansible_collections.baremetal.inference.plugins.module_utils.engine.swap_terms import Terms
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap import request
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.request import Request

from ...conftest import stage
from ..gang.world import NEW, OLD, gang

SINCE = "2026-11-25T12:00:00Z"
UNIT = "inference-swap@main.service"
ASKED = Request("main", 2, "run", "why")


class Systemd:
    """The units of the engine and of its swap."""

    def __init__(self) -> None:
        self.states = {"vllm@main.service": "active", UNIT: "inactive"}
        self.calls: list[str] = []
        self.refusal = ""

    def show(self, units: Iterable[str], _properties: Iterable[str]) -> dict[str, dict[str, str]]:
        return {unit: {"ActiveState": self.states[unit]} for unit in units}

    def systemctl(self, *words: str) -> str:
        self.calls.append(" ".join(words))
        if self.refusal:
            raise systemd.SystemdError(self.refusal)
        return ""


@pytest.fixture
def units(monkeypatch: pytest.MonkeyPatch) -> Systemd:
    found = Systemd()
    monkeypatch.setattr(systemd, "show", found.show)
    monkeypatch.setattr(systemd, "systemctl", found.systemctl)
    monkeypatch.setattr(request.time, "sleep", lambda _seconds: None)
    return found


@pytest.fixture
def paths(tmp_path: Path, units: Systemd) -> Paths:
    """A node that serves release 1, which has proved itself."""
    paths = Paths(tmp_path)
    for dtype in ("float32", "float16"):
        stage(paths, "main", 5005, dtype)
    files.write_json(paths.instance("main"), {"schema": 1, "release": 1})
    releases.activate(paths, "main", 1)
    releases.commit(paths, "main", 1)
    files.write(
        paths.swap_settings, swap_settings.text({"node": "node1", "gateways": [], "terms": {"watch_seconds": 7}})
    )
    return paths


def test_a_swap_is_recorded_before_it_starts(paths: Paths, units: Systemd) -> None:
    assert request.begin(paths, ASKED, check=True) is True
    assert swaps.read(paths, "main") is None and units.calls == []
    assert request.begin(paths, replace(ASKED, counted={"at": 1.0})) is True
    found = swaps.read(paths, "main")
    assert found and (found.origin, found.target, found.step, found.touched) == (1, 2, swaps.BEGUN, False)
    assert found.terms == Terms(watch_seconds=7) and found.reason == "why" and found.notes == {"counted": [{"at": 1.0}]}
    # `start` would do nothing while the process of the last swap ends.
    assert units.calls == [f"restart --no-block {UNIT}"]


def test_terms_of_the_run_replace_the_terms_of_the_node(paths: Paths) -> None:
    request.begin(paths, replace(ASKED, terms=Terms(drain_seconds=5)))
    found = swaps.read(paths, "main")
    assert found and found.terms == Terms(drain_seconds=5)


def test_no_swap_is_due_if_the_release_has_proved_itself(paths: Paths, units: Systemd) -> None:
    assert request.begin(paths, replace(ASKED, release=1)) is False
    assert swaps.read(paths, "main") is None and units.calls == []


@pytest.mark.parametrize("missing", ["proof", "pin", "unit"])
def test_a_release_without_proof_pin_or_active_unit_is_swapped_for_itself(
    paths: Paths, units: Systemd, missing: str
) -> None:
    if missing == "proof":
        files.write(paths.known_good("main"), None)
    elif missing == "pin":
        files.write_json(paths.instance("main"), {"schema": 1, "release": 2})
    else:
        units.states["vllm@main.service"] = "failed"
    assert request.begin(paths, replace(ASKED, release=1)) is True


def test_no_swap_is_due_if_the_release_is_pinned(paths: Paths) -> None:
    files.write_json(paths.instance("main"), {"schema": 1, "release": 2})
    pins.settle(paths, "main", 1, "why", SINCE, back=True)
    assert request.begin(paths, replace(ASKED, release=1)) is False


def test_a_bridge_that_was_left_is_removed_without_a_swap_of_the_engine(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridges, "left", lambda *_given: True)
    assert request.begin(paths, replace(ASKED, release=1)) is True
    found = swaps.read(paths, "main")
    assert found and (found.step, found.bridged, found.touched) == (swaps.UNBRIDGE, True, False)


def test_a_release_that_is_not_kept_is_refused(paths: Paths) -> None:
    with pytest.raises(request.Refused, match=r"main has no release 7; it has 1, 2 \(inferctl releases main\)"):
        request.begin(paths, replace(ASKED, release=7))


def spans(paths: Paths, number: int, rank: int, digest: str, port: int = 5110) -> None:
    """Make a release of `main` a member's release of a gang."""
    path = paths.release("main", number) / releases.RELEASE_FILE
    member = replace(gang(rank, digest=digest), name="main", gang_port=port)
    files.write(path, replace(releases.load(paths, "main", number), gang=member).to_json())


@pytest.mark.parametrize(
    ("rank", "port", "reason"),
    [(1, 5110, "main follows gpu-0 here"), (0, 5111, "release 2 of main has other nodes, addresses or ports")],
    ids=["a follower", "another port"],
)
def test_a_gang_that_this_node_cannot_swap_is_refused(paths: Paths, rank: int, port: int, reason: str) -> None:
    spans(paths, 1, rank, OLD)
    spans(paths, 2, rank, NEW, port)
    with pytest.raises(request.Refused, match=reason):
        request.begin(paths, ASKED)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_gang_does_not_become_an_instance_on_one_node(paths: Paths, rank: int) -> None:
    """The other members would wait for a leader for ever."""
    spans(paths, 1, rank, OLD)
    with pytest.raises(request.Refused, match="release 2 of main has other nodes, addresses or ports of its gang"):
        request.begin(paths, ASKED)


def test_the_leader_swaps_for_the_gang(paths: Paths) -> None:
    spans(paths, 1, 0, OLD)
    spans(paths, 2, 0, NEW)
    assert request.begin(paths, ASKED) is True
    found = swaps.read(paths, "main")
    assert found and found.gang and found.step == swaps.BEGUN


def test_a_gang_whose_follower_is_behind_is_swapped_although_the_leader_serves_the_release(paths: Paths) -> None:
    spans(paths, 1, 0, OLD)
    known = [MemberState("gpu-0", 0, "10.0.0.1", gangs.SERVING)]
    for current, due in ((11, False), (10, True)):
        follower = MemberState("gpu-1", 1, "10.0.0.2", gangs.SERVING, "", 11, current, 11, f"11:{OLD[:12]}")
        state = GangState("main", 0, 3, gangs.SERVING, SINCE, members=(*known, follower))
        files.write_json(paths.gang("main"), state.to_json())
        assert request.begin(paths, replace(ASKED, release=1), check=True) is due


def test_missing_swap_settings_are_an_error(paths: Paths) -> None:
    files.write(paths.swap_settings, None)
    with pytest.raises(swap_settings.NoSettings):
        request.begin(paths, ASKED)


def test_a_second_swap_is_refused_while_a_swap_runs(paths: Paths, units: Systemd) -> None:
    request.begin(paths, ASKED)
    units.states[UNIT] = "active"
    began = swaps.read(paths, "main")
    # The same run may ask again.
    assert request.begin(paths, ASKED) is True and swaps.read(paths, "main") == began
    assert units.calls[-1] == f"start --no-block {UNIT}"
    for other in (replace(ASKED, run_id="another"), replace(ASKED, release=1)):
        with pytest.raises(request.Refused, match=r"main is being swapped for release 2 \(begun\): inferctl"):
            request.begin(paths, other)


@pytest.mark.parametrize("step", [swaps.LED, swaps.STUCK, swaps.START])
def test_a_new_swap_continues_the_state_of_a_swap_that_was_cut_off_or_is_stuck(paths: Paths, step: str) -> None:
    """The new swap's origin is the release that served. The engine counts as touched: a refused swap would undrain an
    engine that has not proved itself."""
    old = Swap(1, 2, "old", SINCE, step=step, touched=step != swaps.LED, bridged=True, closed_port=5005, failure="why")
    swaps.begin(paths, "main", old)
    releases.activate(paths, "main", 2)
    assert request.begin(paths, ASKED) is True
    found = swaps.read(paths, "main")
    assert found and (found.origin, found.run_id, found.step) == (1, "run", swaps.BEGUN)
    assert found.touched and found.bridged and found.closed_port == 5005 and not found.failure and found.gated


def test_a_unit_that_does_not_start_leaves_no_new_swap(paths: Paths, units: Systemd) -> None:
    units.refusal = "Unit inference-swap@main.service not found."
    with pytest.raises(systemd.SystemdError):
        request.begin(paths, ASKED)
    assert swaps.read(paths, "main") is None
    stuck = Swap(1, 2, "old", SINCE, step=swaps.STUCK, touched=True, closed_port=5005, failure="why")
    swaps.begin(paths, "main", stuck)
    with pytest.raises(systemd.SystemdError):
        request.begin(paths, ASKED)
    assert swaps.read(paths, "main") == stuck, "otherwise, the refused swap would begin at the next boot"


REPORT = Report(1, 2, "run", SINCE, SINCE, swaps.DONE, words=("one",), load_seconds=12.4, drained_seconds=20.6)


def test_the_progress_of_a_swap_has_its_step_and_then_its_report(paths: Paths, units: Systemd) -> None:
    request.begin(paths, ASKED)
    units.states[UNIT] = "active"
    found = request.progress(paths, "main", "run")
    assert (found.outcome, found.step, found.report) == ("", swaps.BEGUN, None)
    swaps.end(paths, "main", REPORT)
    assert request.progress(paths, "main", "run") == request.Progress(swaps.DONE, "", ("one",), "", REPORT)


def test_a_swap_that_does_not_run_is_stuck(paths: Paths, units: Systemd) -> None:
    swap = Swap(1, 2, "run", SINCE, step=swaps.STUCK, failure="neither starts")
    swaps.write(paths, "main", swap)
    assert request.awaited(paths, "main", "run", 0) == request.Progress(swaps.STUCK, swaps.STUCK, (), "neither starts")
    swaps.write(paths, "main", replace(swap, step=swaps.START))
    found = request.awaited(paths, "main", "run", 0)
    assert found.outcome == swaps.STUCK and "the swap does not run: journalctl -u" in found.failure
    found = request.awaited(paths, "main", "another", 0)
    assert found.outcome == swaps.STUCK and "the outcome of the swap is unknown" in found.failure


def test_a_wait_goes_on_while_systemd_restarts_the_swap(
    paths: Paths, units: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    request.begin(paths, ASKED)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 4:
            units.states[UNIT] = "active"
        if len(slept) == 6:
            swaps.end(paths, "main", REPORT)

    monkeypatch.setattr(request.time, "sleep", sleep)
    assert request.awaited(paths, "main", "run", 60).outcome == swaps.DONE
    assert len(slept) == 6


def test_a_wait_ends_after_its_seconds(paths: Paths, units: Systemd) -> None:
    request.begin(paths, ASKED)
    units.states[UNIT] = "active"
    assert request.awaited(paths, "main", "run", 0).outcome == ""


def test_the_result_of_a_swap_is_one_line_with_times_speed_and_requests() -> None:
    words = request.line(REPORT, "main", "node1")
    assert words == (
        "main on node1 serves release 2. Drained for 21 s, of which it loaded for 12 s; one request alone gets ?"
        " tokens/s; one"
    )
    report = replace(REPORT, pinned=True, tokens_per_second=42.5, load_seconds=None, requests_meanwhile=-3, words=())
    words = request.line(report, "main", "node1")
    assert "serves release 2 (pinned: the inventory asks for another one)" in words
    assert "loaded for ? s; one request alone gets 42.5 tokens/s; 0 requests for main came meanwhile" in words
