# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Registers in the configuration space of PCI functions."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware import pci_config


def space(control: int | None = 0x2950, acs: int | None = None, size: int = 4096) -> bytes:
    """A configuration space with power management and PCIe, and then ACS after AER."""
    data = bytearray(size)
    data[0x34] = 0x40
    data[0x40:0x42] = bytes([0x01, 0x60 if control is not None else 0])
    if control is not None:
        data[0x60:0x62] = bytes([0x10, 0])
        data[0x68:0x6A] = control.to_bytes(2, "little")
    if size > 256:
        after = 0x148 if acs is not None else 0
        data[0x100:0x104] = (0x0001 | 1 << 16 | after << 20).to_bytes(4, "little")
    if acs is not None:
        data[0x148:0x14C] = (0x000D | 1 << 16).to_bytes(4, "little")
        data[0x14E:0x150] = acs.to_bytes(2, "little")
    return bytes(data)


@pytest.mark.parametrize(
    ("control", "read_request", "payload", "relaxed"),
    [(0x2950, 512, 512, True), (0x5030, 4096, 256, True), (0x0000, 128, 128, False), (0x7000, None, 128, False)],
)
def test_the_settings_of_a_function_are_read_from_its_registers(
    control: int, read_request: int | None, payload: int, relaxed: bool
) -> None:
    found = pci_config.settings(space(control))
    assert (found.max_read_request, found.max_payload, found.relaxed_ordering) == (read_request, payload, relaxed)
    assert pci_config.device_control(space(control)) == pci_config.Register(0x68, control)


@pytest.mark.parametrize("data", [b"", space(None), space()[:64], b"\xff" * 4096, bytes(4096)])
def test_without_pcie_or_without_root_all_settings_are_none(data: bytes) -> None:
    assert pci_config.settings(data) == pci_config.Settings(None, None, None)


def test_acs_is_found_only_in_an_extended_space_with_this_capability() -> None:
    assert pci_config.acs_control(space(acs=0x1D)) == pci_config.Register(0x14E, 0x1D)
    assert pci_config.acs_control(space()) is None
    assert pci_config.acs_control(space(size=256)) is None


def test_only_bridges_whose_acs_redirects_are_found(tmp_path: Path) -> None:
    spaces = {"0000:10:01.0": 0x1D, "0000:11:00.0": 0x00, "0000:12:00.0": None, "0000:13:00.0": 0x40}
    for address, acs in spaces.items():
        path = tmp_path / f"sys/bus/pci/devices/{address}/config"
        path.parent.mkdir(parents=True)
        path.write_bytes(space(acs=acs))
    bridges = ("pci0000:10", *spaces, "0000:99:00.0")
    assert pci_config.redirecting(tmp_path, bridges) == ["0000:10:01.0"]


@given(st.binary(max_size=300), st.integers(0, 4095))
def test_damaged_spaces_are_no_exception(noise: bytes, at: int) -> None:
    data = space(acs=0x1D)
    data = (data[:at] + noise + data[at + len(noise) :])[:4096]
    pci_config.settings(data)
    pci_config.acs_control(data)
