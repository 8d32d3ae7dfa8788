# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands and files by which single settings are made."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings import apply, rails
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.desired import Rail
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.differences import (
    NEEDS_VALUE,
    Difference,
)
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.rdma_settings.samples import (
    device,
    facts,
    port,
)
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.test_pci_config import space

RAIL = Rail("0000:10:00.0/1", "ethernet", address="10.7.0.1/24", network="10.7.0.0/24", table=1001, ecn_priority=3)


def make(root: Path, setting: str, after: Any, manager: str = "none", before: Any = None, **more: Any) -> list[str]:
    """Make a setting; returns the commands."""
    asked: list[str] = []

    def run(command: Any) -> Outcome:
        asked.append(" ".join(command))
        return next(more["answers"]) if "answers" in more else more.get("answer", Outcome(0))

    (one,) = rails.ports(facts(device(0, port(0, **more.get("port", {})))))
    difference = Difference(0, one.name, setting, before, after)
    apply.apply(root, difference, replace(RAIL, **more.get("rail", {})), one, manager, run)
    return asked


@pytest.mark.parametrize(
    ("setting", "value", "command"),
    [
        ("mtu", 9000, "ip link set dev ens0 mtu 9000"),
        ("pfc", [3, 4], "dcb pfc set dev ens0 prio-pfc all:off 3:on 4:on"),
        ("pfc", [], "dcb pfc set dev ens0 prio-pfc all:off"),
        ("dscp", {26: 3, 48: 6}, "dcb app replace dev ens0 dscp-prio 26:3 48:6"),
    ],
)
def test_a_setting_has_its_command(tmp_path: Path, setting: str, value: Any, command: str) -> None:
    assert make(tmp_path, setting, value) == [command]


FOREIGN = Outcome(1, "", "Attribute write: Protocol error")


def test_dcb_is_started_again_after_a_protocol_error(tmp_path: Path) -> None:
    answers = iter([FOREIGN, FOREIGN, Outcome(0)])
    assert len(make(tmp_path, "pfc", [3], answers=answers)) == 3
    assert list(answers) == []


def test_a_protocol_error_at_each_start_of_dcb_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(apply.SettingError, match=r"dcb pfc set .*: Attribute write: Protocol error$"):
        make(tmp_path, "pfc", [3], answer=FOREIGN)


def test_another_error_of_dcb_is_not_tried_again(tmp_path: Path) -> None:
    with pytest.raises(apply.SettingError, match="Attribute write: Operation not supported"):
        make(tmp_path, "pfc", [3], answers=iter([Outcome(1, "", "Attribute write: Operation not supported")]))


def test_ets_is_set_by_one_command(tmp_path: Path) -> None:
    value = {"algorithms": ["ets"] * 2, "bandwidth": [60, 40], "classes": [0, 1]}
    assert make(tmp_path, "ets", value) == [
        "dcb ets set dev ens0 willing off tc-tsa 0:ets 1:ets tc-bw 0:60 1:40 prio-tc 0:0 1:1"
    ]


@pytest.mark.parametrize(
    ("manager", "commands"),
    [
        ("networkd", ["networkctl reload", "networkctl reconfigure ens0"]),
        ("ifupdown", ["ifup --force ens0"]),
        ("networkmanager", ["nmcli connection reload", "nmcli --wait 30 connection up 60-inference-rdma-ens0"]),
    ],
)
def test_the_program_that_configures_the_link_sets_the_address(
    tmp_path: Path, manager: str, commands: list[str]
) -> None:
    assert make(tmp_path, "address", ["10.7.0.1/24"], manager) == commands


def test_ifupdown_takes_the_link_down_only_for_another_address(tmp_path: Path) -> None:
    before = ["10.7.0.9/24"]
    assert make(tmp_path, "address", ["10.7.0.1/24"], "ifupdown", before=before) == [
        "ifdown --force ens0",
        "ifup --force ens0",
    ]


def test_an_address_without_a_program_that_configures_the_link_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(apply.SettingError, match="set rdma_network_manager"):
        make(tmp_path, "address", ["10.7.0.1/24"])


def test_rule_and_route_are_added_if_missing(tmp_path: Path) -> None:
    for manager, protocol in (("none", "kernel"), ("ifupdown", "kernel"), ("networkd", "static")):
        assert make(tmp_path, "rule", True, manager) == [
            "ip -j -4 rule show from 10.7.0.1",
            f"ip -4 rule add from 10.7.0.1 table 1001 priority 1001 protocol {protocol}",
            "ip -j -4 route show table 1001",
            "ip -4 route replace 10.7.0.0/24 dev ens0 src 10.7.0.1 table 1001 proto static",
        ]
    with pytest.raises(apply.SettingError, match=r"ip -4 rule add .*: RTNETLINK answers: Operation not permitted"):
        make(tmp_path, "rule", True, answer=Outcome(2, "", "RTNETLINK answers: Operation not permitted"))


def test_a_rule_that_another_program_adds_meanwhile_is_no_error(tmp_path: Path) -> None:
    """`ip rule add` fails because the rule exists."""
    (one,) = rails.ports(facts(device(0, port(0))))
    shown = iter(["[]", '[{"src": "10.7.0.1", "table": "1001"}]'])

    def run(command: Any) -> Outcome:
        if "show" in command:
            found = '[{"dst": "10.7.0.0/24", "dev": "ens0"}]' if "route" in command else next(shown)
            return Outcome(0, found)
        return Outcome(2, "", "RTNETLINK answers: File exists")

    apply.apply(tmp_path, Difference(0, one.name, "rule", False, True), RAIL, one, "networkd", run)


def test_values_are_written_to_files_of_the_kernel(tmp_path: Path) -> None:
    ofed = {"congestion": {"directory": "/sys/class/net/ens0/ecn", "kind": "ofed"}}
    inbox = {"congestion": {"directory": "/sys/kernel/debug/x", "kind": "debugfs"}}
    cases: list[tuple[str, Any, str, Any]] = [
        ("proc/sys/net/ipv4/conf/ens0/arp_ignore", 1, "arp_ignore", {"rail": {"sysctls": {"arp_ignore": 1}}}),
        ("sys/kernel/config/rdma_cm/rocep0s0/ports/1/default_roce_tos", 106, "rdma_cm_tos", {}),
        ("sys/kernel/config/rdma_cm/rocep0s0/ports/1/default_roce_mode", "RoCE v2", "rdma_cm_mode", {}),
        ("sys/class/net/ens0/ecn/roce_np/cnp_dscp", 48, "cnp_dscp", {"port": ofed}),
        ("sys/class/net/ens0/ecn/roce_np/cnp_802p_prio", 6, "cnp_priority", {"port": ofed}),
        ("sys/kernel/debug/x/np_cnp_dscp", 48, "cnp_dscp", {"port": inbox}),
        ("sys/kernel/debug/x/np_cnp_prio", 6, "cnp_priority", {"port": inbox}),
    ]
    for path, value, setting, more in cases:
        with pytest.raises(apply.SettingError, match="No such file or directory"):
            make(tmp_path, setting, value, **more)
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("a longer value before\n")
        assert not [command for command in make(tmp_path, setting, value, **more) if "modprobe" not in command]
        assert (tmp_path / path).read_text() == str(value)


def test_the_mode_of_ip_over_infiniband_is_set_and_a_refused_mode_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sys/class/net/ens0/mode"
    path.parent.mkdir(parents=True)
    path.write_text("datagram\n")
    assert make(tmp_path, "ipoib_mode", "connected") == []
    # The kernel accepts the mode only with a line end.
    assert path.read_text() == "connected\n"
    # The kernel changes the MTU with the mode.
    assert make(tmp_path, "ipoib_mode", "datagram", rail={"mtu": 2044}) == ["ip link set dev ens0 mtu 2044"]

    def refuse(handle: int, data: bytes) -> int:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(apply.os, "write", refuse)
    with pytest.raises(apply.SettingError, match="has no mode connected; set rdma_ipoib_mode: datagram, or null"):
        make(tmp_path, "ipoib_mode", "connected")


def test_missing_partitions_of_infiniband_are_added(tmp_path: Path) -> None:
    netdevs = tmp_path / "sys/class/net"
    for name, parent, key in (("ens0.8001", "ens0", "0x8001"), ("ib9.8002", "ib9", "0x8002"), ("eno1", "", "")):
        (netdevs / name).mkdir(parents=True)
        for file, text in (("parent", parent), ("pkey", key)):
            if text:
                (netdevs / name / file).write_text(f"{text}\n")
    wanted = ["0x8001", "0x8002"]
    (one,) = rails.ports(facts(device(0, port(0))))
    rail = replace(RAIL, table=None, partition_keys=wanted)
    found = apply.state(tmp_path, rail, one, lambda command: Outcome(0)).partition_keys
    assert found == ["0x8001"]
    assert make(tmp_path, "partition_keys", wanted, before=found) == [
        "ip link add link ens0 name ens0.8002 type ipoib pkey 0x8002"
    ]


def test_the_error_of_a_kernel_that_is_locked_down_names_the_setting_to_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "0000:10:00.0"
    config = tmp_path / f"sys/bus/pci/devices/{name}/config"
    config.parent.mkdir(parents=True)
    config.write_bytes(space(0x2950))
    lockdown = tmp_path / apply.LOCKDOWN
    lockdown.parent.mkdir(parents=True)

    def refuse(handle: int, data: bytes, offset: int) -> int:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(apply.os, "pwrite", refuse)
    hint = "switch Secure Boot off in the firmware, or set rdma_max_read_request: null"
    for mode, hinted in (("none [integrity] confidentiality", True), ("[none] integrity confidentiality", False)):
        lockdown.write_text(f"{mode}\n")
        with pytest.raises(apply.SettingError) as caught:
            make(tmp_path, "max_read_request", 4096)
        message = str(caught.value)
        assert message.startswith(f"{config}: Operation not permitted")
        assert (hint in message) is hinted and ("locked down (integrity in" in message) is hinted
    assert set(apply.LEAVE_ALONE) <= {*NEEDS_VALUE, "acs_bridges"}


def test_ecn_is_on_for_the_given_priorities_on_both_sides(tmp_path: Path) -> None:
    more: Any = {"port": {"congestion": {"directory": "/ecn", "kind": "ofed"}}}
    for value in ([3], []):
        # Some drivers begin with ECN for all priorities.
        files = {
            (side, number): tmp_path / f"ecn/{side}/enable/{number}" for side in apply.SIDES for number in range(8)
        }
        for file in files.values():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("1")
        make(tmp_path, "ecn", value, **more)
        assert {key for key, file in files.items() if file.read_text() == "1"} == {
            (side, number) for side in apply.SIDES for number in value
        }


def test_a_setting_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(apply.SettingError, match="mtu greater than device maximum"):
        make(tmp_path, "mtu", 9000, answer=Outcome(2, "", "Error: mtu greater than device maximum."))
    with pytest.raises(apply.SettingError, match="registers of PCIe cannot be read"):
        make(tmp_path, "max_read_request", 4096)
    with pytest.raises(apply.SettingError, match="no command is known that sets colour"):
        make(tmp_path, "colour", 1)
