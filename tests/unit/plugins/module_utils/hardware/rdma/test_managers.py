# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs that configure a network device: ifupdown, networkd, NetworkManager, or none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma.managers import (
    LinkFile,
    Manager,
    link_file,
    managers,
    names_devices,
    reads_directory,
    stanzas,
)

INTERFACES = """\
# The loopback network interface
auto lo ens9
iface lo inet loopback
allow-hotplug ens1
iface ens1 inet static
    address 10.7.0.1/24
    mtu 7000
iface ens1 inet6 auto
source interfaces.d/*
source-directory /etc/network/more
source /etc/network/interfaces
"""


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("source /etc/network/interfaces.d/*", True),
        ("source interfaces.d/*", True),
        ("source /etc/network/interfaces.d/*.cfg", False),
        ("source-directory /etc/network/interfaces.d", True),
        ("source-directory interfaces.d/", True),
        ("# source /etc/network/interfaces.d/*", False),
        ("source /etc/network/more/* /etc/network/interfaces.d/*", True),
        ("iface lo inet loopback", False),
    ],
)
def test_ifupdown_reads_a_directory_only_if_a_source_line_names_all_its_files(
    machine: Any, text: str, reads: bool
) -> None:
    assert not reads_directory(machine.root, "/etc/network/interfaces.d")
    machine.write("etc/network/interfaces", f"auto lo\n{text}")
    assert reads_directory(machine.root, "/etc/network/interfaces.d") is reads


def found(machine: Any, netdev: str) -> list[Manager]:
    return managers(machine.root, netdev, stanzas(machine.root))


def test_a_device_that_no_program_configures_has_no_manager(machine: Any) -> None:
    assert found(machine, "ens1") == []
    machine.write("sys/class/net/ens1/ifindex", "3")
    machine.write("run/systemd/netif/links/3", "ADMIN_STATE=unmanaged\nNETWORK_FILE=/x")
    machine.write("run/NetworkManager/devices/3", "[device]\nmanaged=false")
    assert found(machine, "ens1") == []


def test_ifupdown_manages_the_devices_in_all_files_that_it_reads(machine: Any) -> None:
    machine.write("etc/network/interfaces", INTERFACES)
    machine.write("etc/network/interfaces.d/rails", "iface ens2 inet static\n  address 10.8.0.1/24\\\n  \n  mtu 9000")
    machine.write("etc/network/more/ens3", "iface ens3 inet manual")
    machine.write("etc/network/more/ens4~", "iface ens4 inet manual")
    assert {stanza.netdev for stanza in stanzas(machine.root)} == {"ens1", "ens2", "ens3"}
    assert found(machine, "ens1") == [Manager("ifupdown", "/etc/network/interfaces", 7000)]
    assert found(machine, "ens2") == [Manager("ifupdown", "/etc/network/interfaces.d/rails", 9000)]
    assert found(machine, "ens3") == [Manager("ifupdown", "/etc/network/more/ens3", None)]


def test_networkd_manages_a_device_with_the_mtu_of_its_files(machine: Any) -> None:
    machine.write("sys/class/net/ens1/ifindex", "3")
    machine.write("run/systemd/netif/links/3", "ADMIN_STATE=configured\nNETWORK_FILE=/etc/systemd/network/a.network")
    assert found(machine, "ens1") == [Manager("networkd", "/etc/systemd/network/a.network", None)]
    machine.write("etc/systemd/network/a.network", "[Match]\nMTUBytes=1\n[Link]\nMTUBytes = 8000\n[Network]\nDHCP=no")
    assert found(machine, "ens1")[0].mtu == 8000
    machine.write("etc/systemd/network/a.network.d/b.conf", "[Link]\nMTUBytes=9K")
    assert found(machine, "ens1")[0].mtu == 9216


def test_the_link_file_that_udev_used_for_a_device_is_found(machine: Any) -> None:
    assert link_file(machine.root, "ens1") is None
    machine.write("sys/class/net/ens1/ifindex", "3")
    machine.write(
        "run/udev/data/n3", "E:ID_NET_DRIVER=mlx5_core\nE:ID_NET_LINK_FILE=/usr/lib/systemd/network/99-default.link"
    )
    assert link_file(machine.root, "ens1") is None
    machine.write("run/udev/data/n3", "E:ID_NET_LINK_FILE=/etc/systemd/network/70-rails.link\nG:systemd")
    assert link_file(machine.root, "ens1") == LinkFile("/etc/systemd/network/70-rails.link", None)
    machine.write("etc/systemd/network/70-rails.link", "[Match]\nMTUBytes=1\n[Link]\nMTUBytes=9000")
    assert link_file(machine.root, "ens1") == LinkFile("/etc/systemd/network/70-rails.link", 9000)


def test_udev_names_network_devices_unless_99_default_link_is_empty(machine: Any) -> None:
    assert names_devices(machine.root)
    path = machine.root / "etc/systemd/network/99-default.link"
    path.parent.mkdir(parents=True)
    path.symlink_to("/dev/null")
    assert not names_devices(machine.root)
    path.unlink()
    machine.write("run/systemd/network/99-default.link", "")
    assert not names_devices(machine.root)
    machine.write("etc/systemd/network/99-default.link", "[Match]\nOriginalName=*\n[Link]\nNamePolicy=mac")
    assert names_devices(machine.root)


def test_networkmanager_manages_a_device_with_the_mtu_of_its_profile(machine: Any) -> None:
    machine.write("sys/class/net/ens1/ifindex", "3")
    machine.write("run/NetworkManager/devices/3", "[device]\nmanaged=true")
    assert found(machine, "ens1") == [Manager("networkmanager", None, None)]
    directory = "etc/NetworkManager/system-connections"
    machine.write(f"{directory}/a.nmconnection", "[connection]\ninterface-name=ens1\n[ethernet]\nmtu=9000")
    machine.write(f"{directory}/b.nmconnection", "no section")
    assert found(machine, "ens1") == [Manager("networkmanager", f"/{directory}/a.nmconnection", 9000)]
    assert found(machine, "ens2") == []


def test_an_external_profile_that_networkmanager_has_made_manages_no_device(machine: Any) -> None:
    machine.write("sys/class/net/ens1/ifindex", "3")
    machine.write("run/NetworkManager/devices/3", "[device]\nmanaged=true\nconnection-uuid=u1")
    profile = "run/NetworkManager/system-connections/Wired connection 1.nmconnection"
    # NetworkManager generates such a profile, with DHCP, for any device. It prefers the profile of an operator.
    text = "[connection]\nuuid=u1\ninterface-name=ens1\n[.nmmeta]\nnm-generated=true"
    machine.write(profile, text)
    assert found(machine, "ens1") == [Manager("networkmanager", None, None)]
    machine.write(profile, f"{text}\nvolatile=true\nexternal=true")
    assert found(machine, "ens1") == []


def test_the_active_profile_manages_a_device_that_it_names_by_its_mac_address(machine: Any) -> None:
    machine.write("sys/class/net/ens1/ifindex", "3")
    machine.write("run/NetworkManager/devices/3", "[device]\nmanaged=true\nconnection-uuid=u1")
    path = "etc/NetworkManager/system-connections/rail.nmconnection"
    machine.write(path, "[connection]\nuuid=u1\n[ethernet]\nmac-address=02:00:00:00:00:01")
    assert found(machine, "ens1") == [Manager("networkmanager", f"/{path}", None)]
    machine.write("run/NetworkManager/devices/3", "[device]\nmanaged=true")
    assert found(machine, "ens1") == [Manager("networkmanager", None, None)]


def test_two_managers_of_a_device_are_both_found(machine: Any) -> None:
    machine.write("sys/class/net/ens1/ifindex", "3")
    machine.write("run/systemd/netif/links/3", "ADMIN_STATE=configuring")
    machine.write("etc/network/interfaces", INTERFACES)
    assert [manager.name for manager in found(machine, "ens1")] == ["ifupdown", "networkd"]


@given(st.text(max_size=200))
def test_files_of_any_text_are_no_exception(new_machine: Any, text: str) -> None:
    machine = new_machine()
    machine.write("sys/class/net/ens1/ifindex", "3")
    for path in (
        "etc/network/interfaces",
        "run/systemd/netif/links/3",
        "run/NetworkManager/devices/3",
        "etc/NetworkManager/system-connections/a.nmconnection",
    ):
        file = machine.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    found(machine, "ens1")
