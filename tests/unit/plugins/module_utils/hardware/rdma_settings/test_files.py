# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files for the boot, for each program that can configure a link."""

from __future__ import annotations

import configparser
from dataclasses import replace

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings import files
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.desired import Rail
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.files import Place

RAIL = Rail(
    "0000:10:00.0/1", "ethernet", mtu=9000, address="10.7.0.1/24", network="10.7.0.0/24", sysctls={"arp_ignore": 1}
)
PLACE = Place(replace(RAIL, table=1001), "ens1", "02:00:00:00:00:01")
IB = Place(
    Rail("0000:10:00.0/1", "infiniband", mtu=2044, address="10.7.0.1/24", ipoib_mode="datagram", network="10.7.0.0/24"),
    "ib0",
    None,
)


def ini(text: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    return parser


def test_the_link_file_matches_only_by_the_address_and_keeps_the_defaults_of_debian() -> None:
    texts = files.render([PLACE], "none", False)
    assert sorted(texts) == ["/etc/sysctl.d/60-inference-rdma.conf", "/etc/systemd/network/60-inference-rdma-ens1.link"]
    found = ini(texts["/etc/systemd/network/60-inference-rdma-ens1.link"])
    assert dict(found["Match"]) == {"PermanentMACAddress": "02:00:00:00:00:01"}
    assert found["Link"]["MTUBytes"] == "9000"
    assert found["Link"]["NamePolicy"] == "keep kernel database onboard slot path"
    assert texts["/etc/sysctl.d/60-inference-rdma.conf"].splitlines()[1:] == ["net/ipv4/conf/ens1/arp_ignore = 1"]


def test_the_file_for_networkd_has_address_rule_and_route() -> None:
    path, text = files.networkd(PLACE)
    assert path == "/etc/systemd/network/60-inference-rdma-ens1.network"
    found = ini(text)
    assert found["Address"]["Address"] == "10.7.0.1/24" and "MTUBytes" not in text
    assert dict(found["RoutingPolicyRule"]) == {"From": "10.7.0.1", "Table": "1001", "Priority": "1001"}
    assert dict(found["Route"]) == {
        "Destination": "10.7.0.0/24",
        "Scope": "link",
        "PreferredSource": "10.7.0.1",
        "Table": "1001",
    }
    assert "RoutingPolicyRule" not in files.networkd(Place(RAIL, "ens1", None))[1]
    assert ini(files.networkd(IB)[1])["IPoIB"]["Mode"] == "datagram"
    assert ini(files.networkd(IB)[1])["Match"]["Name"] == "ib0"


def test_the_file_for_ifupdown_has_address_rule_and_route() -> None:
    path, text = files.ifupdown(PLACE)
    assert path == "/etc/network/interfaces.d/60-inference-rdma-ens1"
    assert "iface ens1 inet static\n    address 10.7.0.1/24\n" in text
    assert "ip -4 rule add from 10.7.0.1 table 1001 priority 1001 protocol kernel\n" in text
    assert "ip -4 route replace 10.7.0.0/24 dev ens1 src 10.7.0.1 table 1001\n" in text
    assert "mtu" not in text and "    mtu 2044\n" in files.ifupdown(IB)[1]
    assert "echo datagram > /sys/class/net/ib0/mode" in files.ifupdown(IB)[1]


def test_the_files_for_networkmanager_have_address_rule_and_route() -> None:
    texts = files.render([PLACE], "networkmanager", True)
    path = "/etc/NetworkManager/system-connections/60-inference-rdma-ens1.nmconnection"
    found = ini(texts[path])
    assert found["connection"]["interface-name"] == "ens1" and found["connection"]["type"] == "ethernet"
    assert found["ipv4"]["address1"] == "10.7.0.1/24" and found["ipv4"]["never-default"] == "true"
    assert found["ipv4"]["routing-rule1"] == "priority 1001 from 10.7.0.1 table 1001"
    # The + keeps the devices of another file.
    assert ini(texts["/etc/NetworkManager/conf.d/60-inference-rdma.conf"])["main"] == {
        "no-auto-default+": "02:00:00:00:00:01"
    }
    assert (files.mode(path), files.mode("/etc/sysctl.d/x")) == (0o600, 0o644)
    assert files.networkmanager(PLACE) == files.networkmanager(PLACE)
    infiniband = ini(files.networkmanager(IB)[1])
    assert dict(infiniband["infiniband"]) == {"transport-mode": "datagram", "mtu": "2044"}


def test_networkd_must_keep_the_rules_of_networkmanager() -> None:
    path = "/etc/systemd/networkd.conf.d/60-inference-rdma.conf"
    found = ini(files.render([PLACE], "networkmanager", True, True)[path])
    assert dict(found["Network"]) == {"ManageForeignRoutingPolicyRules": "no"}
    for manager, place, runs in (
        ("networkmanager", PLACE, False),
        ("networkmanager", Place(RAIL, "ens1", None), True),
        ("networkd", PLACE, True),
        ("ifupdown", PLACE, True),
    ):
        assert path not in files.render([place], manager, True, runs)


def test_without_an_address_there_is_only_the_link_file() -> None:
    bare = Place(Rail("0000:10:00.0/1", "ethernet", mtu=9000), "ens1", "02:00:00:00:00:01")
    for manager in files.RENDERERS:
        assert list(files.render([bare], manager, False)) == ["/etc/systemd/network/60-inference-rdma-ens1.link"]


@pytest.mark.parametrize("manager", ["networkd", "ifupdown", "networkmanager", "none"])
def test_every_file_has_the_prefix_and_the_header(manager: str) -> None:
    places = [PLACE, IB, Place(replace(RAIL, key="b/1"), "ens2.7", "02:00:00:00:00:02")]
    for path, text in files.render(places, manager, True, True).items():
        assert path.rpartition("/")[2].startswith(files.PREFIX) and text.startswith(files.HEADER)
