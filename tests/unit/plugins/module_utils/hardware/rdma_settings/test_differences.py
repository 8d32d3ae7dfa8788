# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Differences between desired and present settings."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings import differences, rails
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.desired import Desired, Rail
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.differences import State
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.rdma_settings.samples import (
    device,
    facts,
    infiniband,
    port,
    roce,
)

RAIL = Rail(key="0000:10:00.0/1", layer="ethernet")


def compare(rail: Rail, found: dict[str, Any] | None = None, state: State | None = None) -> list[tuple[str, Any, Any]]:
    states = {rail.key: state} if state else {}
    result = differences.compare(Desired([rail]), rails.ports(found or roce()), states)
    return [(one.setting, one.before, one.after) for one in result.differences]


def test_a_setting_without_a_wanted_value_never_differs() -> None:
    assert compare(RAIL) == []


def test_each_setting_with_another_wanted_value_differs() -> None:
    assert compare(replace(RAIL, mtu=9000)) == [("mtu", 1500, 9000)]
    assert compare(replace(RAIL, pfc=[3])) == [("pfc", [], [3])]
    assert compare(replace(RAIL, dscp={"26": 3, "48": 6})) == [("dscp", {26: None, 48: None}, {26: 3, 48: 6})]
    assert compare(replace(RAIL, address="10.1.0.7/16")) == [("address", [], ["10.1.0.7/16"])]
    assert compare(replace(RAIL, rdma_cm_tos=106)) == [("rdma_cm_tos", None, 106)]
    assert compare(replace(RAIL, rdma_cm_mode="RoCE v2")) == [("rdma_cm_mode", None, "RoCE v2")]
    assert compare(replace(RAIL, cnp_dscp=48, cnp_priority=6)) == [("cnp_dscp", 0, 48), ("cnp_priority", 0, 6)]
    assert compare(replace(RAIL, max_read_request=4096)) == [("max_read_request", 512, 4096)]
    assert compare(replace(RAIL, relaxed_ordering=True)) == []
    assert compare(replace(RAIL, acs_off=True)) == [("acs_bridges", ["0000:10:01.0"], [])]
    sysctls = State({"arp_ignore": 0, "rp_filter": 2})
    assert compare(replace(RAIL, sysctls={"arp_ignore": 1, "rp_filter": 2}), state=sysctls) == [("arp_ignore", 0, 1)]
    assert compare(replace(RAIL, table=1001), state=State({}, rule=False)) == [("rule", False, True)]


def test_ets_is_compared_as_a_whole() -> None:
    wanted = replace(RAIL, bandwidth=[0] * 8, algorithms=["vendor"] * 8, classes=[1, 0, 2, 3, 4, 5, 6, 7])
    assert compare(wanted) == []
    ((name, before, after),) = compare(replace(wanted, classes=[0] * 8))
    assert name == "ets" and before["classes"] != after["classes"] and after["willing"] is False


def test_the_percents_of_strict_classes_are_not_compared() -> None:
    """mlx5 takes 0 for a strict class, and shows 100."""
    wanted = replace(
        RAIL,
        bandwidth=[50, 0, 0, 50, 0, 0, 0, 0],
        algorithms=["ets" if number in (0, 3) else "strict" for number in range(8)],
        classes=[0, 0, 0, 3, 0, 0, 6, 0],
    )
    shown = {"willing": False, "algorithms": wanted.algorithms, "classes": wanted.classes}
    for percents, differs in (([50, 100, 100, 50, *[100] * 4], False), ([40, 100, 100, 60, *[100] * 4], True)):
        found = facts(device(0, port(0, dcb={"ets": {**shown, "bandwidth": percents}})))
        assert [setting for setting, *_values in compare(wanted, found)] == ["ets"] * differs
    # Classes that must be strict, but have shares, differ.
    found = facts(device(0, port(0, dcb={"ets": {**shown, "algorithms": ["ets"] * 8, "bandwidth": [12] * 8}})))
    assert [setting for setting, *_values in compare(wanted, found)] == ["ets"]
    # A device with fewer classes differs.
    found = facts(device(0, port(0, dcb={"ets": {**shown, "bandwidth": [50, 100, 100, 50]}})))
    assert [setting for setting, *_values in compare(wanted, found)] == ["ets"]


def test_further_entries_of_dscp_remain_and_facts_may_come_from_json() -> None:
    found = facts(device(0, port(0, dcb={"pfc": [3], "dscp": {10: 1, 26: 3, 48: 6}, "ets": None})))
    wanted = replace(RAIL, dscp={"26": 3, "48": 6})
    assert compare(wanted, found) == compare(wanted, json.loads(json.dumps(found))) == []


def test_settings_that_stop_the_traffic_of_a_rail_are_disruptive() -> None:
    found = facts(device(0, port(0, netdev_addresses=["10.1.0.9/16"])))
    wanted = replace(RAIL, mtu=9000, pfc=[3], address="10.1.0.7/16", rdma_cm_tos=106)
    result = differences.compare(Desired([wanted]), rails.ports(found), {})
    assert {one.setting: one.disruptive for one in result.differences} == {
        "mtu": True,
        "pfc": True,
        "address": True,
        "rdma_cm_tos": False,
    }
    assert str(result.differences[0]) == "rail 0 (rocep0s0/1): mtu: 1500 -> 9000"
    assert str(result.differences[1]) == "rail 0 (rocep0s0/1): pfc: none -> 3"
    assert str(result.differences[3]) == "rail 0 (rocep0s0/1): rdma_cm_tos: unset -> 106"
    # A rule waits with its address.
    moved = replace(RAIL, address="10.1.0.7/16", table=1001)
    states = {RAIL.key: State({}, rule=False)}
    for found_rails, waits in ((found, True), (roce(), False)):
        result = differences.compare(Desired([moved]), rails.ports(found_rails), states)
        assert [(one.setting, one.disruptive) for one in result.differences] == [("address", waits), ("rule", waits)]
    # A rail without an address does not carry traffic.
    assert not differences.compare(Desired([wanted]), rails.ports(roce()), {}).differences[2].disruptive


def test_settings_without_a_present_value_are_unknown_and_not_set() -> None:
    bare = device(0, port(0, dcb=None, congestion=None), pcie=None)
    wanted = replace(RAIL, pfc=[3], dscp={"26": 3}, cnp_dscp=48, ecn=True, max_read_request=4096, ipoib_mode="datagram")
    result = differences.compare(Desired([wanted]), rails.ports(facts(bare)), {})
    assert result.differences == []
    assert [line.split(": ")[1] for line in result.unknown] == [
        *("ipoib_mode", "pfc", "dscp", "cnp_dscp", "ecn", "max_read_request"),
    ]


def test_the_error_of_dcb_is_the_reason_for_an_unknown_setting() -> None:
    hangs: dict[str, Any] = {"pfc": None, "dscp": {}, "ets": None, "errors": ["dcb did not end within 10 s"]}
    wanted = replace(RAIL, pfc=[3], max_read_request=4096)
    found = facts(device(0, port(0, dcb=hangs), pcie=None))
    unknown = differences.compare(Desired([wanted]), rails.ports(found), {}).unknown
    assert [line.partition("): ")[2] for line in unknown] == [
        "pfc: dcb did not end within 10 s",
        "max_read_request: the device is not on PCIe",
    ]


def test_a_rail_without_its_device_is_missing() -> None:
    result = differences.compare(Desired([replace(RAIL, key="0000:99:00.0/1", mtu=9000)]), rails.ports(roce()), {})
    assert (result.differences, result.missing) == ([], ["0000:99:00.0/1"])


def test_mode_and_mtu_of_infiniband_are_compared() -> None:
    wanted = Rail("0000:10:00.0/1", "infiniband", mtu=4092, ipoib_mode="connected")
    found = compare(wanted, facts(infiniband(0)), State({}, ipoib_mode="datagram"))
    assert found == [("ipoib_mode", "datagram", "connected"), ("mtu", 2044, 4092)]
