# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine below the engines: disks, shared and locked memory, clock, reboot."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Settings
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor import system
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.check import (
    FAIL,
    OK,
    WARN,
    CannotTell,
    Finding,
    Once,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.host import Host

from ..conftest import write
from .conftest import host

CHRONY = "^,{state},192.0.2.123,2,6,377,20,{offset},{offset},0.000021\n"


@pytest.mark.parametrize(
    ("state", "offset", "status"), [("*", "0.0001", OK), ("*", "-90.5", WARN), ("?", "0.0001", WARN)]
)
def test_a_clock_that_is_off_or_has_no_source_is_a_warning(
    tmp_path: Path, state: str, offset: str, status: str
) -> None:
    answers = {"chronyc": Outcome(0, CHRONY.format(state=state, offset=offset))}
    assert system.clock(host(tmp_path, answers)).status == status


def test_a_chronyd_that_is_down_makes_the_clock_unknown(tmp_path: Path) -> None:
    with pytest.raises(CannotTell, match="506"):
        system.clock(host(tmp_path, {"chronyc": Outcome(1, "506 Cannot talk to daemon\n")}))


def test_a_full_disk_fails_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert system.disk(host(tmp_path, free_percent=0)).status == OK
    real = os.statvfs(tmp_path)
    full = os.statvfs_result((*real[:4], 1, *real[5:]))
    monkeypatch.setattr(system.os, "statvfs", lambda _path: full)
    found = system.disk(host(tmp_path))
    assert found.status == FAIL and "of the space free" in found.message


def member(ulimits: Mapping[str, str], gang: object = True, accelerator: str = "nvidia") -> Any:
    return SimpleNamespace(gang=gang, accelerator=accelerator, settings=Settings(ulimits=dict(ulimits)))


def host_of(one: Any, root: Path, answers: Mapping[str, Outcome] | None = None) -> Host:
    """A host with one instance."""
    seen = host(root, answers)
    seen.releases = Once(lambda: {"main": one})
    return seen


def plug_rdma(root: Path) -> None:
    texts = {"state": "4: ACTIVE", "link_layer": "Ethernet", "rate": "100 Gb/sec (4X EDR)"}
    for name, text in texts.items():
        write(root / "sys/class/infiniband/mlx5_0/ports/1" / name, text)


def test_the_limit_of_locked_memory_matters_only_to_gangs_on_gpus_with_rdma(tmp_path: Path) -> None:
    low = {"memlock": "8388608"}
    assert system.memlock(host_of(member(low), tmp_path)) == Finding(OK, "does not apply: there is no RDMA device")
    plug_rdma(tmp_path)
    for other in (member(low, None), member(low, accelerator="cpu")):
        found = system.memlock(host_of(other, tmp_path))
        assert found == Finding(OK, "does not apply: no engine on GPUs runs over several nodes")


@pytest.mark.parametrize(
    ("limit", "service", "found"),
    [
        # The limit of the container counts, whatever a service may lock.
        ("-1", "65536\n", ""),
        ("8388608", "infinity\n", "8388608"),
        ("1073741824", "65536\n", ""),
        ("8388608:-1", "infinity\n", "8388608:-1"),
        ("-1:-1", "65536\n", ""),
        # Without a limit, the container inherits the limit of containerd.
        (None, "65536\n", "65536"),
        (None, "infinity\n", ""),
    ],
)
def test_a_container_that_may_lock_too_little_memory_is_a_warning(
    tmp_path: Path, limit: str | None, service: str, found: str
) -> None:
    plug_rdma(tmp_path)
    shown = "systemctl show --property=LimitMEMLOCK --value containerd.service"
    seen = host_of(member({"memlock": limit} if limit else {}), tmp_path, {shown: Outcome(0, service)})
    wanted = Finding(OK, "main may lock enough memory")
    if found:
        action = (
            "set memlock: '-1' in vllm_ulimits, or in the instance's ulimits; then run baremetal.inference.update_model"
        )
        wanted = Finding(WARN, f"main may lock {found} bytes, and RDMA needs 1073741824", action)
    assert system.memlock(seen) == wanted


@pytest.mark.parametrize(
    ("default", "status"),
    [('{"Name": "memlock", "Soft": -1, "Hard": -1}', OK), ('{"Name": "memlock", "Soft": 65536, "Hard": -1}', WARN)],
)
def test_dockers_default_limit_counts_for_an_engine_without_a_limit(tmp_path: Path, default: str, status: str) -> None:
    plug_rdma(tmp_path)
    write(tmp_path / "etc/docker/daemon.json", f'{{"default-ulimits": {{"memlock": {default}}}}}')
    assert system.memlock(host_of(member({}), tmp_path)).status == status


def test_shared_memory_that_is_used_up_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CannotTell, match="dev/shm"):
        system.shm(host(tmp_path))
    (tmp_path / "dev/shm").mkdir(parents=True)
    real = os.statvfs(tmp_path)
    for free, status in ((system.SHM_MINIMUM, OK), (system.SHM_MINIMUM - 1, WARN)):
        found = os.statvfs_result((real[0], 1, *real[2:4], free, *real[5:]))
        monkeypatch.setattr(system.os, "statvfs", lambda _path, found=found: found)
        assert system.shm(host(tmp_path)).status == status


@pytest.mark.parametrize(("synchronised", "status"), [("yes\n", OK), ("no\n", WARN)])
def test_without_chrony_timedatectl_is_asked(tmp_path: Path, synchronised: str, status: str) -> None:
    assert system.clock(host(tmp_path, {"timedatectl": Outcome(0, synchronised)})).status == status


def test_a_due_reboot_is_a_warning(tmp_path: Path) -> None:
    assert system.reboot(host(tmp_path)).status == OK
    write(tmp_path / "run/reboot-required", "")
    assert "no reason is recorded" in system.reboot(host(tmp_path)).message
    write(tmp_path / "run/reboot-required.pkgs", "linux-image-amd64\nlinux-image-amd64\ndbus\n")
    found = system.reboot(host(tmp_path))
    assert (found.status, found.message) == (WARN, "a reboot is due: linux-image-amd64, dbus")
