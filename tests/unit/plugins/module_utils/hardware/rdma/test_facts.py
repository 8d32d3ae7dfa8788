# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All facts of RDMA together: from sysfs first, and from programs for the rest."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma import facts
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma.tools import Run

IPV4 = "0000:0000:0000:0000:0000:ffff:c000:0207"
PROGRAMS = facts.Programs("rdma", "ibv_devinfo", "ip", "dcb", "python")
NO_PROGRAMS = facts.Programs()

NO_DCB = Outcome(1, "", "Attribute read: Operation not supported")

ANSWERS: dict[str, str | Outcome] = {
    "rdma -j link": json.dumps(
        [{"ifname": "mlx5_0", "port": 1, "state": "DOWN", "physical_state": "SLEEP", "netdev": "other", "lid": 9}]
    ),
    "rdma -j dev": json.dumps([{"ifname": "mlx5_0", "fw": "0.0.1", "node_guid": "0000:0000:0000:0001"}]),
    "ibv_devinfo": "hca_id: mlx5_0\nport: 1\nmax_mtu: 4096 (5)\nactive_mtu: 1024 (3)\n",
    "ip -j -d address": json.dumps(
        [
            {
                "ifname": "ens1",
                "address": "02:00:00:00:00:07",
                "max_mtu": 9978,
                "addr_info": [{"local": "192.0.2.7", "prefixlen": 24}],
            },
            {"ifname": "lo", "addr_info": []},
        ]
    ),
    "dcb -j pfc show dev ens1": json.dumps({"delay": 0, "prio_pfc": [False, False, False, True, *[False] * 4]}),
    "dcb -j ets show dev ens1": NO_DCB,
    "dcb -j app show dev ens1": json.dumps({"dscp_prio": [[26, 3, " "]]}),
    "dcb -j dcbx show dev ens1": json.dumps({"host": True, "ieee": True}),
}


def answering(**answers: str | Outcome) -> Run:
    """Programs that answer as in ANSWERS, or as `answers` says: by the first and the last word of the command."""

    def run(command: Sequence[str]) -> Outcome:
        asked: str | Outcome = '{"mlx5_0": "EBADF"}'
        if command[0] == "dcb":
            asked = ANSWERS.get(" ".join(command), NO_DCB)
        elif command[0] != "python":
            asked = ANSWERS[" ".join(command)]
        answer = answers.get(f"{command[0]}_{command[-1]}", asked)
        return answer if isinstance(answer, Outcome) else Outcome(0, answer)

    return run


def gather(machine: Any, programs: facts.Programs = PROGRAMS, run: Run | None = None, parts: Any = facts.PARTS) -> Any:
    return facts.gather(machine.root, parts, programs, run or answering())


def fill(machine: Any) -> Any:
    """Make the machine a node with a ConnectX-7 near a GPU, a ConnectX-7 without a driver, and another GPU."""
    function = machine.pci("0000:1a:00.0", "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0", driver="mlx5_core")
    machine.netdev("ens1", function)
    device = machine.rdma("mlx5_0", function, fw_ver="28.41.1000", node_guid="5e25:7303:00d1:2a40")
    port = machine.port(device)
    machine.gid(port, 0, IPV4, "IB/RoCE v1", "ens1")
    machine.gid(port, 1, IPV4, "RoCE v2", "ens1")
    machine.counters(port, "counters", {"symbol_error": "0"})
    machine.gpu("0000:1b:00.0", "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0")
    machine.gpu("0000:9b:00.0", "pci0000:90/0000:90:01.0", numa_node="1")
    machine.pci("0000:5e:00.0", "pci0000:50/0000:50:01.0", device="0x1021")
    machine.write("sys/module/nvidia_peermem/initstate", "live")
    machine.write("etc/network/interfaces", "iface ens1 inet static\n  address 192.0.2.7/24")
    machine.write("sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode", "RoCE v2")
    machine.write("sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos", "106")
    machine.write("sys/kernel/debug/mlx5/0000:1a:00.0/cc_params/np_cnp_dscp", "48")
    machine.write("sys/kernel/debug/mlx5/0000:1a:00.0/cc_params/np_cnp_prio", "0x6")
    return machine


@pytest.fixture
def node(machine: Any) -> Any:
    return fill(machine)


@pytest.fixture(scope="module")
def mangled_node(new_machine: Any) -> Any:
    return fill(new_machine())


def test_all_facts_of_a_node_are_read(node: Any) -> None:
    assert gather(node) == {
        "rdma_devices": [
            {
                "name": "mlx5_0",
                "node_type": "CA",
                "driver": "mlx5_core",
                "firmware": "28.41.1000",
                "node_guid": "5e25:7303:00d1:2a40",
                "pci_address": "0000:1a:00.0",
                "numa_node": 0,
                "nearest_gpus": ["0000:1b:00.0"],
                "nearest_gpu_distance": "PIX",
                "gpu_distances": {"0000:1b:00.0": "PIX", "0000:9b:00.0": "SYS"},
                "pcie": {
                    "gen": None,
                    "width": None,
                    "gen_max": None,
                    "width_max": None,
                    "max_read_request": None,
                    "max_payload": None,
                    "relaxed_ordering": None,
                    "acs_bridges": [],
                    "iommu": None,
                },
                "dma_buf": True,
                "ports": (
                    {
                        "port": 1,
                        "state": "ACTIVE",
                        "physical_state": "LinkUp",
                        "link_layer": "Ethernet",
                        "rate_gbps": 400.0,
                        "rate_text": "400 Gb/sec (4X NDR)",
                        "lid": 0,
                        "sm_lid": 0,
                        "netdev": "ens1",
                        "netdev_mtu": 9000,
                        "netdev_addresses": ["192.0.2.7/24"],
                        "netdev_mac": "02:00:00:00:00:07",
                        "netdev_mtu_max": 9978,
                        "netdev_managers": [{"name": "ifupdown", "file": "/etc/network/interfaces", "mtu": None}],
                        "dcb": {
                            "pfc": [3],
                            "pfc_delay": 0,
                            "ets": None,
                            "dscp": {26: 3},
                            "modes": ["host", "ieee"],
                            "errors": [],
                        },
                        "congestion": {
                            "cnp_dscp": 48,
                            "cnp_priority": 6,
                            "ecn": None,
                            "kind": "debugfs",
                            "directory": "/sys/kernel/debug/mlx5/0000:1a:00.0/cc_params",
                        },
                        "rdma_cm_mode": "RoCE v2",
                        "rdma_cm_tos": 106,
                        "partition_keys": None,
                        "mtu_active": 1024,
                        "mtu_max": 4096,
                        "gids": [
                            {"index": 0, "gid": IPV4, "type": "RoCE v1", "netdev": "ens1"},
                            {"index": 1, "gid": IPV4, "type": "RoCE v2", "netdev": "ens1"},
                        ],
                        "recommended_gid_index": 1,
                        "recommended_gid_reason": "RoCE v2 with IPv4 192.0.2.7 of ens1",
                        "counters": {"symbol_error": 0},
                    },
                ),
            }
        ],
        "rdma_gpudirect": {
            "peermem": True,
            "peermem_module": "nvidia_peermem",
            "dma_buf": None,
            "dma_buf_reason": "the kernel's version is unknown",
        },
        "rdma_dma_buf_error": None,
        "rdma_iommu": {"groups": 0, "passthrough": False, "given_away": []},
        "rdma_nics_without_driver": [
            {
                "pci_address": "0000:5e:00.0",
                "vendor_id": "0x15b3",
                "device_id": "0x1021",
                "driver": None,
                "numa_node": 0,
                "reason": "no kernel driver is bound to it",
            }
        ],
        "rdma_tools": {name: {"ok": True, "error": None} for name in ("rdma", "ibv_devinfo", "ip")},
    }


def test_facts_of_parts_that_are_not_wanted_are_null_or_missing(node: Any) -> None:
    found = gather(node, parts=(), run=answering())
    assert set(found) == {"rdma_devices", "rdma_tools"}
    (device,) = found["rdma_devices"]
    (port,) = device["ports"]
    assert device["nearest_gpus"] is device["nearest_gpu_distance"] is None
    unknown = {"netdev_addresses", "mtu_active", "mtu_max", "gids", "recommended_gid_index", "counters"}
    settings = {"netdev_mac", "netdev_mtu_max", "netdev_managers", "dcb", "congestion", "rdma_cm_mode", "rdma_cm_tos"}
    others = {"recommended_gid_reason", "partition_keys"}
    assert {name for name, value in port.items() if value is None} == {*unknown, *settings, *others}
    assert device["pcie"] is device["dma_buf"] is device["gpu_distances"] is None
    assert found["rdma_tools"] == {name: {"ok": None, "error": None} for name in ("rdma", "ibv_devinfo", "ip")}


@pytest.mark.parametrize(
    ("part", "key"),
    [
        ("gids", "gids"),
        ("counters", "counters"),
        ("addresses", "netdev_addresses"),
        ("tools", "mtu_active"),
        ("settings", "dcb"),
    ],
)
def test_each_part_can_be_read_alone(node: Any, part: str, key: str) -> None:
    port = gather(node, parts=(part,))["rdma_devices"][0]["ports"][0]
    others = {"gids", "counters", "netdev_addresses", "mtu_active", "dcb"} - {key}
    assert port[key] is not None
    assert {port[other] for other in others} == {None}


def test_without_rdma_there_are_no_devices_and_no_nics(machine: Any) -> None:
    found = gather(machine, NO_PROGRAMS)
    assert (found["rdma_devices"], found["rdma_nics_without_driver"]) == ([], [])


def test_the_program_rdma_completes_the_values_of_sysfs(machine: Any) -> None:
    machine.port(machine.rdma("mlx5_0"), state="", phys_state="0: <unknown>", link_layer="", lid="", sm_lid="")
    (device,) = gather(machine)["rdma_devices"]
    (port,) = device["ports"]
    assert (device["firmware"], device["node_guid"]) == ("0.0.1", "0000:0000:0000:0001")
    assert (port["state"], port["physical_state"], port["netdev"]) == ("DOWN", "Sleep", "other")
    assert (port["lid"], port["link_layer"]) == (9, "InfiniBand")


def test_devices_that_only_the_program_rdma_lists_are_found(machine: Any) -> None:
    link = '[{"ifname": "mlx5_9/2", "state": "ACTIVE", "physical_state": "LINK_UP", "netdev": "ens9"}]'
    device = '[{"ifname": "mlx5_9", "protocol": "roce", "node_type": "ca"}, {"ifname": "mlx5_8"}]'
    found = gather(machine, run=answering(rdma_link=link, rdma_dev=device))["rdma_devices"]
    assert [(one["name"], one["node_type"], len(one["ports"])) for one in found] == [
        ("mlx5_8", None, 0),
        ("mlx5_9", "CA", 1),
    ]
    port = found[1]["ports"][0]
    assert (port["port"], port["state"], port["physical_state"]) == (2, "ACTIVE", "LinkUp")
    assert (port["link_layer"], port["netdev"], port["rate_gbps"]) == ("Ethernet", "ens9", None)


@pytest.mark.parametrize(
    ("outcome", "kind", "words"),
    [
        (Outcome(None, failure="timeout", message="rdma did not end within 1 s"), "timeout", "within 1 s"),
        (Outcome(None, failure="not_installed", message="rdma is not installed"), "not_installed", "not installed"),
        (Outcome(1, "", "Failed to open NETLINK_RDMA socket\n"), "no_rdma_subsystem", "NETLINK_RDMA"),
        (Outcome(1, "[]", "Wrong device name\n"), "failed", "exit status 1: Wrong device name"),
        (Outcome(-11), "failed", "exit status -11: without a message"),
        (Outcome(0, "[{"), "malformed_output", "rdma"),
    ],
)
def test_a_program_that_fails_leaves_the_facts_of_sysfs(node: Any, outcome: Outcome, kind: str, words: str) -> None:
    for failing in (answering(rdma_link=outcome), answering(rdma_dev=outcome)):
        found = gather(node, run=failing)
        status = found["rdma_tools"]["rdma"]
        assert status["ok"] is False and status["error"]["kind"] == kind and words in status["error"]["message"]
        assert found["rdma_devices"] == gather(node)["rdma_devices"]


def test_if_all_programs_hang_no_command_runs_twice(node: Any) -> None:
    asked = []

    def run(command: Sequence[str]) -> Outcome:
        asked.append("python" if command[0] == "python" else " ".join(command))
        return Outcome(None, failure="timeout", message="no")

    gather(node, run=run)
    dcb = [f"dcb -j {part} show dev ens1" for part in ("pfc", "ets", "app", "dcbx")]
    assert asked == ["rdma -j link", "ibv_devinfo", "ip -j -d address", "python", *dcb]


def test_mtus_and_addresses_are_unknown_without_their_programs(node: Any) -> None:
    broken = answering(ibv_devinfo_ibv_devinfo=Outcome(255, "", "No IB devices found"), ip_address="[{}]")
    found = gather(node, run=broken)
    port = found["rdma_devices"][0]["ports"][0]
    assert port["mtu_active"] is port["mtu_max"] is port["netdev_addresses"] is None
    assert found["rdma_tools"]["ibv_devinfo"]["error"]["kind"] == "no_devices"
    assert found["rdma_tools"]["ip"]["error"]["kind"] == "malformed_output"


def test_the_output_of_ibv_devinfo_before_its_failure_counts(node: Any) -> None:
    answer = Outcome(1, str(ANSWERS["ibv_devinfo"]), "Failed to query device props")
    found = gather(node, run=answering(ibv_devinfo_ibv_devinfo=answer))
    assert found["rdma_devices"][0]["ports"][0]["mtu_active"] == 1024
    assert found["rdma_tools"]["ibv_devinfo"]["ok"] is False


def test_the_network_device_of_a_port_is_found_by_the_ports_number(machine: Any) -> None:
    function = machine.pci("0000:1a:00.0", driver="mlx4_core")
    machine.netdev("ib0", function, dev_port="0", mtu="2044")
    machine.netdev("ib1", function, dev_port="1")
    machine.netdev("ib0.8001", function, dev_port="0", parent="ib0")
    device = machine.rdma("mlx4_0", function)
    for number in (1, 2, 3):
        machine.port(device, number, link_layer="InfiniBand")
    ports = gather(machine, NO_PROGRAMS)["rdma_devices"][0]["ports"]
    assert [(port["netdev"], port["netdev_mtu"]) for port in ports] == [("ib0", 2044), ("ib1", 9000), (None, None)]


def test_of_two_possible_network_devices_of_a_port_none_is_chosen(machine: Any) -> None:
    function = machine.pci("0000:1a:00.0", driver="mlx5_core")
    machine.netdev("ens1", function)
    machine.netdev("ens1_0", function)
    machine.port(machine.rdma("mlx5_0", function))
    assert gather(machine, NO_PROGRAMS)["rdma_devices"][0]["ports"][0]["netdev"] is None


def test_with_one_numa_node_every_gpu_is_on_it(node: Any) -> None:
    node.write("sys/devices/system/node/online", "0")
    node.gpu("0000:c1:00.0", "pci0000:c0/0000:c0:01.0", numa_node="-1")
    node.pci("0000:c8:00.0", "pci0000:c8/0000:c8:01.0", numa_node="-1", driver="mlx5_core")
    node.rdma("mlx5_1", "sys/devices/pci0000:c8/0000:c8:01.0/0000:c8:00.0")
    device = gather(node)["rdma_devices"][1]
    assert (device["nearest_gpu_distance"], len(device["nearest_gpus"])) == ("NODE", 3)


def test_the_kernel_has_rdma_if_sysfs_has_a_device(machine: Any) -> None:
    assert not facts.has_rdma(machine.root)
    machine.rdma("rxe0")
    assert facts.has_rdma(machine.root)


@given(st.binary(max_size=80), st.integers(0, 2**32))
def test_mangled_files_and_answers_are_no_exception(mangled_node: Any, noise: bytes, seed: int) -> None:
    files = sorted(path for path in mangled_node.root.rglob("*") if path.is_file())
    originals = {path: path.read_bytes() for path in random.Random(seed).sample(files, 6)}
    try:
        for path, original in originals.items():
            path.write_bytes(original[: seed % (len(original) + 1)] + noise)
        text = noise.decode(errors="replace")
        run = answering(rdma_link=text, rdma_dev=text, ibv_devinfo_ibv_devinfo=text, ip_address=text)
        json.dumps(gather(mangled_node, run=run), allow_nan=False)
    finally:
        for path, original in originals.items():
            path.write_bytes(original)


def test_a_port_of_infiniband_has_no_settings_of_ethernet(machine: Any) -> None:
    function = machine.pci("0000:1a:00.0", driver="mlx5_core")
    machine.netdev("ib0", function)
    machine.port(machine.rdma("mlx5_0", function), link_layer="InfiniBand")
    machine.write("sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos", "0")
    machine.write("sys/class/infiniband/mlx5_0/ports/1/pkeys/0", "0xffff")
    port = gather(machine)["rdma_devices"][0]["ports"][0]
    assert port["dcb"] is port["rdma_cm_tos"] is None and port["netdev_managers"] == []
    assert port["partition_keys"] == ["0xffff"]
