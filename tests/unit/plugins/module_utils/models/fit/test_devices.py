# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices by a text, and by the facts of GPUs."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu.products import PRODUCTS
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit import devices
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.devices import Device

GPUS = [
    {
        "index": 0,
        "uuid": "GPU-0000",
        "product": "H100-80GB",
        "compute_capability": "9.0",
        "memory_total_mib": 81559,
        "memory_reserved_mib": 559,
        "mig_devices": [],
    },
    {
        "index": 1,
        "uuid": "GPU-1111",
        "product": None,
        "name": "NVIDIA Unheard-Of",
        "compute_capability": None,
        "memory_total_mib": None,
        "memory_reserved_mib": None,
        "mig_devices": [{"index": 3, "uuid": "MIG-2222", "profile": "1g.10gb", "memory_total_mib": 9856}],
    },
]


def test_a_text_names_gpus_of_the_hardware_table() -> None:
    found = devices.hypothetical("8xH100-80GB")
    assert found == [Device("H100-80GB", 81559, (9, 0))] * 8
    assert [device.name for device in devices.hypothetical("2x l4, t4")] == ["L4", "L4", "T4"]
    assert devices.hypothetical("4 × L40S")[0].capability == "8.9"
    for product in PRODUCTS:
        assert devices.hypothetical(f"2x{product.product}")[1].memory_mib == product.memory_mib


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("8xH100-80G", "did you mean 'H100-80GB'"),
        ("RTX 4090", "did you mean 'RTX-4090'"),
        ("", "known: "),
        ("0xL4", "must be 1 to 1024"),
        ("99999xL4", "must be 1 to 1024"),
        ("4xL4,", "known: "),
    ],
)
def test_an_unknown_gpu_or_number_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        devices.hypothetical(text)


def test_a_gpu_without_a_driver_has_the_memory_of_its_product() -> None:
    """The facts do not guess the memory. A plan needs it before the node has a driver."""
    bare = {"index": None, "product": "H100-80GB", "compute_capability": "9.0", "memory_total_mib": None}
    assert devices.from_facts([{**bare, "reported": False}]) == [Device("H100-80GB", 81559, (9, 0))]
    assert devices.from_facts([{**bare, "reported": False, "product": None, "name": "x"}])[0].memory_mib is None
    # nvidia-smi reports this GPU without its memory: that is a fault of the GPU.
    assert devices.from_facts([{**bare, "reported": True}])[0].memory_mib is None


def test_without_a_driver_uuids_and_mig_devices_are_unknown() -> None:
    bare = {"index": None, "product": "L4", "compute_capability": "8.9", "memory_total_mib": None, "reported": False}
    l4, unknown = Device("L4", 23034, (8, 9)), Device("GPU", None)
    assert devices.from_facts([bare, bare], ["GPU-1111", "1", "0:3"]) == [unknown, l4, unknown]
    with pytest.raises(ValueError, match="has no GPU '2'"):
        devices.from_facts([bare, bare], ["2"])
    with pytest.raises(ValueError, match="has no GPU 'GPU-1111'"):
        devices.from_facts([{**bare, "index": 0, "uuid": "GPU-0000", "reported": True}, bare], ["GPU-1111"])


def test_the_gpus_of_a_node_come_from_its_facts() -> None:
    first, second = devices.from_facts(GPUS)
    # CUDA does not get the memory that the driver reserves.
    assert first == Device("H100-80GB", 81000, (9, 0))
    assert second == Device("NVIDIA Unheard-Of", None, None)
    assert devices.from_facts(GPUS, ["GPU-1111", "0"]) == [second, first]
    assert devices.from_facts(GPUS, ["MIG-2222"]) == [Device("NVIDIA Unheard-Of 1g.10gb", 9856, None)]
    assert devices.from_facts(GPUS, ["1:3"]) == devices.from_facts(GPUS, ["MIG-2222"])
    assert devices.from_facts([], None) == []
    with pytest.raises(ValueError, match="has no GPU '5'"):
        devices.from_facts(GPUS, ["5"])


def test_a_name_that_several_gpus_share_is_refused_with_their_names() -> None:
    with pytest.raises(ValueError, match="several GPUs: H100-80GB, H100-PCIe-80GB or H100-NVL"):
        devices.hypothetical("8xH100")
    # The beginning of a name is enough if one product alone has it.
    assert devices.hypothetical("2xh100-pcie")[0].name == "H100-PCIe-80GB"
    assert devices.hypothetical("H200-NVL")[0].memory_mib == 143771
    assert devices.hypothetical("H200")[0].name == "H200"
