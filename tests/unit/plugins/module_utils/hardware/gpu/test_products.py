# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Products and generations of GPUs, for nodes without a driver."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import products


@pytest.mark.parametrize(
    ("device", "product", "memory"),
    [
        (0x2330, "H100-80GB", 81559),
        (0x20B5, "A100-PCIe-80GB", 81920),
        (0x26B9, "L40S", 46068),
        (0x1DF6, "V100S-32GB", 32768),
    ],
)
def test_a_pci_device_id_names_product_and_memory(device: int, product: str, memory: int) -> None:
    found = products.by_device(device)
    assert found is not None and (found.product, found.memory_mib) == (product, memory)


def test_an_unknown_device_has_no_product() -> None:
    assert products.by_device(0x0001) is None
    assert products.by_device(None) is None


@pytest.mark.parametrize("name", ["Tesla T4", "NVIDIA T4", "nvidia tesla t4", "T4"])
def test_the_brand_in_a_name_makes_no_difference(name: str) -> None:
    found = products.by_name(name)
    assert found is not None and found.product == "T4"


def test_an_unknown_name_has_no_product() -> None:
    assert products.by_name("NVIDIA X9000") is None
    assert products.by_name(None) is None


@pytest.mark.parametrize(
    ("device", "name", "architecture", "capability"),
    [
        (0x2330, None, None, "9.0"),
        (None, "NVIDIA GeForce RTX 4090", None, "8.9"),
        (None, "NVIDIA A100-SXM4-80GB", None, "8.0"),
        (None, "NVIDIA A10", None, "8.6"),
        # The architecture that nvidia-smi reports counts more than the id of the device.
        (0x2330, "NVIDIA H100", "Blackwell", None),
        (None, None, "Hopper", "9.0"),
        (None, None, "Ampere", None),
        (0x0001, None, None, None),
    ],
)
def test_the_generation_is_found_by_device_name_or_architecture(
    device: int | None, name: str | None, architecture: str | None, capability: str | None
) -> None:
    found = products.generation(device, name, architecture)
    assert (found.compute_capability if found else None) == capability


@pytest.mark.parametrize("product", products.PRODUCTS, ids=lambda product: product.product)
def test_every_product_has_a_generation_that_its_name_finds_too(product: products.Product) -> None:
    assert product.generation is not None
    assert product.architecture == product.generation.architecture
    assert products.generation(None, product.name) == product.generation


def test_no_two_products_share_a_device_or_a_name() -> None:
    assert len(products.BY_DEVICE) == sum(len(product.device_ids) for product in products.PRODUCTS)
    assert len(products.BY_PRODUCT) == len(products.BY_NAME) == len(products.PRODUCTS)
