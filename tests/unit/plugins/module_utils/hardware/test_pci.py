# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI devices in a sysfs that the tests make."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware import pci


def add_device(root: Path, address: str, bridges: str = "pci0000:15/0000:15:01.0", **attributes: str) -> Path:
    """A device below a root, in the layout of the kernel: a directory, and a link to it from the bus."""
    real = root / "sys/devices" / bridges / address
    real.mkdir(parents=True)
    driver = attributes.pop("driver", None)
    for name, text in attributes.items():
        (real / name).write_text(f"{text}\n")
    if driver:
        (real / "driver").symlink_to(f"../../../../bus/pci/drivers/{driver}")
    bus = root / pci.DEVICES
    bus.mkdir(parents=True, exist_ok=True)
    (bus / address).symlink_to(real)
    return real


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("0000:1b:00.0", "0000:1b:00.0"),
        ("00000000:1B:00.0", "0000:1b:00.0"),
        ("00001580:00:00.0", "1580:00:00.0"),
        ("10000:e1:00.0", "10000:e1:00.0"),
        ("1B:00.1", "0000:1b:00.1"),
        ("0000:1b:00", "0000:1b:00.0"),
        (" 0:1:2.3\n", "0000:01:02.3"),
        ("0000:1b:20.0", None),
        ("0000:1b:00.8", None),
        ("1b", None),
        ("N/A", None),
        ("", None),
    ],
)
def test_the_usual_forms_of_a_pci_address_are_normalised(text: str, normal: str | None) -> None:
    assert pci.normalise(text) == normal


@given(st.integers(0, 0xFFFFFFFF), st.integers(0, 255), st.integers(0, 31), st.integers(0, 7))
def test_a_long_form_in_upper_case_is_the_same_address(domain: int, bus: int, slot: int, function: int) -> None:
    short = f"{domain:04x}:{bus:02x}:{slot:02x}.{function}"
    assert pci.normalise(short) == pci.normalise(f"{domain:08X}:{bus:02X}:{slot:02X}.{function}") == short


@given(st.text())
def test_any_text_is_normalised_or_none(text: str) -> None:
    normal = pci.normalise(text)
    assert normal is None or pci.normalise(normal) == normal


def test_all_attributes_of_a_gpu_are_read(tmp_path: Path) -> None:
    add_device(
        tmp_path,
        "0000:16:00.0",
        vendor="0x10de",
        device="0x2330",
        subsystem_vendor="0x10de",
        subsystem_device="0x16c1",
        revision="0xa1",
        **{"class": "0x030200"},
        numa_node="1",
        current_link_speed="16.0 GT/s PCIe",
        current_link_width="8",
        max_link_speed="32.0 GT/s PCIe",
        max_link_width="16",
        driver="nvidia",
    )
    assert pci.devices(tmp_path) == [
        pci.Device(
            address="0000:16:00.0",
            vendor=0x10DE,
            device=0x2330,
            subsystem_vendor=0x10DE,
            subsystem_device=0x16C1,
            class_code=0x0302,
            driver="nvidia",
            numa_node=1,
            link=pci.Link(gen=4, width=8, gen_max=5, width_max=16),
            lost=False,
            upstream=("pci0000:15", "0000:15:01.0"),
        )
    ]
    assert pci.nvidia_gpus(tmp_path) == pci.devices(tmp_path)


@pytest.mark.parametrize(
    ("vendor", "kind", "gpu", "switch"),
    [
        ("0x10de", "0x030000", True, False),
        ("0x10de", "0x030200", True, False),
        ("0x10de", "0x040300", False, False),
        ("0x10de", "0x068000", False, True),
        ("0x1a03", "0x030000", False, False),
        ("0x1a03", "0x068000", False, False),
    ],
)
def test_gpus_and_nvswitches_are_known_by_their_class(
    tmp_path: Path, vendor: str, kind: str, gpu: bool, switch: bool
) -> None:
    add_device(tmp_path, "0000:16:00.0", vendor=vendor, **{"class": kind})
    assert bool(pci.nvidia_gpus(tmp_path)) is gpu
    assert pci.nvswitches(tmp_path) == (["0000:16:00.0"] if switch else [])


def test_only_nics_with_sw_mng_in_their_vpd_manage_nvswitches(tmp_path: Path) -> None:
    kind = {"vendor": "0x15b3", "device": "0x1021", "class": "0x020700"}
    for number, marked in enumerate((True, False)):
        vpd = add_device(tmp_path, f"0000:1{number}:00.0", **kind) / "vpd"
        vpd.write_bytes(b"\x82\x0b\x00ConnectX-7\x90\xff\xffV3\x20" + b"SMDL=SW_MNG" * marked + b"\xff")
    # A NIC without vital product data, and a device of another maker.
    add_device(tmp_path, "0000:12:00.0", **kind)
    add_device(tmp_path, "0000:13:00.0", **{**kind, "vendor": "0x10de"})
    assert pci.nvswitch_managers(tmp_path) == ["0000:10:00.0"]


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"numa_node": "-1", "current_link_speed": "Unknown", "current_link_width": "63", "max_link_width": "255"},
        {"vendor": "", "class": "?", "numa_node": "none", "max_link_speed": "7.7 GT/s", "max_link_width": "0"},
    ],
)
def test_unknown_attributes_are_none(tmp_path: Path, attributes: dict[str, str]) -> None:
    add_device(tmp_path, "0000:16:00.0", **attributes)
    (device,) = pci.devices(tmp_path)
    assert device.numa_node is device.vendor is device.class_code is device.driver is None
    assert device.link == pci.Link(None, None, None, None)
    assert not device.lost and pci.nvidia_gpus(tmp_path) == []


def test_a_device_whose_registers_read_as_ones_is_lost(tmp_path: Path) -> None:
    real = add_device(tmp_path, "0000:16:00.0", revision="0xa1")
    (real / "config").write_bytes(bytes.fromhex("de103023") + bytes(60))
    add_device(tmp_path, "0000:17:00.0", revision="0xff")
    gone = add_device(tmp_path, "0000:18:00.0", revision="0xa1")
    (gone / "config").write_bytes(b"\xff" * 64)
    assert [(device.address, device.lost) for device in pci.devices(tmp_path)] == [
        ("0000:16:00.0", False),
        ("0000:17:00.0", True),
        ("0000:18:00.0", True),
    ]


def test_devices_are_in_the_order_of_the_bus(tmp_path: Path) -> None:
    for address in ("10000:01:00.0", "0001:00:00.0", "0000:9b:00.0", "0000:1b:00.1", "0000:1b:00.0"):
        add_device(tmp_path, address)
    (tmp_path / pci.DEVICES / "no-address").mkdir()
    assert [device.address for device in pci.devices(tmp_path)] == [
        "0000:1b:00.0",
        "0000:1b:00.1",
        "0000:9b:00.0",
        "0001:00:00.0",
        "10000:01:00.0",
    ]


def test_without_pci_there_are_no_devices(tmp_path: Path) -> None:
    assert pci.devices(tmp_path) == []


def restore(tree: Path, to: Path) -> Path:
    """A copy of a recorded tree. The recording has files with targets in place of links; the copy has the links."""
    shutil.copytree(tree, to)
    for path in [path for path in to.rglob("*") if path.is_file()]:
        target = path.read_bytes()
        if target.startswith(b"../"):
            path.unlink()
            path.symlink_to(target.decode().strip())
    return to


@pytest.mark.recordings("lspci")
def test_the_gpus_of_recorded_trees_are_found(recording: Any, tmp_path: Path) -> None:
    if not recording.path.is_dir():
        pytest.skip("text of lspci, which is not read")
    gpus = pci.nvidia_gpus(restore(recording.path, tmp_path / "root"))
    assert len(gpus) == recording.expected["nvidia_gpus"]
    for gpu, expected in zip(gpus, recording.expected["gpus"], strict=True):
        assert gpu.address == expected["slot"]
        assert gpu.driver == expected["driver"]
        assert gpu.device == int(expected["device"], 16)
        assert (-1 if gpu.numa_node is None else gpu.numa_node) == expected["numa_node"]
