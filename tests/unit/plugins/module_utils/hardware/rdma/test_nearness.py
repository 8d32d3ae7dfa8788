# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Distances in the PCI tree, as `nvidia-smi topo -m` names them."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware import pci
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma import nearness

ROOT = "pci0000:10/0000:10:01.0"
SWITCH = f"{ROOT}/0000:11:00.0"
"""The upstream bridge of a switch below a root port."""

OTHER_PORT = "pci0000:10/0000:10:03.0/0000:31:00.0/0000:32:00.0"
OTHER_ROOT = "pci0000:40/0000:40:01.0"
FAR = "pci0000:90/0000:90:01.0"


@pytest.fixture
def nic(machine: Any) -> pci.Device:
    machine.pci("0000:1a:00.0", f"{SWITCH}/0000:12:00.0")
    return pci.device(machine.root, "0000:1a:00.0")


@pytest.mark.parametrize(
    ("bridges", "node", "distance"),
    [
        (f"{SWITCH}/0000:12:01.0", "0", "PIX"),
        (f"{SWITCH}/0000:12:02.0/0000:20:00.0", "0", "PXB"),
        (f"{SWITCH}/0000:12:02.0/0000:20:00.0/0000:21:00.0", "0", "PXB"),
        (f"{SWITCH}/0000:12:02.0/0000:20:00.0/0000:21:00.0", "-1", "PXB"),
        (OTHER_PORT, "0", "PHB"),
        ("pci0000:10", "0", "PHB"),
        (OTHER_ROOT, "0", "NODE"),
        (FAR, "1", "SYS"),
        (FAR, "-1", None),
    ],
)
def test_the_distance_of_two_functions_is_that_of_nvidia_smi(
    machine: Any, nic: pci.Device, bridges: str, node: str, distance: str | None
) -> None:
    machine.gpu("0000:1b:00.0", bridges, numa_node=node)
    gpu = pci.device(machine.root, "0000:1b:00.0")
    assert nearness.distance(nic, gpu) == nearness.distance(gpu, nic) == distance


def test_functions_below_one_port_without_a_switch_are_at_the_least_distance(machine: Any) -> None:
    machine.pci("0000:1a:00.0", ROOT)
    machine.gpu("0000:1a:00.1", ROOT)
    nic, gpu = pci.devices(machine.root)
    assert nearness.distance(nic, gpu) == "PIX"


def test_on_a_machine_with_one_numa_node_an_unknown_numa_node_does_not_matter(machine: Any, nic: pci.Device) -> None:
    machine.gpu("0000:1b:00.0", FAR, numa_node="-1")
    assert nearness.distance(nic, pci.device(machine.root, "0000:1b:00.0"), one_node=True) == "NODE"


def test_several_gpus_can_be_nearest(machine: Any, nic: pci.Device) -> None:
    machine.gpu("0000:1b:00.0", OTHER_PORT)
    machine.gpu("0000:1c:00.0", FAR, numa_node="1")
    machine.gpu("0000:1d:00.0", OTHER_PORT.replace("32", "33"))
    assert nearness.nearest(nic, pci.nvidia_gpus(machine.root)) == (["0000:1b:00.0", "0000:1d:00.0"], "PHB")
    machine.gpu("0000:1e:00.0", f"{SWITCH}/0000:12:01.0")
    assert nearness.nearest(nic, pci.nvidia_gpus(machine.root)) == (["0000:1e:00.0"], "PIX")


def test_without_a_known_distance_no_gpu_is_nearest(machine: Any, nic: pci.Device) -> None:
    assert nearness.nearest(nic, []) == ([], None)
    machine.gpu("0000:1b:00.0", FAR, numa_node="-1")
    assert nearness.nearest(nic, [pci.device(machine.root, "0000:1b:00.0")]) == ([], None)
