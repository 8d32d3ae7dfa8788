# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engines' verdicts, files, models, drains, and the units that watch them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import health
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
    assert "silent" in say(health.HUNG, datetime(2026, 1, 1, tzinfo=UTC)).message


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
def test_managed_files_that_were_changed_fail(tmp_path: Path, hurt: Callable[[Paths], None]) -> None:
    paths = serve(tmp_path)
    assert engines.files(host(tmp_path)).status == OK
    hurt(paths)
    assert engines.files(host(tmp_path)).status == FAIL


def test_a_stand_in_is_declared_nowhere(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    assert engines.files(host(tmp_path)).status == OK
    serve(tmp_path)
    paths.releases("main_bridge").mkdir(parents=True)
    assert engines.files(host(tmp_path)).status == OK


def test_a_recovery_that_waits_for_nobody_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_model_that_is_gone_fails(tmp_path: Path) -> None:
    serve(tmp_path)
    assert engines.weights(host(tmp_path)).status == OK
    (tmp_path / "models/tiny-a").rmdir()
    found = engines.weights(host(tmp_path))
    assert found.status == FAIL and "tiny-a" in found.message


def test_systemd_that_does_not_answer_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(tmp_path)

    def fail(*_arguments: object) -> None:
        raise systemd.SystemdError("systemctl show: timed out")

    monkeypatch.setattr(systemd, "systemctl", fail)
    for check in (engines.agent, engines.units):
        with pytest.raises(CannotTell):
            check(host(tmp_path))


def test_what_an_update_has_left_in_place_of_an_instance(tmp_path: Path) -> None:
    assert engines.leftover_bridges(host(tmp_path)).status == OK
    Paths(tmp_path).releases("main_bridge").mkdir(parents=True)
    found = engines.leftover_bridges(host(tmp_path))
    assert found.status == WARN and "main_bridge" in found.message
    # An update walks only what the inventory declares.
    assert "update_model.yml removes those" in found.action
    assert "engine_service -a 'names=INSTANCE_bridge state=absent'" in found.action


def test_a_drain_is_a_warning(tmp_path: Path) -> None:
    paths = serve(tmp_path)
    assert engines.drained(host(tmp_path)).status == OK
    paths.drains.mkdir(parents=True)
    intent = {"schema": 1, "owner": "me", "reason": "disk", "since": "2026-01-01T00:00:00Z", "until": None}
    paths.drain("main").write_text(json.dumps(intent))
    assert engines.drained(host(tmp_path)).status == WARN


def test_the_agent_and_units_as_systemd_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
