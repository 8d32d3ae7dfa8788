# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of RDMA ports, rails and NCCL, on a sysfs of files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings import boot, machine
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.plan import plan
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor import rdma
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.check import (
    FAIL,
    OK,
    WARN,
    CannotTell,
    Finding,
    Once,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.host import Host
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.rdma_settings.host import (
    BRIDGE,
)
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.rdma_settings.host import (
    Host as RailHost,
)

from ..conftest import write
from .conftest import host


def plug_port(root: Path, device: str, **attributes: str) -> Path:
    """A port in sysfs: active, of RoCE, unless the attributes say otherwise. Returns its directory."""
    port = root / f"sys/class/infiniband/{device}/ports/1"
    active = {"state": "4: ACTIVE", "link_layer": "Ethernet", "rate": "100 Gb/sec (4X EDR)"}
    for name, text in {**active, **attributes}.items():
        write(port / name, text)
    return port


def test_a_node_without_rdma_is_fine(tmp_path: Path) -> None:
    assert {one.find(host(tmp_path)).status for one in rdma.CHECKS} == {OK}


def test_a_port_that_is_down_or_has_no_address_is_a_warning(tmp_path: Path) -> None:
    port = plug_port(tmp_path, "mlx5_0")
    assert rdma.ports(host(tmp_path)).status == OK
    lacking = rdma.gids(host(tmp_path))
    assert lacking.status == WARN and "mlx5_0/1" in lacking.message
    (port / "state").write_text("1: DOWN")
    assert rdma.ports(host(tmp_path)).status == WARN


def test_a_port_without_a_subnet_manager_is_a_warning(tmp_path: Path) -> None:
    plug_port(tmp_path, "mlx5_0", link_layer="InfiniBand", state="2: INIT", phys_state="5: LinkUp")
    found = rdma.ports(host(tmp_path))
    assert (found.status, found.message) == (WARN, "mlx5_0/1 is INIT (LinkUp)")
    assert found.action.startswith("no subnet manager makes the port active")


def test_a_slow_link_of_infiniband_is_a_warning(tmp_path: Path) -> None:
    for number, rate in enumerate(("400 Gb/sec (4X NDR)", "400 Gb/sec (4X NDR)", "200 Gb/sec (2X NDR)")):
        plug_port(tmp_path, f"mlx5_{number}", link_layer="InfiniBand", rate=rate)
    found = rdma.speed(host(tmp_path))
    assert found.status == WARN and found.message == "mlx5_2/1 runs at 200 Gb/s, the fastest at 400"


def test_an_unknown_speed_makes_the_check_unknown(tmp_path: Path) -> None:
    plug_port(tmp_path, "mlx5_0", link_layer="InfiniBand", rate="400 Gb/sec (4X NDR)")
    plug_port(tmp_path, "mlx5_1", link_layer="InfiniBand", rate="")
    with pytest.raises(CannotTell, match="the speed of mlx5_1/1 is unknown"):
        rdma.speed(host(tmp_path))


def test_ports_of_roce_are_not_compared(tmp_path: Path) -> None:
    plug_port(tmp_path, "mlx5_0")
    plug_port(tmp_path, "mlx5_1", rate="25 Gb/sec (1X EDR)")
    assert "does not apply" in rdma.speed(host(tmp_path)).message


def test_a_card_without_its_driver_is_named_if_another_card_has_one(tmp_path: Path) -> None:
    plug_port(tmp_path, "mlx5_0")
    one = host(tmp_path)
    lacking = {**one.rdma(), "rdma_nics_without_driver": [{"pci_address": "0000:3b:00.0"}]}
    one.rdma = Once(lambda: lacking)
    found = rdma.drivers(one)
    assert found.status == WARN and "0000:3b:00.0" in found.message
    one.rdma = Once(lambda: {**lacking, "rdma_devices": []})
    assert rdma.drivers(one) == rdma.NONE


@pytest.fixture
def rails(tmp_path: Path) -> tuple[RailHost, Host]:
    """A node with recorded rails that have all their settings, and the doctor's view of it."""
    one = RailHost(tmp_path)
    facts = boot.gather(tmp_path, one.run)
    planned, _findings = plan({}, machine.read(tmp_path, facts, "192.0.2.7", {}, (), one.run))
    files.write(Paths(tmp_path).rdma_settings, files.to_json(planned.desired.as_dict()))
    boot.settle(tmp_path, planned.desired, facts, one.run, busy=False)
    return one, Host(Paths(tmp_path), lambda command, _timeout: one.run(command))


def test_settings_that_differ_are_named(rails: tuple[RailHost, Host]) -> None:
    one, seen = rails
    assert rdma.settings(seen).message == "rails with their settings: 2"
    one.dcb["ens1"]["pfc"]["prio_pfc"] = [False] * 8
    found = rdma.settings(seen)
    assert found.status == WARN and found.message == "rail 1 (rocep1s0/1): pfc: none -> 3" and found.action
    (one.root / "sys/class/infiniband/rocep0s0").unlink()
    assert "no device for 0000:20:00.0/1" in rdma.settings(seen).message
    Paths(one.root).rdma_settings.write_text("{}")
    assert "does not have schema 1" in rdma.settings(seen).message


def release(gang: object = None, accelerator: str = "nvidia") -> SimpleNamespace:
    return SimpleNamespace(gang=gang, accelerator=accelerator)


def gang_of(seen: Host, monkeypatch: pytest.MonkeyPatch, printed: str) -> Finding:
    """The result of the check of NCCL, for a gang whose NCCL printed these lines."""
    monkeypatch.setattr(seen, "releases", lambda: {"main": release(object()), "small": release()})
    # journalctl exits with 1 if no line matches.
    monkeypatch.setattr(seen, "run", lambda command, timeout: Outcome(0 if printed else 1, printed))
    return rdma.nccl(seen)


def test_a_gang_whose_nccl_uses_sockets_fails_the_check(
    rails: tuple[RailHost, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = rails[1]
    line = "n NCCL INFO NET/IB : Using [0]rocep0s0:1/RoCE [1]rocep1s0:1/RoCE ; OOB eno1:192.0.2.7<0>\n"
    channel = "n NCCL INFO Channel 00/0 : 1[1] -> 0[0] [receive] via NET/IB/0"
    found = gang_of(seen, monkeypatch, f"{line}{channel}/GDRDMA\n")
    assert found.status == OK and found.message == "main: NCCL uses IB with GPUDirect on all 1 channels"
    assert gang_of(seen, monkeypatch, "n NCCL INFO Using network Socket\n").status == FAIL
    silent = gang_of(seen, monkeypatch, "")
    assert silent.status == OK and silent.message == "main: NCCL printed nothing" and "NCCL_DEBUG" in silent.action


@pytest.mark.parametrize(("bridges", "status"), [(f"pci0000:10/{BRIDGE}", WARN), ("pci0000:f0/0000:f0:01.0", OK)])
def test_channels_without_gpudirect_are_a_warning_only_near_a_gpu(
    rails: tuple[RailHost, Host], monkeypatch: pytest.MonkeyPatch, bridges: str, status: str
) -> None:
    one, seen = rails
    one.machine.gpu("0000:f1:00.0", bridges)
    lines = "n NCCL INFO Using network IB\nn NCCL INFO Channel 00/0 : 1[1] -> 0[0] [receive] via NET/IB/0\n"
    found = gang_of(seen, monkeypatch, lines)
    assert found.status == status and "with GPUDirect on 0 of 1 channels" in found.message


@pytest.mark.parametrize(
    ("shown", "option"),
    [("@1764153600", "--since=@1764153600"), ("", "--boot"), ("@0", "--boot"), ("n/a", "--boot")],
)
def test_lines_of_nccl_from_before_the_last_start_are_not_read(
    rails: tuple[RailHost, Host], monkeypatch: pytest.MonkeyPatch, shown: str, option: str
) -> None:
    seen, asked = rails[1], []

    def run(command: Sequence[str], _timeout: float) -> Outcome:
        asked.append(command)
        return Outcome(0, f"{shown}\n") if command[0] == "systemctl" else Outcome(1)

    monkeypatch.setattr(seen, "releases", lambda: {"main": release(object())})
    monkeypatch.setattr(seen, "run", run)
    rdma.nccl(seen)
    assert asked[-1][0] == "journalctl" and option in asked[-1]
    assert "vllm@main.service" in asked[-2]


def test_renamed_devices_are_a_warning(rails: tuple[RailHost, Host], monkeypatch: pytest.MonkeyPatch) -> None:
    one, seen = rails
    write(Paths(one.root).env("main"), "NCCL_IB_HCA==rocep0s0:1,rocep1s0:1\n")
    assert gang_of(seen, monkeypatch, "").status == OK
    write(Paths(one.root).env("main"), "NCCL_IB_HCA==mlx5_0:1,rocep1s0:1\n")
    found = gang_of(seen, monkeypatch, "")
    assert found.status == WARN and found.message.startswith("NCCL_IB_HCA of main has mlx5_0:1, and this node")


def test_engines_without_nccl_are_not_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines on one node and engines on CPUs use no rails."""
    seen = host(tmp_path)
    for found in ({}, {"small": release()}, {"main": release(object(), "cpu")}):
        monkeypatch.setattr(seen, "releases", lambda found=found: found)
        assert rdma.nccl(seen) == Finding(OK, "does not apply: no engine on GPUs runs over several nodes")
