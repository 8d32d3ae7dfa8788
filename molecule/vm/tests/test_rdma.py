# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts of a RoCE device, compared with the kernel and its tools. The device is software over the NIC."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from virtual import Machine

SYSFS = "/sys/class/infiniband/rxe0"


@pytest.fixture(scope="module")
def netdev(machine: Machine) -> Iterator[str]:
    """The machine's NIC with an RDMA device."""
    name = str(json.loads(machine.run("ip -json -4 route get 192.0.2.1"))[0]["dev"])
    machine.run(f"modprobe rdma_rxe && rdma link add rxe0 type rxe netdev {name}")
    yield name
    machine.run("rdma link delete rxe0")


@pytest.fixture(scope="module")
def facts(machine: Machine, netdev: str) -> dict[str, Any]:
    result = machine.module("baremetal.inference.rdma_facts")
    assert not result["changed"]
    return dict(result["ansible_facts"])


def test_the_facts_of_the_device_agree_with_the_tools(machine: Machine, facts: dict[str, Any], netdev: str) -> None:
    (device,) = facts["rdma_devices"]
    (port,) = device["ports"]
    assert device["name"] == "rxe0"
    assert device["node_guid"] == machine.run(f"cat {SYSFS}/node_guid")
    (link,) = json.loads(machine.run("rdma -j link show"))
    assert (port["port"], port["state"]) == (link["port"], link["state"])
    assert port["netdev"] == link["netdev"] == netdev
    assert port["physical_state"] == "LinkUp" and link["physical_state"] == "LINK_UP"
    assert port["rate_text"] == machine.run(f"cat {SYSFS}/ports/1/rate")
    assert port["rate_gbps"] == float(port["rate_text"].split()[0])
    verbs = machine.run("ibv_devinfo -v -d rxe0")
    for key, name in (("mtu_active", "active_mtu"), ("mtu_max", "max_mtu"), ("lid", "port_lid")):
        match = re.search(rf"{name}:\s+(\d+)", verbs)
        assert match and port[key] == int(match[1]), key
    assert f"link_layer:\t\t{port['link_layer']}" in verbs
    assert facts["rdma_tools"] == {name: {"ok": True, "error": None} for name in ("rdma", "ibv_devinfo", "ip")}


def test_the_gid_to_use_is_the_one_of_the_address(machine: Machine, facts: dict[str, Any], netdev: str) -> None:
    (port,) = facts["rdma_devices"][0]["ports"]
    (link,) = json.loads(machine.run(f"ip -json -4 address show dev {netdev}"))
    address = link["addr_info"][0]["local"]
    assert any(address in entry for entry in port["netdev_addresses"])
    index = port["recommended_gid_index"]
    gid = ipaddress.IPv6Address(machine.run(f"cat {SYSFS}/ports/1/gids/{index}"))
    assert str(gid.ipv4_mapped) == address
    assert machine.run(f"cat {SYSFS}/ports/1/gid_attrs/types/{index}") == "RoCE v2"
    entry = next(entry for entry in port["gids"] if entry["index"] == index)
    assert entry["type"] == "RoCE v2" and ipaddress.IPv6Address(entry["gid"]) == gid
