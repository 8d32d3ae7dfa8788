# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts that the plan needs besides rdma_facts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings import machine
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.files import HEADER
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.rdma_settings.host import Host
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.rdma_settings.samples import roce


def read(host: Host, address: str = "192.0.2.7", **more: Any) -> machine.Machine:
    return machine.read(host.root, roce(), address, more.get("peers", {}), more.get("known", ()), host.run)


def test_the_management_interface_is_found_by_its_address_and_by_the_default_route(tmp_path: Path) -> None:
    host = Host(tmp_path)
    found = read(host, peers={"node2": ["10.1.0.8/16"]}, known=["x/1"])
    assert (found.management, found.management_addresses, found.managers) == (["eno1"], ["192.0.2.7/24"], ["networkd"])
    assert (found.peers, found.known, found.networkmanager_runs) == ({"node2": ["10.1.0.8/16"]}, ["x/1"], False)
    host.addresses["ens1"] = ["198.51.100.7/24"]
    assert read(host, "198.51.100.7").management == ["eno1", "ens1"]
    assert read(host, "").management == ["eno1"]
    host.defaults = [{"dst": "default", "nexthops": [{"dev": "ens0"}, {"dev": "ens1"}]}]
    assert read(host).management == ["eno1", "ens0", "ens1"]


def test_an_ipv6_address_in_another_form_names_the_management_interface(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.addresses["ens1"] = ["2001:db8::7/64"]
    assert "ens1" in read(host, "2001:DB8:0::7").management
    assert "ens1" not in read(host, "").management


def test_the_device_of_an_ipv6_default_route_is_a_management_interface(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.defaults, host.defaults_v6 = [], [{"dst": "default", "gateway": "fe80::1", "dev": "ens1"}]
    assert read(host, "").management == ["ens1"]


def test_a_kernel_without_ipv6_is_not_asked_for_default_routes_of_ipv6(tmp_path: Path) -> None:
    host = Host(tmp_path)
    (host.root / "proc/net/if_inet6").unlink()
    read(host)
    assert [command for command in host.commands if "route show" in command] == ["ip -j route show default"]


def test_network_devices_below_the_management_interface_are_management_interfaces(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.machine.write("sys/class/net/eno1/lower_bond0/ifindex", "3")
    host.machine.write("sys/class/net/bond0/lower_ens0/ifindex", "4")
    assert read(host).management == ["bond0", "eno1", "ens0"]
    assert not read(host).bonds
    host.machine.write("sys/class/net/bond0/bonding/mode", "802.3ad 4")
    assert read(host).bonds == ["bond0"]


def test_the_link_files_of_the_rails_are_found(tmp_path: Path) -> None:
    host = Host(tmp_path)
    assert not read(host).links
    host.machine.write("run/udev/data/n10", "E:ID_NET_LINK_FILE=/etc/systemd/network/70-rails.link")
    assert {name: link.file for name, link in read(host).links.items()} == {
        "ens0": "/etc/systemd/network/70-rails.link"
    }


def test_the_symbols_of_ib_core_show_whether_it_supports_peer_memory(tmp_path: Path) -> None:
    host = Host(tmp_path)
    assert read(host).peer_memory is None
    host.machine.write("sys/module/ib_core/initstate", "live")
    assert read(host).peer_memory is None
    host.machine.write("proc/kallsyms", "0000000000000000 T ib_register_client\t[ib_core]")
    assert read(host).peer_memory is False
    host.machine.write("proc/kallsyms", "0000000000000000 T ib_register_peer_memory_client\t[ib_core]")
    assert read(host).peer_memory is True


def test_networkmanager_and_its_unmanaged_devices_are_found(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.unmanaged = ["ens0"]
    assert read(host).networkd_runs and not read(host).unmanaged
    (tmp_path / "run/systemd/netif/state").unlink()
    (tmp_path / "run/NetworkManager").mkdir()
    found = read(host)
    assert found.networkmanager_runs and not found.networkd_runs and found.unmanaged == ["ens0"]


def test_without_udevs_default_link_file_devices_have_names_of_the_kernel(tmp_path: Path) -> None:
    host = Host(tmp_path)
    assert read(host).named
    (tmp_path / "etc/systemd/network").mkdir(parents=True)
    (tmp_path / "etc/systemd/network/99-default.link").symlink_to("/dev/null")
    assert not read(host).named


def test_a_running_lldpad_is_found(tmp_path: Path) -> None:
    host = Host(tmp_path)
    assert not read(host).lldpad
    host.services = ["lldpad.service"]
    assert read(host).lldpad


def test_a_file_of_partitions_without_our_header_is_foreign(tmp_path: Path) -> None:
    host = Host(tmp_path)
    path = "etc/opensm/partitions.conf"
    assert not read(host).partitions_foreign
    host.machine.write(path, "Default=0x7fff : ALL=full ;")
    assert read(host).partitions_foreign
    host.machine.write(path, f"{HEADER}Default=0x7fff, ipoib : ALL=full ;")
    assert not read(host).partitions_foreign
    (tmp_path / path).unlink()
    (tmp_path / path).mkdir()
    assert read(host).partitions_foreign


def test_ifupdown_reads_our_files_if_a_source_line_names_their_directory(tmp_path: Path) -> None:
    host = Host(tmp_path)
    assert not read(host).ifupdown_reads
    host.machine.write("etc/network/interfaces", "source /etc/network/interfaces.d/*")
    assert read(host).ifupdown_reads


def test_running_instances_that_are_not_drained_use_the_network(tmp_path: Path) -> None:
    host = Host(tmp_path)
    assert machine.serving(host.run, lambda name: False) == []
    host.engines = ["main", "small"]
    assert machine.serving(host.run, lambda name: False) == ["main", "small"]
    assert machine.serving(host.run, lambda name: name == "main") == ["small"]


def test_without_an_answer_of_systemd_the_network_counts_as_used() -> None:
    (words,) = machine.serving(lambda command: Outcome(1, "", "Failed to connect to bus"), lambda name: True)
    assert "systemd does not answer" in words


def test_if_ip_address_gives_no_addresses_the_unknown_management_interface_is_an_error(tmp_path: Path) -> None:
    def run(command: Sequence[str]) -> Outcome:
        return Outcome(0, json.dumps(7) if "route" in command else "{")

    with pytest.raises(ValueError, match=r"`ip -j -d address` .* the management interface is not known"):
        machine.read(tmp_path, roce(), "192.0.2.7", {}, (), run)
    without_ports = {**roce(), "rdma_devices": []}
    found = machine.read(tmp_path, without_ports, "192.0.2.7", {}, (), run)
    assert (found.management, found.managers) == ([], [])


@pytest.mark.parametrize("command", ["ip -j route show default", "ip -j -6 route show default"])
@pytest.mark.parametrize("answer", [Outcome(0, "7"), Outcome(0, "["), Outcome(1, "", "Cannot open netlink socket")])
def test_unknown_default_routes_are_an_error(tmp_path: Path, answer: Outcome, command: str) -> None:
    host = Host(tmp_path)

    def run(words: Sequence[str]) -> Outcome:
        return answer if " ".join(words) == command else host.run(words)

    with pytest.raises(ValueError, match=rf"`{command}` .* the management interface is not known"):
        machine.read(host.root, roce(), "192.0.2.7", {}, (), run)


def test_packages_that_are_not_installed_are_lacking(tmp_path: Path) -> None:
    host = Host(tmp_path)
    wanted = ["iproute2", "libibverbs1", "opensm", "rdma-core"]
    assert machine.lacking(tmp_path, wanted) == wanted
    stanzas = [
        "Package: iproute2\nStatus: hold ok installed\nVersion: 6.1\n",
        "Package: libibverbs1\nStatus: install ok installed\nArchitecture: amd64\n",
        "Package: opensm\nStatus: deinstall ok config-files\nConffiles:\n /etc/default/opensm 1\n",
    ]
    host.machine.write("var/lib/dpkg/status", "\n".join(stanzas))
    assert machine.lacking(tmp_path, wanted) == ["opensm", "rdma-core"]
