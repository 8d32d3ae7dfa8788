# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`inferctl swap` and `inferctl rollback`, and the commands of their units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import gate, swap_settings
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import history, lock, releases, swaps
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.swaps import Report, Swap
from ansible_collections.baremetal.inference.plugins.module_utils.engine.swap_terms import Terms
from ansible_collections.baremetal.inference.plugins.module_utils.node.cli import swap as cli
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap import damaged, perform

from ...conftest import stage
from .conftest import Run, RunJson

SINCE = "2026-11-25T12:00:00Z"
UNIT = "inference-swap@main.service"


class Node:
    """A fake systemd that performs a swap at once, by the function in `perform`."""

    def __init__(self, paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths = paths
        self.calls: list[str] = []
        self.states: dict[str, str] = {}
        self.perform: Callable[[Swap], None] = lambda swap: self.end(swaps.DONE)
        monkeypatch.setattr(systemd, "show", self.show)
        monkeypatch.setattr(systemd, "systemctl", self.systemctl)
        monkeypatch.setattr(cli.time, "sleep", lambda _seconds: None)

    def show(self, units: Any, _properties: Any) -> dict[str, dict[str, str]]:
        return {
            unit: {"ActiveState": self.states.get(unit, "active"), "SubState": "running", "InvocationID": "abc"}
            for unit in units
        }

    def systemctl(self, *words: str) -> str:
        self.calls.append(" ".join(words))
        swap = swaps.read(self.paths, "main")
        if words[-1] == UNIT and swap:
            self.perform(swap)
        return ""

    def end(self, outcome: str, failure: str = "", **more: Any) -> None:
        swap = swaps.read(self.paths, "main")
        assert swap
        words = ("one", "two")
        report = Report(swap.origin, swap.target, swap.run_id, swap.since, SINCE, outcome, failure, words=words, **more)
        perform.release_lock(self.paths, swap)
        swaps.end(self.paths, "main", report)


@pytest.fixture
def node(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> Node:
    """Release 1 of main serves, release 2 is kept."""
    stage(paths, "main", 5005, "float16")
    settings = {"node": "node1", "gateways": [], "terms": {"watch_seconds": 7, "speed_bound": 0.7}}
    files.write(paths.swap_settings, swap_settings.text(settings))
    return Node(paths, monkeypatch)


def test_a_finished_swap_prints_its_messages_and_its_report(node: Node, run: Run, paths: Paths) -> None:
    seen = []

    def performed(swap: Swap) -> None:
        seen.append((swap, lock.read(paths)))
        node.end(swaps.DONE)

    node.perform = performed
    code, output, errors = run("swap", "main", "--to", "2")
    assert code == 0 and errors == ""
    lines = output.splitlines()
    assert lines[:2] == ["main: one", "main: two"]
    assert lines[2].startswith("main on node1 serves release 2. Drained for ? s")
    ((swap, held),) = seen
    assert (swap.target, swap.back, swap.pin, swap.reason) == (2, False, True, "inferctl swap by alice")
    assert swap.terms == Terms(watch_seconds=7, speed_bound=0.7)
    assert held and (held.run_id, held.playbook, held.user, held.host) == (
        swap.run_id,
        lock.BY_HAND,
        "alice",
        "node1",
    )
    assert lock.read(paths) is None


def test_options_replace_the_terms_of_the_node(node: Node, run: Run) -> None:
    seen: list[Terms] = []

    def performed(swap: Swap) -> None:
        seen.append(swap.terms)
        node.end(swaps.DONE)

    node.perform = performed
    options = ["--force", "--allow-downtime", "--drain-seconds", "5", "--watch-seconds", "0"]
    assert run("swap", "main", "--to", "2", *options)[0] == 0
    assert seen == [Terms(5, 0, speed_bound=0.7, force=True, allow_downtime=True)]


@pytest.mark.parametrize("option", ["--drain-seconds=-5", "--watch-seconds=-1", "--drain-seconds=soon"])
def test_an_impossible_number_of_seconds_is_wrong_usage(node: Node, run: Run, option: str) -> None:
    with pytest.raises(SystemExit) as error:
        run("swap", "main", "--to", "2", option)
    assert error.value.code == 2 and node.calls == []


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (swaps.REFUSED, "why. nothing was changed"),
        (swaps.RETURNED, "why. the release before serves"),
    ],
)
def test_a_failed_swap_prints_its_failure(node: Node, run: Run, outcome: str, words: str) -> None:
    node.perform = lambda _swap: node.end(outcome, "why")
    code, _output, errors = run("swap", "main", "--to", "2")
    assert code == 1 and errors == f"inferctl: main: {words}\n"


@pytest.mark.parametrize(
    ("permission", "words"),
    [
        ("force", "--force cuts requests that are still in flight"),
        ("allow_downtime", "--allow-downtime swaps although clients find no engine meanwhile"),
    ],
)
def test_a_refusal_names_the_option_of_this_command(node: Node, run: Run, permission: str, words: str) -> None:
    node.perform = lambda _swap: node.end(swaps.REFUSED, "why", permission=permission)
    code, _output, errors = run("swap", "main", "--to", "2")
    assert code == 1 and errors == f"inferctl: main: why. nothing was changed. {words}\n"


def test_the_open_work_of_a_swap_is_printed(node: Node, run: Run) -> None:
    node.perform = lambda _swap: node.end(swaps.RETURNED, "why", kept_bridge="busy", unproven="disk full")
    code, _output, errors = run("swap", "main", "--to", "2")
    assert code == 1 and errors.splitlines() == [
        "inferctl: main: why. the release before serves",
        "inferctl: main: main_bridge could not be removed (busy): the next swap removes it",
        "inferctl: main: release 1 serves, but is not marked as proven (disk full): inferctl swap main --to 1",
    ]


def test_a_stuck_swap_is_a_failure(node: Node, run_json: RunJson, paths: Paths) -> None:
    def stuck(swap: Swap) -> None:
        swaps.write(paths, "main", Swap(**{**vars(swap), "step": swaps.STUCK, "failure": "why"}))

    node.perform = stuck
    code, document = run_json("swap", "main", "--to", "2")
    assert code == 1 and (document["outcome"], document["failure"], document["report"]) == ("stuck", "why", None)


def test_a_stuck_swap_prints_that_requests_stay_away(node: Node, run: Run, paths: Paths) -> None:
    def stuck(swap: Swap) -> None:
        swaps.write(paths, "main", Swap(**{**vars(swap), "step": swaps.STUCK, "failure": "why"}))

    node.perform = stuck
    code, _output, errors = run("swap", "main", "--to", "2")
    words = "why. requests stay away: remove the cause, and swap again"
    assert code == 1 and errors == f"inferctl: main: {words}\n"


@pytest.mark.parametrize("recorded", [True, False])
def test_an_unknown_end_is_reported_as_unknown(node: Node, run: Run, paths: Paths, recorded: bool) -> None:
    """The process of the swap does not run, or its record is gone."""

    def vanish(_swap: Swap) -> None:
        node.states[UNIT] = "inactive"
        if not recorded:
            swaps.end(paths, "main")

    node.perform = vanish
    code, _output, errors = run("swap", "main", "--to", "2")
    failure = "the swap does not run" if recorded else "the outcome of the swap is unknown"
    assert code == 1 and errors == (
        f"inferctl: main: {failure}: journalctl -u {UNIT}. inferctl status shows whether main serves: remove the"
        " cause, and swap again\n"
    )


def test_the_json_of_a_swap_has_outcome_report_and_messages(node: Node, run_json: RunJson) -> None:
    code, document = run_json("swap", "main", "--to", "2")
    assert code == 0 and document["instance"] == "main" and document["outcome"] == swaps.DONE
    assert document["report"]["target"] == 2 and document["words"] == ["one", "two"]


def test_ctrl_c_ends_the_command_and_not_the_swap(
    node: Node, run: Run, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    node.perform = lambda _swap: None
    monkeypatch.setattr(cli.time, "sleep", interrupt)
    code, _output, errors = run("swap", "main", "--to", "2")
    assert code == 130 and errors == (
        "inferctl: main: interrupted, but the swap continues: inferctl status shows its steps\n"
    )
    assert swaps.read(paths, "main") and lock.read(paths)


def test_with_the_option_no_wait_the_command_ends_while_the_swap_is_under_way(
    node: Node, run: Run, paths: Paths
) -> None:
    node.perform = lambda _swap: None
    assert run("swap", "main", "--to", "2", "--no-wait") == (3, "", "")
    assert swaps.read(paths, "main")


def test_a_swap_to_the_release_that_serves_does_nothing(node: Node, run: Run, paths: Paths) -> None:
    assert run("swap", "main", "--to", "1") == (0, "release 1 already serves\n", "")
    assert lock.read(paths) is None


def test_a_refused_swap_leaves_no_lock(node: Node, run: Run, paths: Paths) -> None:
    code, _output, errors = run("swap", "main", "--to", "7")
    assert code == 1 and "main has no release 7; it has 1, 2" in errors
    assert lock.read(paths) is None
    code, _output, errors = run("swap", "mian", "--to", "2")
    assert code == 2 and "did you mean 'main'" in errors
    files.write(paths.swap_settings, None)
    code, _output, errors = run("swap", "main", "--to", "2")
    assert code == 1 and "run baremetal.inference.site, which records the gateways on the node" in errors


def test_a_playbook_that_has_the_lock_keeps_it(node: Node, run: Run, paths: Paths) -> None:
    held = lock.Lock("other", "bob", "admin1", "baremetal.inference.update_model", SINCE, "2126-01-01T00:00:00Z")
    lock.take(paths, held, lock.parse_time(SINCE))
    code, _output, errors = run("swap", "main", "--to", "2")
    assert code == 1 and "this node is locked by run other of baremetal.inference.update_model" in errors
    assert lock.read(paths) == held and swaps.read(paths, "main") is None
    # A new swap adopts the lock of the run whose swap is stuck.
    swaps.write(paths, "main", Swap(1, 2, "other", SINCE, step=swaps.STUCK))
    assert run("swap", "main", "--to", "2")[0] == 0


@pytest.mark.parametrize("step, release", [(swaps.STUCK, "7"), (swaps.START, "1")])
def test_a_refused_swap_returns_the_lock_that_it_adopted(
    node: Node, run: Run, paths: Paths, step: str, release: str
) -> None:
    """The playbook whose swap is stuck, or under way, still holds the lock of the node."""
    held = lock.Lock("other", "bob", "admin1", "baremetal.inference.update_model", SINCE, "2126-01-01T00:00:00Z")
    lock.take(paths, held, lock.parse_time(SINCE))
    swaps.write(paths, "main", Swap(1, 2, "other", SINCE, step=step))
    code, _output, errors = run("swap", "main", "--to", release)
    assert code == 1 and ("has no release 7" in errors or "is being swapped" in errors)
    assert lock.read(paths) == held


def test_a_rollback_goes_to_the_release_before(node: Node, run: Run, paths: Paths) -> None:
    seen = done(node)
    code, _output, errors = run("rollback", "main")
    assert code == 2 and "main has no earlier release for a rollback" in errors
    for number in (1, 2):
        history.add(paths, "main", history.Served(number, SINCE, None, None))
    files.write_json(paths.instance("main"), {"schema": 1, "release": 2})
    releases.activate(paths, "main", 2)
    releases.commit(paths, "main", 2)
    assert run("rollback", "main")[0] == 0
    assert (seen[0].target, seen[0].back, seen[0].reason) == (1, True, "inferctl rollback by alice")
    releases.activate(paths, "main", 1)
    releases.commit(paths, "main", 1)
    assert run("rollback", "main", "2")[0] == 0 and seen[1].target == 2
    # A wrong number is not replaced by the default.
    assert run("rollback", "main", "0")[0] == 1 and len(seen) == 2


def test_only_the_unit_performs_a_swap(node: Node, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    performed = []
    monkeypatch.setattr(perform, "perform", lambda _paths, name: performed.append(name))
    monkeypatch.delenv("INVOCATION_ID", raising=False)
    code, _output, errors = run("perform-swap", "main")
    assert code == 2 and f"perform-swap is for {UNIT} alone" in errors and performed == []
    monkeypatch.setenv("INVOCATION_ID", "another")
    assert run("perform-swap", "main")[0] == 2
    monkeypatch.setenv("INVOCATION_ID", "abc")
    assert run("perform-swap", "main")[0] == 0 and performed == ["main"]


@pytest.mark.parametrize(("restarts", "seconds"), [("", 0), ("0", 0), ("1", 2), ("2", 6), ("5", 60), ("4000", 60)])
def test_a_swap_process_waits_longer_after_each_failure(
    node: Node, run: Run, monkeypatch: pytest.MonkeyPatch, restarts: str, seconds: float
) -> None:
    def fail(_paths: Paths, _name: str) -> None:
        raise OSError("No space left on device")

    rested: list[float] = []
    shown = {UNIT: {"InvocationID": "abc", "NRestarts": restarts}}
    monkeypatch.setattr(systemd, "show", lambda _units, _properties: shown)
    monkeypatch.setattr(perform, "perform", fail)
    monkeypatch.setattr(cli.time, "sleep", rested.append)
    monkeypatch.setenv("INVOCATION_ID", "abc")
    code, _output, errors = run("perform-swap", "main")
    assert code == 1 and "No space left on device" in errors and rested == [seconds]


def done(node: Node) -> list[Swap]:
    """Let swaps succeed. Returns the list to which each swap is added."""
    seen: list[Swap] = []

    def performed(swap: Swap) -> None:
        seen.append(swap)
        node.end(swaps.DONE)

    node.perform = performed
    return seen


@pytest.fixture
def closed(node: Node, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ports whose gates close. The unit of main's swap does not run."""
    found: list[int] = []
    monkeypatch.setattr(gate, "close", found.append)
    node.states[UNIT] = "inactive"
    node.perform = lambda _swap: None
    return found


@pytest.mark.parametrize(
    ("step", "gates", "starts"),
    [
        (swaps.BEGUN, [], True),
        (swaps.GATE, [5005], True),
        (swaps.START, [5005], True),
        # The engine starts anew, and has to prove itself behind the gate.
        (swaps.ADMIT, [5005], True),
        (swaps.WATCH, [5005], True),
        (swaps.PROVE, [], True),
        (swaps.UNBRIDGE, [], True),
        (swaps.STUCK, [5005], False),
        (swaps.LED, [], False),
    ],
)
def test_after_a_restart_the_step_decides_whether_gates_close_and_the_swap_continues(
    node: Node, run: Run, paths: Paths, closed: list[int], step: str, gates: list[int], starts: bool
) -> None:
    swaps.write(paths, "main", Swap(1, 2, "run", SINCE, step=step, closed_port=5005))
    assert run("resume-swaps")[0] == 0
    assert closed == gates and node.calls == ([f"start --no-block {UNIT}"] if starts else [])


def test_after_a_restart_a_damaged_record_closes_the_gate_and_the_swap_goes_back(
    node: Node, run: Run, paths: Paths, closed: list[int]
) -> None:
    node.states["vllm@main.service"] = "inactive"
    files.write(paths.swap("main"), "{")
    assert run("resume-swaps")[0] == 0
    assert closed == [releases.load(paths, "main", 1).port] and node.calls == [f"start --no-block {UNIT}"]
    found = swaps.read(paths, "main")
    assert found and (found.step, found.returning, found.origin) == (swaps.DRAIN, True, 1) and found.gated


def test_a_swap_begins_although_the_record_of_the_last_swap_is_damaged(
    node: Node, run: Run, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new swap also adopts the lock of the last swap."""
    monkeypatch.setattr(gate, "closed", set)
    node.states[UNIT] = "inactive"
    node.perform = lambda _swap: None
    assert run("swap", "main", "--to", "2", "--no-wait")[0] == 3
    files.write(paths.swap("main"), "{")
    seen = done(node)
    assert run("swap", "main", "--to", "2")[0] == 0
    # The engine runs, and no requests are kept away.
    assert (seen[0].origin, seen[0].target, seen[0].touched) == (1, 2, False)
    assert lock.read(paths) is None


def test_a_rollback_goes_to_the_release_before_although_the_record_of_a_swap_is_damaged(
    node: Node, run: Run, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "closed", set)
    files.write_json(paths.instance("main"), {"schema": 1, "release": 2})
    for number in (1, 2):
        releases.activate(paths, "main", number)
        releases.commit(paths, "main", number)
        history.add(paths, "main", history.Served(number, SINCE))
    files.write(paths.swap("main"), "{")
    node.states[UNIT] = "inactive"
    seen = done(node)
    assert run("rollback", "main")[0] == 0 and (seen[0].origin, seen[0].target) == (2, 1)


def test_a_gate_that_does_not_close_is_an_error_and_the_swap_continues(
    node: Node, run: Run, paths: Paths, closed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_port: int) -> None:
        raise gate.GateError("nft is not installed")

    monkeypatch.setattr(gate, "close", refuse)
    swaps.write(paths, "main", Swap(1, 2, "run", SINCE, step=swaps.START, closed_port=5005))
    code, _output, errors = run("resume-swaps")
    assert code == 1 and "main: nft is not installed" in errors and node.calls == [f"start --no-block {UNIT}"]


def test_a_swap_that_cannot_be_read_does_not_prevent_the_others(
    node: Node, run: Run, paths: Paths, closed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate of the other instance must be closed before its engine starts."""

    def rebuilt(_paths: Paths, _name: str, _found: Swap) -> Swap:
        raise systemd.SystemdError("systemctl show: timed out")

    monkeypatch.setattr(damaged, "rebuilt", rebuilt)
    node.states["inference-swap@first.service"] = "inactive"
    files.write(paths.swap("first"), "{")
    swaps.write(paths, "main", Swap(1, 2, "run", SINCE, step=swaps.START, closed_port=5005))
    code, _output, errors = run("resume-swaps")
    assert code == 1 and "first: systemctl show: timed out" in errors and closed == [5005]
    assert node.calls == ["start --no-block inference-swap@first.service", f"start --no-block {UNIT}"]


def test_the_command_resume_swaps_leaves_a_running_swap_alone(
    node: Node, run: Run, paths: Paths, closed: list[int]
) -> None:
    """An operator who calls the command must not close the gate of an engine that is watched."""
    node.states[UNIT] = "active"
    swaps.write(paths, "main", Swap(1, 2, "run", SINCE, step=swaps.WATCH, closed_port=5005))
    assert run("resume-swaps")[0] == 0
    found = swaps.read(paths, "main")
    assert found and found.step == swaps.WATCH and closed == [] and node.calls == []
