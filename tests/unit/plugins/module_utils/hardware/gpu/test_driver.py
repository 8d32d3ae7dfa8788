# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loaded driver and the installed one, and the tables of products."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import driver, products
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu.models import Gpu

OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (a@b)  Mo 2. Mär 2026\n"
PROPRIETARY = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.247.01  Mon Mar  2 10:00:00 UTC 2026\nGCC version: 12.2.0\n"
)


def status(*packages: tuple[str, str], state: str = "install ok installed") -> str:
    return "\n".join(
        f"Package: {name}\nStatus: {state}\nPriority: optional\nVersion: {version}\n"
        f"Description: one\n Package: nvidia-fake-dkms is only a word here\n"
        for name, version in [("bash", "5.2"), *packages, ("zlib1g", "1:1.3")]
    )


def write(root: Path, path: str, text: str = "") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (OPEN, ("580.95.05", "open")),
        (PROPRIETARY, ("535.247.01", "proprietary")),
        ("", (None, None)),
        ("NVRM version", (None, None)),
    ],
)
def test_the_banner_of_the_loaded_module_has_version_and_flavour(
    text: str, found: tuple[str | None, str | None]
) -> None:
    assert driver.loaded(text) == found


@given(st.text())
def test_any_text_is_no_exception(text: str) -> None:
    driver.loaded(text)
    driver.package(text)
    driver.package(f"Package: nvidia-{text}")


@pytest.mark.parametrize(
    ("name", "version", "flavor", "upstream"),
    [
        ("nvidia-kernel-dkms", "535.247.01-1~deb12u1", "proprietary", "535.247.01"),
        ("nvidia-open-kernel-dkms", "550.163.01-2", "open", "550.163.01"),
        ("nvidia-kernel-open-dkms", "2:580.95.05-1", "open", "580.95.05"),
        ("nvidia-tesla-470-kernel-dkms", "470.256.02-1", "proprietary", "470.256.02"),
        ("nvidia-dkms-580-open", "580.95.05", "open", "580.95.05"),
    ],
)
def test_the_package_of_the_module_has_flavour_and_upstream_version(
    name: str, version: str, flavor: str, upstream: str
) -> None:
    found = driver.package(status(("nvidia-smi", "1"), (name, version), ("nvidia-kernel-support", "2")))
    assert found == driver.Package(name, version, flavor)
    assert found.upstream == upstream


def test_a_removed_package_is_not_installed() -> None:
    assert driver.package(status(("nvidia-kernel-dkms", "1-1"), state="deinstall ok config-files")) is None


def test_of_several_packages_of_the_module_none_counts() -> None:
    assert driver.package(status(("nvidia-kernel-dkms", "1-1"), ("nvidia-open-kernel-dkms", "1-1"))) is None


@pytest.mark.parametrize(
    ("text", "installed", "matches"),
    [
        (OPEN, ("nvidia-open-kernel-dkms", "580.95.05-1"), True),
        (OPEN, ("nvidia-open-kernel-dkms", "580.105.08-1"), False),
        (OPEN, ("nvidia-kernel-dkms", "580.95.05-1"), False),
        ("", ("nvidia-kernel-dkms", "580.95.05-1"), None),
        (OPEN, ("bash-completion", "1"), None),
    ],
)
def test_the_loaded_module_is_compared_with_the_installed_package(
    tmp_path: Path, text: str, installed: tuple[str, str], matches: bool | None
) -> None:
    write(tmp_path, "proc/driver/nvidia/version", text)
    write(tmp_path, "var/lib/dpkg/status", status(installed))
    assert driver.read(tmp_path).matches_package is matches


def test_the_library_has_its_version_in_its_name(tmp_path: Path) -> None:
    assert driver.read(tmp_path) == driver.Driver(None, None, None, None)
    current = "usr/lib/x86_64-linux-gnu/nvidia/current/libnvidia-ml.so"
    write(tmp_path, f"{current}.1")
    write(tmp_path, f"{current}.580.95.05")
    assert driver.read(tmp_path).library_version == "580.95.05"
    write(tmp_path, "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.590.1")
    assert driver.read(tmp_path).library_version is None


def test_a_module_without_proc_still_has_a_version(tmp_path: Path) -> None:
    write(tmp_path, "sys/module/nvidia/version", "580.95.05\n")
    found = driver.read(tmp_path)
    assert (found.module_version, found.module_flavor) == ("580.95.05", None)


INFORMATION = """Model: \t\t NVIDIA H100 80GB HBM3
IRQ:   \t\t 44
GPU UUID: \t GPU-0a0b0c0d-1111-4222-8333-00000000001b
Video BIOS: \t ??.??.??.??.??
Device Minor: \t 3
GPU Excluded:\t {excluded}
"""


def test_the_files_of_the_module_complete_a_gpu(tmp_path: Path) -> None:
    write(tmp_path, "proc/driver/nvidia/gpus/0000:1b:00.0/information", INFORMATION.format(excluded="No"))
    gpu = Gpu(pci_bus_id="0000:1b:00.0")
    driver.information(tmp_path, gpu)
    assert gpu == Gpu(
        pci_bus_id="0000:1b:00.0",
        name="NVIDIA H100 80GB HBM3",
        uuid="GPU-0a0b0c0d-1111-4222-8333-00000000001b",
        minor_number=3,
    )
    reported = Gpu(pci_bus_id="0000:1b:00.0", name="reported", uuid="reported", minor_number=0)
    driver.information(tmp_path, reported)
    assert (reported.name, reported.uuid, reported.minor_number) == ("reported", "reported", 0)


@pytest.mark.parametrize("answer", ["Yes", "No"])
def test_a_gpu_that_a_parameter_of_the_module_excludes_is_excluded(tmp_path: Path, answer: str) -> None:
    write(tmp_path, "proc/driver/nvidia/gpus/0000:1b:00.0/information", INFORMATION.format(excluded=answer))
    assert driver.excluded(tmp_path, "0000:1b:00.0") is (answer == "Yes")
    assert not driver.excluded(tmp_path, "0000:1c:00.0")


@pytest.mark.recordings("proc_driver_nvidia")
def test_recorded_files_of_the_driver_are_read(recording: Any, tmp_path: Path) -> None:
    expected = recording.expected
    if "driver_version" in expected:
        flavor = "open" if expected["open_module"] else "proprietary"
        assert driver.loaded(recording.text()) == (expected["driver_version"], flavor)
    elif "GPU UUID" in expected:
        write(tmp_path, "proc/driver/nvidia/gpus/0000:62:00.0/information", recording.text())
        gpu = Gpu(pci_bus_id="0000:62:00.0")
        driver.information(tmp_path, gpu)
        assert (gpu.name, gpu.uuid) == (expected["Model"], expected["GPU UUID"])
        assert (gpu.minor_number, gpu.vbios_version) == (int(expected["Device Minor"]), expected["Video BIOS"])


# --- products


@pytest.mark.parametrize(
    ("device", "name", "architecture", "capability"),
    [
        (0x2330, None, None, "9.0"),
        (0x20B2, None, None, "8.0"),
        (0x2235, None, None, "8.6"),
        (0x1EB8, None, None, "7.5"),
        (0x1DB6, None, None, "7.0"),
        (0x15F8, None, None, "6.0"),
        (0x1B38, None, None, "6.1"),
        (0x26B9, None, None, "8.9"),
        (0x2901, None, None, "10.0"),
        (0x3182, None, None, "10.3"),
        (0x2BB5, None, None, "12.0"),
        (None, "NVIDIA A100-PCIE-40GB", None, "8.0"),
        (None, "NVIDIA A10", None, "8.6"),
        (None, "NVIDIA RTX PRO 6000 Blackwell", None, "12.0"),
        (None, "Tesla T4", None, "7.5"),
        (None, "an H100-like", "Hopper", "9.0"),
        (None, "unheard of", "Hopper", "9.0"),
        (None, "unheard of", "Ampere", None),
        (0x2341, "NVIDIA GB200", "Blackwell", "10.0"),
        (0xFFFF, None, None, None),
        (None, "", None, None),
    ],
)
def test_the_compute_capability_comes_from_device_name_or_architecture(
    device: int | None, name: str | None, architecture: str | None, capability: str | None
) -> None:
    generation = products.generation(device, name, architecture)
    assert (generation.compute_capability if generation else None) == capability


@pytest.mark.parametrize(
    ("name", "product"),
    [
        ("NVIDIA H100 80GB HBM3", "H100-80GB"),
        ("A100-SXM4-80GB", "A100-80GB"),
        ("NVIDIA Tesla T4", "T4"),
        ("H100", None),
        (None, None),
    ],
)
def test_a_product_is_found_by_its_name_with_and_without_the_brand(name: str | None, product: str | None) -> None:
    found = products.by_name(name)
    assert (found.product if found else None) == product


def test_the_tables_are_consistent() -> None:
    assert len(products.BY_PRODUCT) == len(products.BY_NAME) == len(products.PRODUCTS)
    assert len(products.BY_DEVICE) == sum(len(product.device_ids) for product in products.PRODUCTS)
    blocks = sorted(block for one in products.GENERATIONS for block in one.blocks)
    assert all(end < start for (_first, end), (start, _last) in itertools.pairwise(blocks))
    for product in products.PRODUCTS:
        by_name = products.generation(None, product.name)
        assert product.generation is not None and product.generation is by_name, product
        assert all(products.generation(device) is by_name for device in product.device_ids)
