# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of PCI functions, of rdma_cm and of the IOMMU."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware import pci
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma import settings
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.test_pci_config import space


def test_without_its_registers_only_the_link_of_a_function_is_known(machine: Any) -> None:
    machine.pci(
        "0000:1a:00.0",
        current_link_speed="32.0 GT/s PCIe",
        current_link_width="8",
        max_link_speed="32.0 GT/s PCIe",
        max_link_width="16",
    )
    assert settings.pcie(machine.root, "0000:1a:00.0") == settings.Pcie(5, 8, 5, 16, None, None, None, [], None)


def test_the_bridge_above_a_gpu_is_found_if_nic_and_gpu_share_a_switch(machine: Any) -> None:
    """The GPU's answers enter the switch at this bridge, whose ACS sends the answers to the CPU."""
    switch = "pci0000:10/0000:10:01.0/0000:11:00.0"
    ports = {"0000:12:00.0": switch, "0000:12:01.0": switch, "0000:10:02.0": "pci0000:10"}
    for address, above in (*ports.items(), ("0000:10:01.0", "pci0000:10")):
        (machine.root / machine.pci(address, above) / "config").write_bytes(space(acs=0x1D))
    machine.pci("0000:13:00.0", f"{switch}/0000:12:00.0")
    machine.gpu("0000:14:00.0", f"{switch}/0000:12:01.0")
    machine.gpu("0000:15:00.0", "pci0000:10/0000:10:02.0")
    gpus = pci.nvidia_gpus(machine.root)
    found = settings.pcie(machine.root, "0000:13:00.0", gpus).acs_bridges
    assert found == ["0000:10:01.0", "0000:12:00.0", "0000:12:01.0"]


def test_an_iommu_group_of_type_identity_is_passthrough(machine: Any) -> None:
    function = machine.pci("0000:1a:00.0")
    machine.write("sys/kernel/iommu_groups/7/type", "identity")
    machine.link(f"{function}/iommu_group", "sys/kernel/iommu_groups/7")
    assert settings.pcie(machine.root, "0000:1a:00.0").iommu == settings.PASSTHROUGH


def test_mode_and_type_of_service_of_rdma_cm_are_read(machine: Any) -> None:
    assert settings.rdma_cm(machine.root, "rocep26s0", 1) == (None, None)
    machine.write(f"{settings.RDMA_CM}/rocep26s0/ports/1/default_roce_mode", "RoCE v2")
    machine.write(f"{settings.RDMA_CM}/rocep26s0/ports/1/default_roce_tos", "106")
    assert settings.rdma_cm(machine.root, "rocep26s0", 1) == ("RoCE v2", 106)


def test_partition_keys_without_empty_entries_are_read(machine: Any) -> None:
    assert settings.partition_keys(machine.root, "ibp26s0", 1) is None
    for index, key in enumerate(("0xffff", "0x0000", "0x8001", "0x0002", "")):
        machine.write(f"sys/class/infiniband/ibp26s0/ports/1/pkeys/{index}", key)
    assert settings.partition_keys(machine.root, "ibp26s0", 1) == ["0xffff", "0x8001", "0x0002"]


@pytest.mark.parametrize(
    ("cmdline", "passthrough"),
    [("ro quiet iommu=pt", True), ("iommu.passthrough=1", True), ("intel_iommu=pt xiommu=pt", False), ("", False)],
)
def test_iommu_passthrough_comes_from_the_command_line_of_the_kernel(
    machine: Any, cmdline: str, passthrough: bool
) -> None:
    machine.write("proc/cmdline", cmdline)
    assert settings.iommu(machine.root) == settings.Iommu(0, passthrough, [])


def test_functions_with_the_driver_vfio_pci_are_given_away(machine: Any) -> None:
    for number in (0, 1):
        machine.write(f"sys/kernel/iommu_groups/{number}/type", "DMA-FQ")
    machine.write("sys/bus/pci/drivers/vfio-pci/0000:3b:00.0/class", "0x020000")
    machine.write("sys/bus/pci/drivers/vfio-pci/new_id", "")
    assert settings.iommu(machine.root) == settings.Iommu(2, False, ["0000:3b:00.0"])
