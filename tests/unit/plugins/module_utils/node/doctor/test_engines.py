# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of engines, agent and recovery: verdicts, files, models, drains, bridges, units, swaps, firewall."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.debian import nftables_engines
from ansible_collections.baremetal.inference.plugins.module_utils.engine import gate, swap_settings
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import health
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import swaps
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import format_time
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.probe_state import ProbeState
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor import engines
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.check import (
    FAIL,
    OK,
    WARN,
    CannotTell,
    Finding,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import state
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.settings import (
    Settings as RecoverySettings,
)

from .conftest import host, serve


def test_the_agents_verdict_counts_while_it_is_fresh(tmp_path: Path) -> None:
    paths = serve(tmp_path)

    def say(verdict: str, checked: datetime) -> Finding:
        time = format_time(checked)
        files.write_json(paths.probe("main"), ProbeState("main", verdict, time, time, 1, "because").to_json())
        return engines.verdicts(host(tmp_path))

    now = datetime.now(UTC)
    assert say(health.HEALTHY, now).status == OK
    assert say(health.HUNG, now).status == FAIL
    assert say(health.STARTING, now).status == WARN
    assert "the agent has no recent verdict" in say(health.HUNG, datetime(2026, 1, 1, tzinfo=UTC)).message


def corrupt_unit(paths: Paths) -> None:
    paths.unit("main").write_text("[Service]\nExecStart=/bin/false\n")


def lose_environment(paths: Paths) -> None:
    paths.env("main").unlink()


def damage_registry(paths: Paths) -> None:
    paths.registry.write_text("{")


def lose_registry(paths: Paths) -> None:
    paths.registry.unlink()


def lose_declaration(paths: Paths) -> None:
    paths.instance("main").unlink()


@pytest.mark.parametrize("hurt", [corrupt_unit, lose_environment, damage_registry, lose_registry, lose_declaration])
def test_managed_files_that_were_changed_fail_the_check(tmp_path: Path, hurt: Callable[[Paths], None]) -> None:
    paths = serve(tmp_path)
    assert engines.files(host(tmp_path)).status == OK
    hurt(paths)
    assert engines.files(host(tmp_path)).status == FAIL


def test_a_bridge_needs_no_declaration(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    assert engines.files(host(tmp_path)).status == OK
    serve(tmp_path)
    paths.releases("main_bridge").mkdir(parents=True)
    assert engines.files(host(tmp_path)).status == OK


def test_a_recovery_whose_path_unit_is_not_active_fails_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, active = serve(tmp_path), "active"
    monkeypatch.setattr(systemd, "active_state", lambda _unit: active)
    assert engines.recovery(host(tmp_path)).message.startswith("does not apply")
    files.write_json(paths.recovery_settings, RecoverySettings(armed=False).to_json())
    found = engines.recovery(host(tmp_path))
    assert found.status == OK and "disarmed" in found.message
    active = "inactive"
    assert engines.recovery(host(tmp_path)).status == FAIL
    active = "active"
    paths.recovery_settings.write_text("[]")
    assert engines.recovery(host(tmp_path)).status == FAIL


def test_a_model_that_is_gone_fails_the_check(tmp_path: Path) -> None:
    serve(tmp_path)
    assert engines.weights(host(tmp_path)).status == OK
    (tmp_path / "models/tiny-a").rmdir()
    found = engines.weights(host(tmp_path))
    assert found.status == FAIL and "tiny-a" in found.message


def test_checks_are_unknown_if_systemd_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(tmp_path)

    def fail(*_arguments: object) -> None:
        raise systemd.SystemdError("systemctl show: timed out")

    monkeypatch.setattr(systemd, "systemctl", fail)
    at(Paths(tmp_path), swaps.START)
    for check in (engines.agent, engines.units, engines.swapping):
        with pytest.raises(CannotTell):
            check(host(tmp_path))


def test_a_bridge_that_an_update_has_left_is_a_warning(tmp_path: Path) -> None:
    assert engines.leftover_bridges(host(tmp_path)).status == OK
    Paths(tmp_path).releases("main_bridge").mkdir(parents=True)
    found = engines.leftover_bridges(host(tmp_path))
    assert found.status == WARN and "main_bridge" in found.message
    # An update visits only instances that the inventory declares.
    assert "baremetal.inference.update_model removes bridges of instances that the inventory declares" in found.action
    assert "engine_service -a 'names=INSTANCE_bridge state=absent'" in found.action


def test_a_drain_is_a_warning(tmp_path: Path) -> None:
    paths = serve(tmp_path)
    assert engines.drained(host(tmp_path)).status == OK
    paths.drains.mkdir(parents=True)
    drain = {"schema": 1, "owner": "me", "reason": "disk", "since": "2026-01-01T00:00:00Z", "until": None}
    paths.drain("main").write_text(json.dumps(drain))
    assert engines.drained(host(tmp_path)).status == WARN


def test_the_agent_and_units_are_judged_by_their_state_in_systemd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert engines.agent(host(tmp_path)).message.startswith("does not apply")
    serve(tmp_path)
    shown = {"NeedDaemonReload": "no"}
    monkeypatch.setattr(systemd, "show", lambda units, _properties: dict.fromkeys(units, shown))
    monkeypatch.setattr(systemd, "active_state", lambda _unit: shown.get("ActiveState", "active"))
    assert engines.agent(host(tmp_path)).status == OK
    assert engines.units(host(tmp_path)).status == OK
    shown.update(NeedDaemonReload="yes", ActiveState="failed")
    assert engines.agent(host(tmp_path)).status == FAIL
    found = engines.units(host(tmp_path))
    assert found.status == WARN and "vllm@main.service" in found.message


def test_an_open_breaker_is_a_warning(tmp_path: Path) -> None:
    paths = serve(tmp_path)
    state.write(paths, state.State("main", breaker=state.Breaker("2026-01-01T00:00:00Z", "why")))
    found = engines.drained(host(tmp_path))
    assert found.status == WARN and "inferctl recover main --reset" in found.message


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The ports whose gate is closed."""
    found: set[int] = set()
    monkeypatch.setattr(gate, "closed", lambda: set(found))
    return found


def at(paths: Paths, step: str) -> None:
    swaps.write(paths, "main", swaps.Swap(1, 2, "run", "2026-11-25T12:00:00Z", step=step, closed_port=5005))


@pytest.mark.parametrize(
    ("step", "state", "status", "words"),
    [
        (swaps.START, "active", OK, "none is stuck"),
        # systemd starts the unit of the swap again after 2 s.
        (swaps.START, "activating", OK, "none is stuck"),
        (swaps.START, "failed", FAIL, "inference-swap@main.service does not run, although the swap is at step start"),
        (swaps.STUCK, "inactive", FAIL, "main: the swap to release 2 is stuck: "),
        (swaps.LED, "inactive", FAIL, "main: the swap to release 2 was cut off"),
    ],
)
def test_a_swap_that_does_not_go_on_fails_the_check(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    closed: set[int],
    step: str,
    state: str,
    status: str,
    words: str,
) -> None:
    paths = serve(tmp_path)
    files.write(paths.swap_settings, swap_settings.text({"node": "node1", "gateways": []}))
    monkeypatch.setattr(systemd, "active_state", lambda _unit: state)
    at(paths, step)
    # The swap itself has closed this gate.
    closed.add(5005)
    found = engines.swapping(host(tmp_path))
    assert found.status == status and words in found.message
    assert bool(found.action) is (status == FAIL)


@pytest.mark.parametrize("content", ["", '{"schema": 2, "ori', "[]", '{"schema": 7}'])
def test_a_record_of_a_swap_that_is_damaged_fails_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: set[int], content: str
) -> None:
    paths = serve(tmp_path)
    files.write(paths.swap_settings, swap_settings.text({"node": "node1", "gateways": []}))
    monkeypatch.setattr(systemd, "active_state", lambda _unit: "inactive")
    files.write(paths.swap("main"), content)
    found = engines.swapping(host(tmp_path))
    assert found.status == FAIL and found.message.startswith(f"{paths.swap('main')} is damaged (")
    assert found.action.endswith("inferctl swap NAME --to RELEASE")


def test_a_gate_that_is_closed_without_a_swap_fails_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: set[int]
) -> None:
    paths = serve(tmp_path)
    files.write(paths.swap_settings, swap_settings.text({"node": "node1", "gateways": []}))
    monkeypatch.setattr(systemd, "active_state", lambda _unit: "active")
    files.write_json(paths.instance("main"), {"release": 1, "bridge_port": 5105})
    assert engines.swapping(host(tmp_path)).status == OK
    closed.update({5006, 5105})
    found = engines.swapping(host(tmp_path))
    assert found.status == FAIL and "the gate of port 5006, 5105 is closed, but no swap is under way" in found.message
    assert found.action == "nft delete element inet inference_gate closed { 5006, 5105 }"
    # A swap closes the gate of its bridge, too.
    at(paths, swaps.UNBRIDGE)
    closed.remove(5006)
    assert engines.swapping(host(tmp_path)).status == OK


def test_the_open_work_of_a_swap_is_a_warning(tmp_path: Path, closed: set[int]) -> None:
    paths = serve(tmp_path)
    files.write(paths.swap_settings, swap_settings.text({"node": "node1", "gateways": []}))
    files.write(paths.drain("main_bridge"), "")
    since = "2026-11-25T12:00:00Z"
    swaps.end(paths, "main", swaps.Report(1, 2, "run", since, since, swaps.DONE, kept_bridge="busy"))
    found = engines.swapping(host(tmp_path))
    assert found.status == WARN and "main: main_bridge could not be removed" in found.message


def test_a_node_without_nftables_has_no_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> set[int]:
        raise gate.NotInstalled("nft is not installed")

    monkeypatch.setattr(gate, "closed", missing)
    assert engines.swapping(host(tmp_path)).status == OK


def test_gates_that_cannot_be_read_are_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> set[int]:
        raise gate.GateError("nft ended with 1")

    monkeypatch.setattr(gate, "closed", refused)
    with pytest.raises(CannotTell, match="whether a gate is closed without a swap is unknown: nft ended with 1"):
        engines.swapping(host(tmp_path))
    paths = serve(tmp_path)
    at(paths, swaps.STUCK)
    assert engines.swapping(host(tmp_path)).status == FAIL


def test_missing_swap_settings_are_a_warning(tmp_path: Path, closed: set[int]) -> None:
    assert engines.swapping(host(tmp_path)).status == OK, "the node has no engine"
    serve(tmp_path)
    found = engines.swapping(host(tmp_path))
    assert (
        found.status == WARN
        and "swap.json is not there" in found.message
        and found.action == "run baremetal.inference.site"
    )


def test_rules_of_engines_that_are_not_loaded_fail_the_check(tmp_path: Path) -> None:
    """After `nft flush ruleset`, engines can open any connection."""
    listing = "\t\tmeta skuid 2000 reject with icmpx admin-prohibited\n"

    def found(loaded: str) -> Finding:
        return engines.confined(host(tmp_path, {"nft": Outcome(0, loaded)}))

    assert found("").status == OK and "does not apply" in found("").message
    part = nftables_engines.text("site", {2000}, [], log=True)
    files.write(tmp_path / "etc/nftables.d/engines/50-inference-site.nft", part)
    (tmp_path / "etc/nftables.d/engines/10-own.nft").write_bytes(b"# M\xfcller\n")
    assert found(listing).status == OK
    assert found("").status == FAIL and "not loaded for user 2000" in found("").message
    assert engines.confined(host(tmp_path)).status == FAIL
    hangs = Outcome(None, failure="timeout", message="nft did not end within 15 s")
    with pytest.raises(CannotTell, match="did not end"):
        engines.confined(host(tmp_path, {"nft": hangs}))
