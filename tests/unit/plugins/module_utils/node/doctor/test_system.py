# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine below the engines: disks, locked memory, clock, reboot."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor import system
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.check import (
    FAIL,
    OK,
    WARN,
    CannotTell,
)

from ..conftest import write
from .conftest import host

CHRONY = "^,{state},192.0.2.123,2,6,377,20,{offset},{offset},0.000021\n"


@pytest.mark.parametrize(
    ("state", "offset", "status"), [("*", "0.0001", OK), ("*", "-90.5", WARN), ("?", "0.0001", WARN)]
)
def test_the_clock(tmp_path: Path, state: str, offset: str, status: str) -> None:
    answers = {"chronyc": Outcome(0, CHRONY.format(state=state, offset=offset))}
    assert system.clock(host(tmp_path, answers)).status == status


def test_a_chronyd_that_is_down_makes_the_clock_unknown(tmp_path: Path) -> None:
    with pytest.raises(CannotTell, match="506"):
        system.clock(host(tmp_path, {"chronyc": Outcome(1, "506 Cannot talk to daemon\n")}))


def test_a_full_disk_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert system.disk(host(tmp_path, free_percent=0)).status == OK
    real = os.statvfs(tmp_path)
    full = os.statvfs_result((*real[:4], 1, *real[5:]))
    monkeypatch.setattr(system.os, "statvfs", lambda _path: full)
    found = system.disk(host(tmp_path))
    assert found.status == FAIL and "of the space free" in found.message


def test_the_limit_of_locked_memory_matters_only_with_rdma(tmp_path: Path) -> None:
    answers = {"systemctl": Outcome(0, "65536\n")}
    assert system.memlock(host(tmp_path, answers)).status == OK
    port = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    port.mkdir(parents=True)
    for name, text in {"state": "4: ACTIVE", "link_layer": "Ethernet", "rate": "100 Gb/sec (4X EDR)"}.items():
        (port / name).write_text(text)
    assert system.memlock(host(tmp_path, answers)).status == WARN
    assert system.memlock(host(tmp_path, {"systemctl": Outcome(0, "infinity\n")})).status == OK


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
