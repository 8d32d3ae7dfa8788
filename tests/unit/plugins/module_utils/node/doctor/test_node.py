# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of system, Docker, RDMA and engines on a node of files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import Docker
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import health
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Rendered, Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import format_time
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.probe_state import ProbeState
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor import docker, engines, rdma, system
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.check import (
    FAIL,
    OK,
    WARN,
    CannotTell,
    Finding,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.host import Host, Thresholds
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.settings import (
    Settings as RecoverySettings,
)
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored import StoredModel

CHRONY = "^,{state},192.0.2.123,2,6,377,20,{offset},{offset},0.000021\n"


def host(root: Path, answers: dict[str, Outcome] | None = None, **thresholds: Any) -> Host:
    def run(command: Sequence[str], _timeout: float) -> Outcome:
        missing = Outcome(None, failure="not_installed", message=f"{command[0]} is not installed")
        return (answers or {}).get(command[0], missing)

    return Host(Paths(root), run, Docker(root / "docker.sock", timeout=1), Thresholds(**thresholds))


def serve(root: Path) -> Paths:
    """An instance of the CPU with its files in place, proven."""
    paths = Paths(root)
    instance = Instance(name="main", model="tiny-a", port=5005, accelerator="cpu")
    model = root / "models/tiny-a"
    model.mkdir(parents=True, exist_ok=True)

    def rendered(number: int) -> Rendered:
        return render(instance, [], StoredModel(str(model), "r"), "image", Settings(), number=number)

    releases.stage(paths, "main", rendered(0).release.id, rendered, pytest.fail)
    releases.activate(paths, "main", 1)
    releases.commit(paths, "main", 1)
    files.write_json(paths.instance("main"), {"release": 1})
    files.write_json(paths.registry, {"models": {}})
    return paths


@pytest.mark.parametrize(
    ("state", "offset", "status"), [("*", "0.0001", OK), ("*", "-90.5", WARN), ("?", "0.0001", WARN)]
)
def test_the_clock(tmp_path: Path, state: str, offset: str, status: str) -> None:
    answers = {"chronyc": Outcome(0, CHRONY.format(state=state, offset=offset))}
    assert system.clock(host(tmp_path, answers)).status == status


def test_a_chronyd_that_is_down_leaves_the_clock_open(tmp_path: Path) -> None:
    with pytest.raises(CannotTell, match="506"):
        system.clock(host(tmp_path, {"chronyc": Outcome(1, "506 Cannot talk to daemon\n")}))


def test_a_full_disk_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert system.disk(host(tmp_path, free_percent=0)).status == OK
    real = os.statvfs(tmp_path)
    full = os.statvfs_result((*real[:4], 1, *real[5:]))
    monkeypatch.setattr(system.os, "statvfs", lambda _path: full)
    found = system.disk(host(tmp_path))
    assert found.status == FAIL and "of the space free" in found.message


def test_what_docker_may_lock_matters_with_rdma_alone(tmp_path: Path) -> None:
    answers = {"systemctl": Outcome(0, "65536\n")}
    assert system.memlock(host(tmp_path, answers)).status == OK
    port = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    port.mkdir(parents=True)
    for name, text in {"state": "4: ACTIVE", "link_layer": "Ethernet", "rate": "100 Gb/sec (4X EDR)"}.items():
        (port / name).write_text(text)
    assert system.memlock(host(tmp_path, answers)).status == WARN
    assert system.memlock(host(tmp_path, {"systemctl": Outcome(0, "infinity\n")})).status == OK
    assert rdma.ports(host(tmp_path)).status == OK
    lacking = rdma.gids(host(tmp_path))
    assert lacking.status == WARN and "mlx5_0/1" in lacking.message
    (port / "state").write_text("1: DOWN")
    assert rdma.ports(host(tmp_path)).status == WARN


def test_a_slow_link_of_infiniband_is_seen(tmp_path: Path) -> None:
    for number, rate in enumerate(("400 Gb/sec (4X NDR)", "400 Gb/sec (4X NDR)", "200 Gb/sec (2X NDR)")):
        port = tmp_path / f"sys/class/infiniband/mlx5_{number}/ports/1"
        port.mkdir(parents=True)
        for name, text in {"state": "4: ACTIVE", "link_layer": "InfiniBand", "rate": rate}.items():
            (port / name).write_text(text)
    found = rdma.speed(host(tmp_path))
    assert found.status == WARN and found.message == "mlx5_2/1 runs at 200 Gb/s, others at 400"


def test_docker_is_missed_where_there_are_instances(tmp_path: Path) -> None:
    assert docker.answers(host(tmp_path)).status == OK
    serve(tmp_path)
    assert docker.answers(host(tmp_path)).status == FAIL


@pytest.mark.parametrize(("text", "words"), [('{"live-restore": true}', "engines go on"), ("{}", "it ends engines")])
def test_what_a_restart_of_docker_costs_is_told(tmp_path: Path, text: str, words: str) -> None:
    serve(tmp_path)
    files.write(tmp_path / "etc/docker/daemon.json", text)
    assert words in docker.answers(host(tmp_path)).action


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
    assert engines.stand_ins(host(tmp_path)).status == OK
    Paths(tmp_path).releases("main_bridge").mkdir(parents=True)
    found = engines.stand_ins(host(tmp_path))
    assert found.status == WARN and "main_bridge" in found.message
    # An update walks only what the inventory declares.
    assert "update-model.yml removes those" in found.action and "engine_bridge -a 'name=INSTANCE" in found.action


def test_a_drain_is_a_warning(tmp_path: Path) -> None:
    paths = serve(tmp_path)
    assert engines.drained(host(tmp_path)).status == OK
    paths.drains.mkdir(parents=True)
    intent = {"schema": 1, "owner": "me", "reason": "disk", "since": "2026-01-01T00:00:00Z", "until": None}
    paths.drain("main").write_text(json.dumps(intent))
    assert engines.drained(host(tmp_path)).status == WARN
