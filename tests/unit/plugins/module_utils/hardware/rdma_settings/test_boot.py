# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recorded settings are applied once, and read again. A setting that would stop a rail in use waits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings import boot, machine, written
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.desired import Desired, Rail
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.plan import plan
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.rdma_settings.host import (
    BRIDGE,
    Host,
)
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.test_pci_config import space

EVERYTHING: dict[str, Any] = {"addresses": ["10.7.0.1/24", "10.7.0.2/24"], "ets": {0: 50, 3: 50}}


def wanted_of(host: Host, **raw: Any) -> Desired:
    facts = boot.gather(host.root, host.run)
    found = machine.read(host.root, facts, "192.0.2.7", {}, (), host.run)
    planned, findings = plan(raw, found)
    assert not findings.problems, findings.problems
    written.write(host.root, written.differing(host.root, planned.texts, None), host.run)
    return planned.desired


def settle(host: Host, wanted: Desired, busy: bool = False, check: bool = False) -> boot.Report:
    return boot.settle(host.root, wanted, boot.gather(host.root, host.run), host.run, busy, check, host.carry_out)


def test_settings_that_wait_are_recorded_for_the_status(host: Host) -> None:
    paths, wanted = Paths(host.root), wanted_of(host)
    assert boot.waiting(paths) == []
    boot.record_waiting(paths, settle(host, wanted, busy=True))
    assert "rail 0 (rocep0s0/1): mtu: 1500 -> 9000" in boot.waiting(paths)
    boot.record_waiting(paths, settle(host, wanted))
    assert boot.waiting(paths) == [] and not paths.rdma_waiting.exists()
    for damage in ("{", "5"):
        files.write(paths.rdma_waiting, damage)
        assert boot.waiting(paths) == []


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_everything_is_set_once_and_as_predicted(host: Host) -> None:
    wanted = wanted_of(host, **EVERYTHING)
    foreseen = settle(host, wanted, check=True)
    assert host.mtu("ens0") == 1500
    done = settle(host, wanted)
    assert done.failures == done.pending == done.missing == []
    assert done.changes == foreseen.changes
    names = {change.setting for change in done.changes if change.rail == 0}
    assert names == {
        *("mtu", "pfc", "dscp", "ets", "address", "arp_announce", "arp_ignore", "rp_filter", "rule"),
        *("rdma_cm_mode", "rdma_cm_tos", "max_read_request", "acs_bridges"),
    }
    assert host.mtu("ens0") == host.mtu("ens1") == 9000
    assert host.rules == {"10.7.0.1": "1001", "10.7.0.2": "1002"}
    assert (host.root / "proc/sys/net/ipv4/conf/ens1/rp_filter").read_text().strip() == "2"
    config = host.config("sys/devices/pci0000:10/0000:10:01.0/0000:20:00.0").read_bytes()
    assert config == space(0x5950)
    assert host.config(f"sys/devices/pci0000:10/{BRIDGE}").read_bytes() == space(acs=0)
    again = settle(host, wanted)
    assert again.changes == again.failures == []


def test_a_setting_that_stops_a_rail_in_use_waits(host: Host) -> None:
    wanted = wanted_of(host)
    report = settle(host, wanted, busy=True)
    assert {change.setting for change in report.pending} == {"mtu", "pfc"}
    assert {change.setting for change in report.changes} >= {"dscp", "rdma_cm_tos", "max_read_request"}
    assert host.mtu("ens0") == 1500 and not any("pfc set" in command for command in host.commands)
    report = settle(host, wanted)
    assert {change.setting for change in report.changes} == {"mtu", "pfc"} and not report.pending


def test_a_device_that_comes_back_is_set_again(host: Host) -> None:
    wanted = wanted_of(host, **EVERYTHING)
    settle(host, wanted)
    for path in ("sys/bus/pci/devices/0000:20:00.0", "sys/class/net/ens0", "sys/class/infiniband/rocep0s0"):
        (host.root / path).unlink()
    report = settle(host, wanted)
    assert report.missing == ["0000:20:00.0/1"] and not report.changes
    (host.root / "sys/devices/pci0000:10/0000:10:01.0/0000:20:00.0/driver").unlink()
    (host.root / "sys/devices/pci0000:10/0000:10:01.0/0000:20:00.0/infiniband/rocep0s0/device").unlink()
    host.plug(0)
    report = settle(host, wanted)
    assert report.changes and not report.missing and {change.rail for change in report.changes} == {0}
    assert host.mtu("ens0") == 9000


def test_a_value_that_does_not_stay_is_a_failure(host: Host) -> None:
    wanted = wanted_of(host)
    host.stuck = {"pfc", "mtu"}
    report = settle(host, wanted)
    assert len(report.failures) == 4 and "the value did not stay; it is now 1500" in report.failures[0]
    assert "dscp" in {change.setting for change in report.changes}


def test_a_setting_that_cannot_be_made_does_not_end_the_others(host: Host) -> None:
    wanted = wanted_of(host)
    (host.root / "sys/kernel/config/rdma_cm/rocep0s0/ports/1/default_roce_tos").unlink()
    report = settle(host, wanted)
    (failure,) = report.failures
    assert "rdma_cm_tos" in failure and "No such file" in failure
    assert {change.rail for change in report.changes} == {0, 1}


def test_the_recorded_settings_are_read_back(host: Host) -> None:
    paths = Paths(host.root)
    assert boot.read(paths) is None
    wanted = wanted_of(host, **EVERYTHING)
    files.write(paths.rdma_settings, files.to_json(wanted.as_dict()))
    assert boot.read(paths) == wanted
    files.write(paths.rdma_settings, "{}")
    with pytest.raises(ValueError, match="does not have schema 1"):
        boot.read(paths)


def test_missing_devices_are_waited_for(host: Host) -> None:
    wanted = wanted_of(host)
    (host.root / "sys/class/infiniband/rocep1s0").unlink()
    waited = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        host.machine.link(
            "sys/class/infiniband/rocep1s0", "sys/devices/pci0000:10/0000:10:01.0/0000:21:00.0/infiniband/rocep1s0"
        )

    facts = boot.wait_for_devices(host.root, wanted, host.run, 5, sleep)
    assert len(facts["rdma_devices"]) == 2 and len(waited) == 1
    (host.root / "sys/class/infiniband/rocep1s0").unlink()
    assert len(boot.wait_for_devices(host.root, wanted, host.run, 0)["rdma_devices"]) == 1


def test_a_late_address_is_waited_for(host: Host) -> None:
    wanted = wanted_of(host, addresses=["10.1.0.1/24", "10.2.0.1/24"])
    host.late = []
    report = settle(host, wanted)
    assert not report.failures and host.addresses["ens0"] == ["10.1.0.1/24"]


@pytest.mark.parametrize("infiniband", [False, True])
@pytest.mark.parametrize("manager", ["ifupdown", "networkmanager"])
def test_ifupdown_and_networkmanager_set_addresses_and_rules(tmp_path: Path, manager: str, infiniband: bool) -> None:
    host = Host(tmp_path, infiniband=infiniband)
    host.machine.write("etc/network/interfaces", "source /etc/network/interfaces.d/*")
    host.machine.write("run/NetworkManager/no-stub-resolv.conf", "")
    more: dict[str, Any] = {"ipoib_mode": "connected", "mtu": 65520} if infiniband else {"ets": EVERYTHING["ets"]}
    wanted = wanted_of(host, network_manager=manager, addresses=EVERYTHING["addresses"], **more)
    assert wanted.manager == manager
    foreseen = settle(host, wanted, check=True)
    done = settle(host, wanted)
    assert not done.failures and done.changes == foreseen.changes
    assert host.addresses["ens1"] == ["10.7.0.2/24"] and host.mtu("ens0") == (65520 if infiniband else 9000)
    assert host.rules == {"10.7.0.1": "1001", "10.7.0.2": "1002"}
    # NetworkManager makes its rules itself, and no command is for networkd.
    assert ("ip -4 rule add from 10.7.0.1 table 1001 priority 1001 protocol kernel" in host.commands) is (
        manager == "ifupdown"
    )
    assert not [command for command in host.commands if command.startswith("networkctl")]
    assert settle(host, wanted).changes == []


@pytest.mark.parametrize("late", [False, True])
def test_networkd_makes_the_rules_of_its_files(host: Host, late: bool) -> None:
    """A rule of another program would not stay: networkd removes the rule when networkd configures the next link."""
    wanted = wanted_of(host, **EVERYTHING)
    host.late = [] if late else None
    report = settle(host, wanted)
    assert not report.failures and {change.rail for change in report.changes if change.setting == "rule"} == {0, 1}
    assert host.rules == {"10.7.0.1": "1001", "10.7.0.2": "1002"} and set(host.protocols.values()) == {"static"}
    assert not [command for command in host.commands if "rule add" in command or "rule del" in command]


def test_a_rule_or_route_that_networkd_does_not_restore_is_added_and_stays(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = wanted_of(host, **EVERYTHING)
    settle(host, wanted)
    monkeypatch.setattr(boot, "ADDRESS_SECONDS", 0)
    for missing in ("rule", "route"):
        host.rules.pop("10.7.0.1") if missing == "rule" else host.routes.pop("1001")
        host.protocols.pop("10.7.0.1" if missing == "rule" else "", "")
        report = settle(host, wanted)
        assert [change.setting for change in report.changes] == ["rule"] and not report.failures
        host.networkd("ens1")
        assert settle(host, wanted).changes == []


def test_networkd_keeps_the_rules_of_ifupdown(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot, "ADDRESS_SECONDS", 0)
    wanted = replace(wanted_of(host, **EVERYTHING), manager="ifupdown")
    for file in (host.root / "etc/systemd/network").glob("*.network"):
        file.unlink()
    host.addresses.update(ens0=["10.7.0.1/24"], ens1=["10.7.0.2/24"])
    assert not settle(host, wanted).failures and "networkctl reload" not in host.commands
    host.networkd("eno1")
    assert settle(host, wanted).changes == [] and len(host.rules) == 2


def test_a_rule_waits_with_its_address(host: Host) -> None:
    settle(host, wanted_of(host, **EVERYTHING))
    wanted = wanted_of(host, addresses=["10.7.0.3/24", "10.7.0.2/24"], ets={0: 50, 3: 50})
    host.commands.clear()
    report = settle(host, wanted, busy=True)
    assert [(change.rail, change.setting) for change in report.pending] == [(0, "address"), (0, "rule")]
    assert not report.changes and not report.failures and "networkctl reload" not in host.commands
    report = settle(host, wanted)
    assert not report.pending and not report.failures and host.rules == {"10.7.0.2": "1002", "10.7.0.3": "1001"}


def test_infiniband_is_set_once(tmp_path: Path) -> None:
    host = Host(tmp_path, infiniband=True)
    wanted = wanted_of(host, addresses=EVERYTHING["addresses"], mtu=65520, ipoib_mode="connected")
    foreseen = settle(host, wanted, check=True)
    done = settle(host, wanted)
    assert not done.failures and done.changes == foreseen.changes
    assert {change.setting for change in done.changes if change.rail == 1} == {
        *("ipoib_mode", "mtu", "address", "arp_announce", "arp_ignore", "rp_filter", "rule"),
        *("max_read_request", "acs_bridges"),
    }
    assert host.mtu("ens0") == 65520 and not [command for command in host.commands if command.startswith("dcb ")]
    assert settle(host, wanted).changes == []


def test_an_mtu_that_the_subnet_manager_does_not_allow_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(tmp_path, infiniband=True)
    wanted = wanted_of(host, mtu=4092)
    monkeypatch.setattr(boot, "ADDRESS_SECONDS", 0)
    (failure, _other) = settle(host, wanted).failures
    assert failure.startswith(
        "rail 0 (rocep0s0/1): mtu: 2044 -> 4092: the value did not stay; it is now 2044; the mult"
    )

    def sleep(_seconds: float) -> None:
        """The subnet manager creates the group again. Then the kernel gives the device the wanted MTU."""
        for name in ("ens0", "ens1"):
            (host.root / f"sys/class/net/{name}/mtu").write_text("4092\n")

    monkeypatch.setattr(boot, "ADDRESS_SECONDS", 10)
    facts = boot.gather(host.root, host.run)
    assert not boot.settle(host.root, wanted, facts, host.run, busy=False, sleep=sleep).failures


def test_a_network_device_is_waited_for_only_if_a_setting_needs_it(host: Host) -> None:
    (host.root / "sys/devices/pci0000:10/0000:10:01.0/0000:20:00.0/net/ens0/mtu").unlink()
    (host.root / "sys/devices/pci0000:10/0000:10:01.0/0000:20:00.0/net/ens0/dev_port").write_text("7")
    found = boot.gather(host.root, host.run)["rdma_devices"][0]["ports"][0]
    assert found["netdev"] is None
    wanted = Desired([Rail("0000:20:00.0/1", "infiniband", max_read_request=4096)])

    def sleep(seconds: float) -> None:
        raise AssertionError

    boot.wait_for_devices(host.root, wanted, host.run, 60, sleep)
    rail = wanted.rails[0]
    for needs_netdev in (replace(rail, mtu=2044), replace(rail, partition_keys=["0x8001"])):
        with pytest.raises(AssertionError):
            boot.wait_for_devices(host.root, Desired([needs_netdev]), host.run, 60, sleep)
