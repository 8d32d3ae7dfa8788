# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Docker: whether it answers, its CDI specification, and the GPUs of its containers."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.hardware import cdi, container_gpus
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.container_gpus import Container
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor import docker, driver
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.check import (
    FAIL,
    OK,
    WARN,
    CannotTell,
    Finding,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.host import Host

from .conftest import Machine, host, serve


def test_a_missing_docker_fails_only_on_a_node_with_instances(tmp_path: Path) -> None:
    assert docker.answers(host(tmp_path)).status == OK
    serve(tmp_path)
    assert docker.answers(host(tmp_path)).status == FAIL


@pytest.mark.parametrize(("text", "words"), [('{"live-restore": true}', "engines continue"), ("{}", "engines end")])
def test_the_action_reports_whether_a_restart_of_docker_ends_engines(tmp_path: Path, text: str, words: str) -> None:
    serve(tmp_path)
    files.write(tmp_path / "etc/docker/daemon.json", text)
    assert words in docker.answers(host(tmp_path)).action


def test_docker_that_answers_is_ok(tmp_path: Path) -> None:
    one = host(tmp_path)
    answering: Any = SimpleNamespace(ping=lambda: None)
    one.docker = answering
    assert docker.answers(one) == Finding(OK, "answers")


def test_a_node_without_gpus_needs_no_cdi_specification(tmp_path: Path) -> None:
    for check in (docker.specification, docker.gpus):
        assert check(host(tmp_path)) == driver.NO_GPU


def specification(**more: object) -> str:
    """A CDI specification of one GPU and its driver."""
    library = "/usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05"
    edits = {"mounts": [{"hostPath": library, "containerPath": library}]}
    return json.dumps(
        {"cdiVersion": "0.5.0", "kind": cdi.KIND, "devices": [{"name": "0"}], "containerEdits": edits, **more}
    )


def test_a_missing_a_damaged_and_a_stale_cdi_specification_are_reported(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.plug("0000:1b:00.0")
    found = docker.specification(machine.host())
    assert found.status == WARN and "nvidia-cdi-refresh" in found.action
    monkeypatch.setattr(Host, "wants_gpus", lambda _host: True)
    assert docker.specification(machine.host()).status == FAIL
    machine.write("etc/cdi/nvidia.json", "{")
    with pytest.raises(CannotTell, match="cannot be read"):
        docker.specification(machine.host())
    machine.write("etc/cdi/nvidia.json", specification())
    monkeypatch.setattr(cdi, "refresh_reason", lambda _findings, _reality: "")
    found = docker.specification(machine.host())
    assert found.status == WARN and "/etc/cdi/nvidia.json" in found.message and "moves these files away" in found.action
    (machine.root / "etc/cdi/nvidia.json").unlink()
    assert docker.specification(machine.host()).status == OK


@pytest.mark.parametrize(
    ("containers", "status", "words"),
    [
        ([], OK, "0 containers"),
        (
            [Container("1", "main", "cdi", lost={"/dev/nvidia0": "Operation not permitted"})],
            FAIL,
            "main cannot open /dev/nvidia0",
        ),
    ],
)
def test_containers_that_lost_their_gpus_fail_the_check(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, containers: list[Container], status: str, words: str
) -> None:
    machine.plug("0000:1b:00.0")
    monkeypatch.setattr(container_gpus, "find", lambda _run, _root: container_gpus.Found(containers=containers))
    found = docker.gpus(machine.host())
    assert found.status == status and words in found.message


def test_gpus_of_containers_that_cannot_be_tried_are_unknown(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.plug("0000:1b:00.0")
    with pytest.raises(CannotTell, match="docker is not installed"):
        docker.gpus(machine.host())
    untried = container_gpus.Found(containers=[Container("1", "main", "cdi", error="no shell")])
    monkeypatch.setattr(container_gpus, "find", lambda _run, _root: untried)
    with pytest.raises(CannotTell, match="main: no shell"):
        docker.gpus(machine.host())
