# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads settings in the configuration space of PCI functions. Private to the collection.

Only root can read beyond the first 64 bytes. Offsets of registers are those of linux/pci_regs.h.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core import sysfs
from . import pci

SPACE = 4096
"""Bytes of the configuration space of a PCIe function."""

FIRST_CAPABILITY, PCIE = 0x34, 0x10
"""Offset of the pointer to the first capability, and the number of the capability of PCIe."""

EXTENDED, ACS = 0x100, 0x000D
"""Offset of the first extended capability, and the number of Access Control Services."""

DEVICE_CONTROL, ACS_CONTROL = 8, 6
"""Offsets of the control registers, from the start of their capability."""

RELAXED_ORDERING = 1 << 4
READ_REQUEST_SHIFT, PAYLOAD_SHIFT, SIZE_MASK = 12, 5, 7
"""The fields of the device control register. A size of 2 means 128 << 2 bytes."""

SIZES = (128, 256, 512, 1024, 2048, 4096)
"""Bytes of a read request or of a payload, by the number in the register."""

ACS_REDIRECTS = 0x1D
"""Source validation, request redirect, completion redirect, and upstream forwarding. With one of them, packets between
two functions below a switch take the way through the CPU, or are dropped."""


@dataclass(frozen=True)
class Register:
    """A 16-bit register: its offset in the configuration space, and its value."""

    offset: int
    value: int


@dataclass(frozen=True)
class Settings:
    """Settings of a PCI function for its transfers. None if unknown."""

    max_read_request: int | None
    """Bytes that the function requests at once."""
    max_payload: int | None
    """Bytes of data in a packet."""
    relaxed_ordering: bool | None
    """Whether the function may mark its packets so that they may overtake earlier packets."""


def read(root: Path, address: str) -> bytes:
    """The configuration space of a function: 64 bytes without root's rights, empty if the function is missing."""
    return sysfs.read_bytes(root / pci.DEVICES / address / "config", limit=SPACE) or b""


def device_control(space: bytes) -> Register | None:
    """The device control register; None if the function is not PCIe, or the known bytes end before the register."""
    start = next((offset for offset, number in _capabilities(space) if number == PCIE), None)
    return None if start is None else _register(space, start + DEVICE_CONTROL)


def acs_control(space: bytes) -> Register | None:
    """The control register of Access Control Services; None for a function without them, or if the known bytes end
    before the register."""
    start = next((offset for offset, number in _extended(space) if number == ACS), None)
    return None if start is None else _register(space, start + ACS_CONTROL)


def settings(space: bytes) -> Settings:
    """The settings in a configuration space."""
    register = device_control(space)
    if register is None:
        return Settings(None, None, None)
    return Settings(
        max_read_request=_size(register.value >> READ_REQUEST_SHIFT),
        max_payload=_size(register.value >> PAYLOAD_SHIFT),
        relaxed_ordering=bool(register.value & RELAXED_ORDERING),
    )


def redirecting(root: Path, bridges: Sequence[str]) -> list[str]:
    """The bridges that redirect packets between functions below them by Access Control Services."""
    found = []
    for address in filter(None, map(pci.normalise, bridges)):
        register = acs_control(read(root, address))
        if register and register.value & ACS_REDIRECTS:
            found.append(address)
    return found


def _capabilities(space: bytes) -> Iterator[tuple[int, int]]:
    """Offset and number of each capability. A damaged list, with a loop, ends."""
    offset = space[FIRST_CAPABILITY] & ~3 if len(space) > FIRST_CAPABILITY else 0
    seen: set[int] = set()
    while FIRST_CAPABILITY < offset < len(space) - 1 and offset not in seen:
        seen.add(offset)
        yield offset, space[offset]
        offset = space[offset + 1] & ~3


def _extended(space: bytes) -> Iterator[tuple[int, int]]:
    """Offset and number of each extended capability. A damaged list, with a loop, ends."""
    offset = EXTENDED
    seen: set[int] = set()
    while EXTENDED <= offset <= len(space) - 4 and offset not in seen:
        seen.add(offset)
        header = int.from_bytes(space[offset : offset + 4], "little")
        if header in (0, 0xFFFFFFFF):
            return
        yield offset, header & 0xFFFF
        offset = header >> 20 & ~3


def _register(space: bytes, offset: int) -> Register | None:
    data = space[offset : offset + 2]
    return Register(offset, int.from_bytes(data, "little")) if len(data) == 2 else None


def _size(number: int) -> int | None:
    number &= SIZE_MASK
    return SIZES[number] if number < len(SIZES) else None
