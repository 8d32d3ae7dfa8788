# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of GPU products and their generations, with sources. Private to the collection."""

from __future__ import annotations

import re
from dataclasses import dataclass

PCI_IDS = "https://pci-ids.ucw.cz/read/PC/10de"
OPEN_MODULES = "https://github.com/NVIDIA/open-gpu-kernel-modules, README.md, table of compatible GPUs"
COMPUTE_CAPABILITY = "https://developer.nvidia.com/cuda-gpus and https://developer.nvidia.com/cuda-legacy-gpus"
REPORT = "nvidia-smi's own report of the card, with ECC as delivered, driver 510 or later"


@dataclass(frozen=True)
class Generation:
    """Chips of one architecture and compute capability.

    `blocks` are ranges of PCI device ids (PCI_IDS, OPEN_MODULES). `names` is an expression for nvidia-smi's names of
    the products, for unknown ids (COMPUTE_CAPABILITY).
    """

    architecture: str
    compute_capability: str
    blocks: tuple[tuple[int, int], ...]
    names: str


GENERATIONS = (
    Generation("Kepler", "3.7", ((0x102D, 0x102D),), r"K80"),
    Generation("Maxwell", "5.2", ((0x13C0, 0x143F), (0x17C2, 0x17FD)), r"M40|M60"),
    Generation("Pascal", "6.0", ((0x15F0, 0x15FF),), r"P100|GP100"),
    Generation("Pascal", "6.1", ((0x1B00, 0x1D7F),), r"P40|P4|GTX 10[1-8]0"),
    Generation("Volta", "7.0", ((0x1D81, 0x1DFF),), r"V100S?|GV100|TITAN V"),
    Generation(
        "Turing", "7.5", ((0x1E02, 0x1FFF), (0x2180, 0x21FF)), r"T4|TITAN RTX|GeForce RTX 20[5-8]0|GTX 16[1-6]0"
    ),
    Generation("Ampere", "8.0", ((0x2080, 0x20FF),), r"A100|A800|A30"),
    Generation(
        "Ampere",
        "8.6",
        ((0x2200, 0x227F), (0x2400, 0x25FF)),
        r"A40|A16|A10G?|A2|RTX A[2-6][05]00|GeForce RTX 30[5-9]0",
    ),
    Generation("Ada Lovelace", "8.9", ((0x2680, 0x28FF),), r"L40S?|L40G|L20|L4|L2|Ada Generation|GeForce RTX 40[5-9]0"),
    Generation("Hopper", "9.0", ((0x2300, 0x237F),), r"H100|H200|H800|H20|GH200"),
    Generation("Blackwell", "10.0", ((0x2900, 0x29FF),), r"B200|GB200|B100"),
    Generation("Blackwell", "10.3", ((0x3180, 0x31FF),), r"B300|GB300"),
    Generation(
        "Blackwell", "12.0", ((0x2B80, 0x2DFF), (0x2F00, 0x2FFF)), r"RTX PRO [1-6]\d00 Blackwell|GeForce RTX 50[5-9]0"
    ),
    Generation("Blackwell", "12.1", ((0x2E12, 0x2E12),), r"GB10"),
)

ONE_CAPABILITY = ("Turing", "Ada Lovelace", "Hopper")
"""Architectures whose products all have the same compute capability (COMPUTE_CAPABILITY)."""


@dataclass(frozen=True)
class Product:
    """A card: its name in plans, nvidia-smi's name, PCI device ids (OPEN_MODULES, PCI_IDS), memory in MiB (REPORT).
    The memory is None if no report was available."""

    product: str
    name: str
    device_ids: tuple[int, ...]
    memory_mib: int | None

    @property
    def generation(self) -> Generation | None:
        return generation(self.device_ids[0])

    @property
    def architecture(self) -> str | None:
        return self.generation.architecture if self.generation else None

    @property
    def compute_capability(self) -> str | None:
        return self.generation.compute_capability if self.generation else None


PRODUCTS = (
    Product("B300", "NVIDIA B300 SXM6 AC", (0x3182,), 275040),
    Product("GB300", "NVIDIA GB300", (0x31C2, 0x31C3), None),
    Product("B200", "NVIDIA B200", (0x2901,), 183359),
    Product("GB200", "NVIDIA GB200", (0x2941,), 189471),
    Product("RTX-PRO-6000-Server", "NVIDIA RTX PRO 6000 Blackwell Server Edition", (0x2BB5,), 97887),
    Product("RTX-PRO-6000-Max-Q", "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", (0x2BB4,), 97887),
    Product("RTX-PRO-6000", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", (0x2BB1,), 97887),
    Product("RTX-5090", "NVIDIA GeForce RTX 5090", (0x2B85,), 32607),
    Product("GB10", "NVIDIA GB10", (0x2E12,), None),
    Product("GH200", "NVIDIA GH200 480GB", (0x2342,), 97871),
    Product("H200", "NVIDIA H200", (0x2335,), 143771),
    Product("H200-NVL", "NVIDIA H200 NVL", (0x233B,), 143771),
    Product("H100-80GB", "NVIDIA H100 80GB HBM3", (0x2330,), 81559),
    Product("H100-PCIe-80GB", "NVIDIA H100 PCIe", (0x2331,), 81559),
    Product("H100-NVL", "NVIDIA H100 NVL", (0x2321,), 95830),
    Product("H800", "NVIDIA H800", (0x2324,), None),
    Product("H800-PCIe", "NVIDIA H800 PCIe", (0x2322,), None),
    Product("H20", "NVIDIA H20", (0x2329,), 97871),
    Product("L40S", "NVIDIA L40S", (0x26B9,), 46068),
    Product("L40", "NVIDIA L40", (0x26B5,), 46068),
    Product("L20", "NVIDIA L20", (0x26BA,), 46068),
    Product("L4", "NVIDIA L4", (0x27B8,), 23034),
    Product("RTX-6000-Ada", "NVIDIA RTX 6000 Ada Generation", (0x26B1,), 49140),
    Product("RTX-4000-SFF-Ada", "NVIDIA RTX 4000 SFF Ada Generation", (0x27B0,), 20475),
    Product("RTX-4090", "NVIDIA GeForce RTX 4090", (0x2684,), 24564),
    Product("A100-80GB", "NVIDIA A100-SXM4-80GB", (0x20B2,), 81920),
    Product("A100-PCIe-80GB", "NVIDIA A100 80GB PCIe", (0x20B5,), 81920),
    Product("A100-40GB", "NVIDIA A100-SXM4-40GB", (0x20B0,), 40960),
    Product("A100-PCIe-40GB", "NVIDIA A100-PCIE-40GB", (0x20F1,), 40960),
    Product("A800-80GB", "NVIDIA A800-SXM4-80GB", (0x20F3,), None),
    Product("A800-PCIe-80GB", "NVIDIA A800 80GB PCIe", (0x20F5,), None),
    Product("A30", "NVIDIA A30", (0x20B7,), 24576),
    Product("A40", "NVIDIA A40", (0x2235,), 46068),
    Product("A10", "NVIDIA A10", (0x2236,), 23028),
    Product("A10G", "NVIDIA A10G", (0x2237,), 23028),
    Product("RTX-A6000", "NVIDIA RTX A6000", (0x2230,), 49140),
    Product("RTX-3090", "NVIDIA GeForce RTX 3090", (0x2204,), 24576),
    Product("T4", "Tesla T4", (0x1EB8,), 15360),
    Product("V100-32GB", "Tesla V100-SXM2-32GB", (0x1DB5,), 32768),
    Product("V100-PCIe-32GB", "Tesla V100-PCIE-32GB", (0x1DB6,), 32768),
    Product("V100S-32GB", "Tesla V100S-PCIE-32GB", (0x1DF6,), 32768),
    Product("V100-16GB", "Tesla V100-SXM2-16GB", (0x1DB1,), 16384),
    Product("V100-PCIe-16GB", "Tesla V100-PCIE-16GB", (0x1DB4,), 16384),
    Product("P100-SXM2-16GB", "Tesla P100-SXM2-16GB", (0x15F9,), 16384),
    Product("P100-PCIe-16GB", "Tesla P100-PCIE-16GB", (0x15F8,), 16384),
    Product("P100-PCIe-12GB", "Tesla P100-PCIE-12GB", (0x15F7,), 12288),
    Product("P40", "Tesla P40", (0x1B38,), None),
    Product("P4", "Tesla P4", (0x1BB3,), None),
)

BY_DEVICE = {device: product for product in PRODUCTS for device in product.device_ids}
BY_PRODUCT = {product.product: product for product in PRODUCTS}


def _key(name: str) -> str:
    """A name without the brand, which differs between drivers: "Tesla T4" is also "NVIDIA T4"."""
    return re.sub(r"^(?:nvidia |tesla )+", "", name.casefold())


BY_NAME = {_key(product.name): product for product in PRODUCTS}


def by_device(device: int | None) -> Product | None:
    """The product of a PCI device id."""
    return None if device is None else BY_DEVICE.get(device)


def by_name(name: str | None) -> Product | None:
    """The product with this name in nvidia-smi's report."""
    return BY_NAME.get(_key(name or ""))


def generation(device: int | None, name: str | None = None, architecture: str | None = None) -> Generation | None:
    """The generation by PCI device id, else by nvidia-smi's name, else by an architecture with only one capability.

    If nvidia-smi reports an architecture, only generations of this architecture are possible.
    """
    possible = [one for one in GENERATIONS if architecture in (None, one.architecture)]
    for one in possible:
        if device is not None and any(first <= device <= last for first, last in one.blocks):
            return one
    for one in possible:
        if name and re.search(rf"(?<!\w)(?:{one.names})(?!\w)", name):
            return one
    return possible[0] if architecture in ONE_CAPABILITY else None
