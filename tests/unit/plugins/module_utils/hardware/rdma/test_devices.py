# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices, ports and counters from sysfs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma import counters, devices


def test_a_device_and_its_port_have_the_values_of_sysfs(machine: Any) -> None:
    function = machine.pci("0000:1a:00.0", driver="mlx5_core", numa_node="1")
    device = machine.rdma("mlx5_0", function, fw_ver="28.41.1000", node_guid="5e25:7303:00d1:2a40")
    machine.gid(machine.port(device, lid="0x1f", sm_lid="0x2"), 0, "0" * 4 + ":0000" * 7, netdev="ens1")
    (found,) = devices.devices(machine.root)
    (port,) = found.ports
    assert (found.name, found.node_type, found.driver, found.firmware) == ("mlx5_0", "CA", "mlx5_core", "28.41.1000")
    assert (found.node_guid, found.pci_address, found.numa_node) == ("5e25:7303:00d1:2a40", "0000:1a:00.0", 1)
    assert (port.port, port.state, port.physical_state, port.link_layer) == (1, "ACTIVE", "LinkUp", "Ethernet")
    assert (port.rate_gbps, port.rate_text, port.lid, port.sm_lid) == (400.0, "400 Gb/sec (4X NDR)", 31, 2)
    assert (port.netdev, port.gids, port.counters) == ("ens1", [], {})


def test_missing_and_unreadable_attributes_are_unknown(machine: Any) -> None:
    device = machine.rdma("mlx5_0", node_type="")
    port = machine.port(device)
    for name in ("state", "phys_state", "link_layer", "rate", "lid", "sm_lid"):
        (machine.root / port / name).unlink()
        # A directory cannot be read either.
        (machine.root / port / name).mkdir()
    assert devices.devices(machine.root) == [
        devices.Device("mlx5_0", ports=(devices.Port(1, gids=[], counters={}),)),
    ]


def test_without_rdma_there_are_no_devices(tmp_path: Path) -> None:
    assert devices.devices(tmp_path) == []


def test_broken_links_are_no_devices_and_names_are_sorted_by_number(machine: Any) -> None:
    for name in ("mlx5_10", "mlx5_2", "mlx5_bond_0"):
        device = machine.rdma(name)
        for number in (10, 9):
            machine.port(device, number)
    machine.write(f"{device}/ports/notes", "")
    machine.link("sys/class/infiniband/scif9", "sys/devices/gone")
    found = devices.devices(machine.root)
    assert [device.name for device in found] == ["mlx5_2", "mlx5_10", "mlx5_bond_0"]
    assert [port.port for port in found[0].ports] == [9, 10]


def test_a_subfunction_has_the_address_of_its_pci_function(machine: Any) -> None:
    function = machine.pci("0000:1a:00.0", driver="mlx5_core")
    machine.link(f"{function}/mlx5_core.sf.4/subsystem", "sys/bus/auxiliary")
    machine.rdma("mlx5_4", f"{function}/mlx5_core.sf.4")
    assert [device.pci_address for device in devices.devices(machine.root)] == ["0000:1a:00.0"]


def test_a_software_device_on_a_virtual_network_device_has_no_pci_address(machine: Any) -> None:
    function = machine.pci("0000:00:03.0", driver="virtio-pci", vendor="0x1af4")
    machine.link(f"{function}/virtio0/subsystem", "sys/bus/virtio")
    machine.rdma("siw0", f"{function}/virtio0")
    machine.rdma("rxe0")
    assert [(one.pci_address, one.driver) for one in devices.devices(machine.root)] == [(None, None), (None, None)]


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("4: ACTIVE", "ACTIVE"),
        ("7: Phy Test", "Phy Test"),
        ("LinkUp", "LinkUp"),
        ("0: <unknown>", None),
        ("Unknown", None),
        ("4:", None),
        ("", None),
        (None, None),
    ],
)
def test_a_numbered_text_has_the_meaning_after_its_number(text: str | None, meaning: str | None) -> None:
    assert devices.value(text) == meaning


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("2.5 Gb/sec (1X SDR)", 2.5),
        ("10 Gb/sec (4X)", 10.0),
        ("800 Gb/sec (4X XDR)", 800.0),
        ("unknown", None),
        ("9" * 400 + " Gb/sec", None),
        (None, None),
    ],
)
def test_rates_are_numbers(text: str | None, rate: float | None) -> None:
    assert devices.rate(text) == rate


@pytest.mark.parametrize("text", ["0000:0000:0000:0000", "", None, "5e25:7303", "zzzz:7303:00d1:2a40"])
def test_a_text_that_is_not_a_guid_is_unknown(text: str | None) -> None:
    assert devices.guid(text) is None


def test_only_counters_of_errors_and_congestion_are_read(machine: Any) -> None:
    port = machine.port(machine.rdma("mlx5_0"))
    machine.counters(
        port,
        "counters",
        {
            "symbol_error": "7",
            "link_downed": "N/A (no PMA)",
            "port_rcv_errors": "N/A (no PMA)",
            "port_xmit_wait": "3",
            "port_xmit_data": "1",
            "port_rcv_packets": "1",
            "unicast_rcv_packets": "1",
            "multicast_xmit_packets": "1",
        },
    )
    machine.counters(
        port,
        "hw_counters",
        {
            "out_of_sequence": "9",
            "symbol_error": "1",
            "link_downed": "2",
            "rx_write_requests": "5",
            "duplicate_request": "1",
            "np_ecn_marked_roce_packets": "4",
            "rdma_sends": "8",
            "lifespan": "10",
            "Name, with words": "6",
        },
    )
    (machine.root / port / "counters/VL15_dropped").mkdir()
    assert counters.counters(machine.root / port) == {
        "Name, with words": 6,
        "VL15_dropped": None,
        "duplicate_request": 1,
        "link_downed": 2,
        "np_ecn_marked_roce_packets": 4,
        "out_of_sequence": 9,
        "port_rcv_errors": None,
        "port_xmit_wait": 3,
        "symbol_error": 7,
    }


@given(st.text())
def test_any_text_of_an_attribute_is_read(text: str) -> None:
    devices.value(text)
    devices.order(text)
    assert devices.guid(text) in (None, text.lower())
    assert devices.rate(text) is None or text[0].isdecimal()


def restore(tree: Path, to: Path) -> Path:
    """A copy of a recorded /sys with links. The recording has files with the targets instead."""
    shutil.copytree(tree, to)
    for path in [path for path in to.rglob("*") if path.is_file()]:
        target = path.read_bytes()
        if target.startswith(b"../"):
            path.unlink()
            path.symlink_to(target.decode().strip())
    return to


@pytest.mark.recordings("sysfs_infiniband")
def test_the_devices_of_recorded_trees_are_read(recording: Any, tmp_path: Path) -> None:
    # Some recordings are of /sys, some of a part of it.
    layouts = {"sys": "", "class": "sys"}
    where = next((to for name, to in layouts.items() if (recording.path / name).is_dir()), devices.CLASS)
    restore(recording.path, tmp_path / "root" / where)
    found = devices.devices(tmp_path / "root")
    expected = recording.expected
    assert [device.name for device in found] == sorted((one["name"] for one in expected["devices"]), key=devices.order)
    ports = [port for device in found for port in device.ports]
    assert sum(port.state == "ACTIVE" for port in ports) == expected["active_ports"]
    by_name = {one["name"]: one for one in expected["devices"]}
    for device in found:
        one = by_name[device.name]
        assert (device.firmware, device.node_guid) == (one["fw_ver"], one["node_guid"])
        assert device.pci_address == one.get("pci")
        assert [(port.port, port.state, port.link_layer, port.rate_gbps, port.rate_text) for port in device.ports] == [
            (port["port"], port["state"], port["link_layer"], port["rate_gbps"], port["rate"]) for port in one["ports"]
        ]
        for port, other in zip(device.ports, one["ports"], strict=True):
            # The word <unknown> counts as no value.
            assert port.physical_state == (other["physical_state"].replace("<unknown>", "") or None)
            assert port.lid == (int(other["lid"], 16) if other["lid"] else None)
            assert port.gids is not None and len(port.gids) == (other["gid_nonzero"] or 0)
            assert (port.gids[0].gid if port.gids else None) == other["gid0"]
            assert port.counters is not None and len(port.counters) <= other["counters"] + other["hw_counters"]
