# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole plan: desired settings, files, and problems."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import Findings
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma.devices import CLASS
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma.facts import SETTINGS, Programs, gather
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma.managers import LinkFile
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings import differences, rails
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.differences import State
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.plan import Machine, Plan, plan
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.variables import Wish
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.rdma.test_devices import restore
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.rdma_settings.samples import (
    DCB,
    device,
    facts,
    infiniband,
    port,
    roce,
)

ADDRESSES = ["10.1.0.7/16", "10.2.0.7/16"]
ONE_SUBNET = ["10.7.0.1/24", "10.7.0.2/24"]


def planned(
    found: dict[str, Any] | None = None, machine: dict[str, Any] | None = None, **raw: Any
) -> tuple[Plan, Findings]:
    return plan(raw, Machine(found or roce(), **{"managers": ("networkd",), "networkd_runs": True, **(machine or {})}))


def problems(*arguments: Any, **raw: Any) -> list[str]:
    return [str(problem) for problem in planned(*arguments, **raw)[1].problems]


def managed(name: str, file: str | None, mtu: int | None = None) -> dict[str, Any]:
    return facts(device(0, port(0, netdev_managers=[{"name": name, "file": file, "mtu": mtu}])), device(1))


def test_the_default_plan_sets_lossless_ethernet_without_addresses() -> None:
    found, findings = planned()
    assert not findings.problems and not findings.warnings
    rail = found.desired.rails[0]
    assert (rail.key, rail.layer, rail.mtu, rail.pfc) == ("0000:10:00.0/1", "ethernet", 9000, [3])
    assert (rail.dscp, rail.rdma_cm_tos, rail.rdma_cm_mode) == ({"26": 3, "48": 6}, 106, "RoCE v2")
    assert (rail.max_read_request, rail.relaxed_ordering, rail.acs_off) == (4096, True, True)
    assert rail.bandwidth is rail.ecn is rail.cnp_dscp is rail.address is rail.table is rail.sysctls is None
    assert set(found.texts) == {f"/etc/systemd/network/60-inference-rdma-ens{number}.link" for number in (0, 1)}
    assert (found.gpudirect, found.gpudirect_reason) == ("dma_buf", "open modules")


@pytest.mark.parametrize("found", [roce(), facts(infiniband(0))])
def test_the_defaults_of_the_role_are_those_of_the_plan(found: dict[str, Any]) -> None:
    root = Path(__file__).parents[6]
    defaults = yaml.safe_load((root / "roles/rdma/defaults/main.yml").read_text())
    given = yaml.safe_load((root / "roles/rdma/vars/main.yml").read_text())["__rdma_settings"]
    assert set(given) == set(Wish.__dataclass_fields__)
    raw = {key: defaults[f"rdma_{key}"] for key in given}
    assert not problems(found, **raw)
    assert planned(found, **raw)[0].desired == planned(found)[0].desired


def test_without_a_lossless_priority_only_a_given_type_of_service_is_set() -> None:
    rail = planned(lossless_priority=None)[0].desired.rails[0]
    assert rail.pfc is rail.dscp is rail.bandwidth is rail.rdma_cm_tos is rail.ecn is None
    assert planned(lossless_priority=None, roce_tos=41)[0].desired.rails[0].rdma_cm_tos == 41
    assert planned(trust="unmanaged")[0].desired.rails[0].dscp is None


def test_shares_of_the_link_give_bandwidths_algorithms_and_classes() -> None:
    rail = planned(ets={3: 50, 0: 50})[0].desired.rails[0]
    assert rail.bandwidth == [50, 0, 0, 50, 0, 0, 0, 0]
    assert rail.algorithms == ["ets", "strict", "strict", "ets", "strict", "strict", "strict", "strict"]
    assert rail.classes == [0, 0, 0, 3, 0, 0, 6, 0]


def test_congestion_control_uses_the_lossless_priority_and_marks_of_its_own() -> None:
    rail = planned(ecn=True)[0].desired.rails[0]
    assert (rail.ecn, rail.ecn_priority, rail.cnp_dscp, rail.cnp_priority) == (True, 3, 48, 6)
    rail = planned(ecn=False)[0].desired.rails[0]
    assert (rail.ecn, rail.cnp_dscp) == (False, None)


def test_a_subnet_for_each_rail_needs_no_rules() -> None:
    found, findings = planned(addresses=ADDRESSES)
    assert not findings.problems and found.desired.manager == "networkd"
    assert [(rail.address, rail.table, rail.sysctls) for rail in found.desired.rails] == [
        ("10.1.0.7/16", None, None),
        ("10.2.0.7/16", None, None),
    ]


def test_one_subnet_gets_arp_settings_and_a_table_for_each_rail() -> None:
    found, findings = planned(addresses=ONE_SUBNET)
    assert not findings.problems
    assert [rail.table for rail in found.desired.rails] == [1001, 1002]
    assert [rail.sysctls for rail in found.desired.rails] == [{"arp_announce": 2, "arp_ignore": 1, "rp_filter": 2}] * 2


def test_infiniband_has_no_settings_of_ethernet() -> None:
    found, findings = planned(
        facts(infiniband(0), infiniband(1)), addresses=ADDRESSES, ipoib_mode="connected", mtu=65520
    )
    assert not findings.problems
    rail = found.desired.rails[0]
    assert rail.pfc is rail.dscp is rail.rdma_cm_tos is rail.rdma_cm_mode is None
    assert (rail.mtu, rail.ipoib_mode, rail.max_read_request) == (65520, "connected", 4096)
    assert set(found.texts) == {f"/etc/systemd/network/60-inference-rdma-ib{number}.network" for number in (0, 1)}
    assert planned(facts(infiniband(0)))[0].desired.rails[0].mtu is None


@pytest.mark.parametrize("manager", ["networkd", "ifupdown", "networkmanager", "none"])
@pytest.mark.parametrize("addresses", [[], ADDRESSES[:1]])
def test_partitions_of_infiniband_need_no_manager_and_no_addresses(manager: str, addresses: list[str]) -> None:
    found, findings = planned(
        facts(infiniband(0)),
        {"networkmanager_runs": True},
        partition_keys=["0x1", "8002"],
        network_manager=manager,
        addresses=addresses,
    )
    assert not findings.problems
    assert found.desired.rails[0].partition_keys == ["0x8001", "0x8002"]
    (port_,) = found.ports
    states = {port_.key: State({}, partition_keys=["0x8002", "0x9999"])}
    compared = differences.compare(found.desired, found.ports, states).differences
    (one,) = [difference for difference in compared if difference.setting == "partition_keys"]
    assert (one.before, one.after, one.disruptive) == (["0x8002"], ["0x8001", "0x8002"], False)
    assert any("partition_keys: the port has no IP" in line for line in unknown_without(found))


def test_ifupdown_must_read_our_files() -> None:
    unread = {"ifupdown_reads": False}
    (problem,) = problems(roce(), unread, addresses=ADDRESSES, network_manager="ifupdown")
    assert "add the line 'source /etc/network/interfaces.d/*'" in problem
    assert not problems(roce(), unread, addresses=ADDRESSES, network_manager="networkd")
    assert not problems(roce(), unread, network_manager="ifupdown")


@pytest.mark.parametrize(
    ("manager", "machine", "words"),
    [
        ("networkd", {"networkd_runs": False}, "systemctl enable --now systemd-networkd"),
        ("networkmanager", {}, "NetworkManager does not run"),
        ("networkmanager", {"networkmanager_runs": True, "unmanaged": ["ens1", "ens7"]}, "leaves ens1 alone"),
    ],
)
def test_a_program_that_would_not_set_the_addresses_is_refused(
    manager: str, machine: dict[str, Any], words: str
) -> None:
    (problem,) = problems(roce(), machine, addresses=ADDRESSES, network_manager=manager)
    assert words in problem and "rdma_network_manager" in problem
    assert not problems(roce(), machine, network_manager=manager)
    # With auto, the program of the management interface also configures the rails.
    if "unmanaged" in machine:
        assert words in problems(roce(), {**machine, "managers": ["networkmanager"]}, addresses=ADDRESSES)[0]


@pytest.mark.recordings("sysfs_infiniband")
def test_the_active_ports_of_recorded_machines_with_infiniband_become_rails(recording: Any, tmp_path: Path) -> None:
    where = next((to for name, to in {"sys": "", "class": "sys"}.items() if (recording.path / name).is_dir()), CLASS)
    restore(recording.path, tmp_path / "root" / where)
    found = gather(tmp_path / "root", (SETTINGS,), Programs(), lambda _command: Outcome(0))
    active = [
        f"{device['name']}/{port['port']}"
        for device in recording.expected["devices"]
        for port in device["ports"]
        if port["state"] == "ACTIVE" and port["link_layer"] == "InfiniBand"
    ]
    plan_, findings = planned(found, link_layer="infiniband", mtu=2044, partition_keys=["0x8001"])
    assert not findings.problems and sorted(port.name for port in plan_.ports) == sorted(active)
    assert all(rail.pfc is rail.dscp is rail.rdma_cm_tos is None for rail in plan_.desired.rails)
    assert {rail.mtu for rail in plan_.desired.rails} <= {2044}
    # Only some recordings have the table of partitions. None has this partition.
    with_table = [port for port in plan_.ports if port.facts["partition_keys"]]
    assert len([warning for warning in findings.warnings if "0x8001" in str(warning)]) == len(with_table)
    refused = problems(found, link_layer="infiniband", lossless_priority=4, dscp=10, ets={"4": 100})
    meaningless = [line for line in refused if "has no meaning on InfiniBand" in line]
    assert len(meaningless) == (3 if active else 0)


def unknown_without(found: Plan) -> list[str]:
    """The settings that cannot be compared without the states of the ports."""
    return differences.compare(found.desired, found.ports, {}).unknown


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"lossless_priority": 4}, "rdma_lossless_priority: 4: has no meaning on InfiniBand"),
        ({"dscp": 10}, "rdma_dscp"),
        ({"mtu": 4096}, "takes 1280 to 4092 in mode datagram"),
        ({"ipoib_mode": "connected", "mtu": 65521}, "from 1280 to 65520"),
    ],
)
def test_a_variable_that_infiniband_cannot_have_is_a_problem(raw: dict[str, Any], words: str) -> None:
    assert any(words in problem for problem in problems(facts(infiniband(0)), **raw))


@pytest.mark.parametrize(
    ("found", "machine", "raw", "words"),
    [
        (None, {}, {"mtu": 9979}, "ens0 takes at most 9978"),
        (None, {}, {"ipoib_mode": "datagram"}, "has no meaning on Ethernet"),
        (None, {}, {"addresses": ONE_SUBNET, "same_subnet": False}, "several rails have one subnet"),
        (None, {}, {"addresses": ADDRESSES, "same_subnet": True}, "each rail has its own subnet"),
        (None, {"management_addresses": ["10.1.0.1/16"]}, {"addresses": ADDRESSES}, "management network"),
        (None, {"peers": {"node2": ADDRESSES}}, {"addresses": ADDRESSES}, "also an address of this host"),
        (managed("ifupdown", "/etc/network/interfaces", 1500), {}, {}, "gives ens0 the MTU 1500, which wins"),
        (managed("ifupdown", "/etc/network/interfaces"), {}, {"addresses": ADDRESSES}, "already configures ens0"),
        (managed("networkd", "/etc/systemd/network/10-a.network"), {}, {"addresses": ADDRESSES}, "already configures"),
        (
            roce(rdma_iommu={"given_away": ["0000:3b:00.0"]}),
            {},
            {},
            "rdma_acs: 'off': a virtual machine or a program has 0000:3b:00.0",
        ),
        (facts(device(0, dma_buf=False)), {}, {"gpudirect": "dma_buf"}, "the driver of rocep0s0 does not take"),
        (facts(device(0, dma_buf=False)), {}, {"gpudirect": "dma_buf"}, "does not take dma-buf; set none"),
        (None, {"peer_memory": False}, {"gpudirect": "peermem"}, "needs the ib_core of DOCA-OFED"),
        (facts(device(0, port(0, netdev=None))), {}, {"addresses": ADDRESSES[:1]}, "has no network device"),
    ],
)
def test_a_variable_that_contradicts_the_facts_is_a_problem(
    found: Any, machine: dict[str, Any], raw: dict[str, Any], words: str
) -> None:
    assert any(words in problem for problem in problems(found, machine, **raw)), problems(found, machine, **raw)


@pytest.mark.parametrize(
    ("file", "mtu", "words"),
    [
        ("/etc/systemd/network/70-rails.link", None, "rename it to /etc/systemd/network/50-70-rails.link"),
        ("/etc/systemd/network/10-rails.link", 1500, "10-rails.link gives ens0 the MTU 1500 at each boot"),
        ("/etc/systemd/network/10-rails.link", 9000, ""),
        ("/etc/systemd/network/10-rails.link", None, ""),
        ("/etc/systemd/network/60-inference-rdma-ens0.link", 1500, ""),
    ],
)
def test_a_link_file_of_the_operator_that_conflicts_with_ours_is_a_problem(
    file: str, mtu: int | None, words: str
) -> None:
    """If our file came first, the operator's file would no longer name the rail."""
    found = problems(None, {"links": {"ens0": LinkFile(file, mtu)}})
    assert words in "".join(found) and len(found) == bool(words)
    assert not problems(None, {"links": {"ens0": LinkFile(file, mtu)}, "bonds": ["ens0"]})
    assert not problems(facts(infiniband(0)), {"links": {"ib0": LinkFile(file, mtu)}})


def test_where_udev_keeps_the_names_of_the_kernel_the_link_file_does_so_too() -> None:
    """Otherwise, eth2 would get another name at the next boot."""
    for named in (True, False):
        text = planned(None, {"named": named})[0].texts["/etc/systemd/network/60-inference-rdma-ens0.link"]
        assert ("NamePolicy=" in text) is named and "MTUBytes=9000" in text


def test_two_programs_that_configure_a_link_are_a_problem() -> None:
    both = [{"name": "ifupdown", "file": "/i", "mtu": None}, {"name": "networkd", "file": "/n", "mtu": None}]
    found = facts(device(0, port(0, netdev_managers=both)))
    assert any("ens0 is configured by ifupdown (/i) and networkd (/n)" in problem for problem in problems(found))


def test_rdma_network_manager_other_than_the_program_that_configures_the_link_is_a_problem() -> None:
    found = managed("networkd", "/etc/systemd/network/80-dhcp.network")
    (problem,) = problems(found, addresses=ADDRESSES, network_manager="ifupdown")
    assert "networkd (/etc/systemd/network/80-dhcp.network) and ifupdown (rdma_network_manager)" in problem
    assert not problems(found, addresses=ADDRESSES, network_manager="networkd")
    assert not problems(found, network_manager="ifupdown")
    claimed = managed("ifupdown", "/etc/network/interfaces")
    assert "already configures" in problems(claimed, addresses=ADDRESSES, network_manager="ifupdown")[0]


def test_the_program_that_configures_the_links_sets_their_addresses() -> None:
    own = managed("ifupdown", "/etc/network/interfaces.d/60-inference-rdma-ens0")
    found, findings = planned(own, addresses=ADDRESSES)
    assert found.desired.manager == "ifupdown" and not findings.problems
    later = managed("networkd", "/etc/systemd/network/80-dhcp.network")
    assert planned(later, addresses=ADDRESSES)[0].desired.manager == "networkd" and not problems(
        later, addresses=ADDRESSES
    )


def test_a_rail_on_a_bond_gets_no_file() -> None:
    """A file for the bond's MAC address would also match its first port."""
    found = facts(device(0, port(0, netdev="bond0", netdev_mac="02:00:00:00:00:00")), device(1))
    made, findings = planned(found, {"bonds": ["bond0"]})
    assert not findings.problems
    assert [rail.key for rail in made.desired.rails] == ["0000:10:00.0/1", "0000:11:00.0/1"]
    assert [path.rpartition("-")[2] for path in made.texts] == ["ens1.link"]
    (problem,) = problems(found, {"bonds": ["bond0"]}, addresses=ADDRESSES)
    assert "rdma_addresses: bond0 is a bond, to which this role gives no address" in problem
    (problem,) = problems(found, {"bonds": ["bond0"]}, subnets=["10.1.0.0/16", "10.2.0.0/16"], host_index=7)
    assert "rdma_subnets: bond0 is a bond, to which this role gives no address" in problem


def test_addresses_without_a_program_that_configures_the_links_are_a_problem() -> None:
    _found, findings = plan({"addresses": ADDRESSES}, Machine(roce()))
    assert "set it to one of ifupdown, networkd, networkmanager" in str(findings.problems[0])
    assert not plan({}, Machine(roce()))[1].problems
    assert not plan({"addresses": ADDRESSES, "network_manager": "none"}, Machine(roce()))[1].problems


def test_settings_that_the_switch_can_overwrite_are_a_warning() -> None:
    """The driver accepts the settings, but the firmware or lldpad may change them later."""
    found = facts(device(0), device(1, port(1, dcb={**DCB, "modes": ["cee", "ieee"]})), device(2, port(2, dcb=None)))
    (warning,) = planned(found)[1].warnings
    assert "the firmware of ens1 takes" in str(warning) and "dcb dcbx set dev ens1 host ieee" in str(warning)
    (warning,) = planned(None, {"lldpad": True})[1].warnings
    assert "systemctl disable --now lldpad" in str(warning)
    assert not planned(found, {"lldpad": True}, lossless_priority=None)[1].warnings
    assert not planned(facts(infiniband(0)), {"lldpad": True})[1].warnings


def test_a_small_mtu_is_a_warning() -> None:
    _found, findings = planned(mtu=1500)
    assert "will have 1024 bytes instead of 4096" in str(findings.warnings[0]) and not findings.problems


@pytest.mark.parametrize(
    ("gpudirect", "devices", "method"),
    [
        ({"dma_buf": True, "dma_buf_reason": "open"}, True, "dma_buf"),
        ({"dma_buf": True, "dma_buf_reason": "open"}, False, "none"),
        ({"dma_buf": False, "dma_buf_reason": "proprietary", "peermem": True, "peermem_module": "x"}, None, "peermem"),
        ({"dma_buf": None, "dma_buf_reason": "no driver", "peermem": False}, None, "none"),
    ],
)
def test_the_method_of_gpudirect_comes_from_devices_and_modules(
    gpudirect: dict[str, Any], devices: bool | None, method: str
) -> None:
    found = facts(device(0, dma_buf=devices), rdma_gpudirect=gpudirect)
    assert planned(found)[0].gpudirect == method


def test_a_node_without_rdma_devices_has_no_rails_and_no_problems() -> None:
    found, findings = planned(facts())
    assert found.desired.rails == [] and found.texts == {} and not findings.problems


def carry_out(found: Plan, before: dict[str, Any]) -> tuple[dict[str, Any], dict[str, State]]:
    """The facts of a node on which every setting was made."""
    after = copy.deepcopy(before)
    by_key = {rail.key: rail for rail in found.desired.rails}
    states = {}
    for one in rails.ports(after):
        rail = by_key.get(one.key)
        if rail is None:
            continue
        facts_of: Any = one.facts
        facts_of.update(netdev_mtu=rail.mtu or facts_of["netdev_mtu"])
        facts_of.update(rdma_cm_tos=rail.rdma_cm_tos, rdma_cm_mode=rail.rdma_cm_mode)
        if rail.address:
            facts_of["netdev_addresses"].append(rail.address)
        if rail.pfc is not None:
            facts_of["dcb"]["pfc"] = rail.pfc
        if rail.dscp is not None:
            facts_of["dcb"]["dscp"].update({int(key): value for key, value in rail.dscp.items()})
        if rail.bandwidth is not None:
            values = {"bandwidth": rail.bandwidth, "algorithms": rail.algorithms, "classes": rail.classes}
            facts_of["dcb"]["ets"] = {"willing": False, **values}
        facts_of["congestion"].update(cnp_dscp=rail.cnp_dscp, cnp_priority=rail.cnp_priority)
        facts_of["congestion"]["ecn"] = [rail.ecn_priority] if rail.ecn else []
        pcie: Any = one.device_facts["pcie"]
        pcie.update(max_read_request=rail.max_read_request, relaxed_ordering=rail.relaxed_ordering, acs_bridges=[])
        states[rail.key] = State(dict(rail.sysctls or {}), True)
    return after, states


@given(
    st.integers(1, 8),
    st.fixed_dictionaries(
        {},
        optional={
            "mtu": st.integers(1280, 9978),
            "lossless_priority": st.sampled_from([None, 1, 3, 5]),
            "ets": st.sampled_from([{}, {0: 60, 1: 10, 3: 20, 5: 10}]),
            "ecn": st.sampled_from(["unmanaged", True, False]),
            "max_read_request": st.sampled_from([None, 512, 4096]),
            "relaxed_ordering": st.sampled_from([None, True, False]),
            "acs": st.sampled_from(["off", "unmanaged"]),
            "subnets": st.sampled_from([True]),
        },
    ),
    st.booleans(),
)
def test_a_plan_that_is_carried_out_leaves_no_difference(rail_count: int, raw: dict[str, Any], flat: bool) -> None:
    if raw.pop("subnets", None):
        octets = [1] * rail_count if flat else range(rail_count)
        raw["addresses"] = [f"10.{octet}.0.{number + 1}/24" for number, octet in enumerate(octets)]
    if raw.get("lossless_priority", 3) is None:
        raw = {key: value for key, value in raw.items() if key not in ("ets", "ecn")}
    before = roce(rail_count)
    found, findings = planned(before, **raw)
    assert not findings.problems
    after, states = carry_out(found, before)
    again, findings = planned(after, {"known": [rail.key for rail in found.desired.rails]}, **raw)
    assert not findings.problems and again.desired == found.desired and again.texts == found.texts
    compared = differences.compare(again.desired, rails.ports(after), states)
    assert (compared.differences, compared.unknown, compared.missing) == ([], [], [])
