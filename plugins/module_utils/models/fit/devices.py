# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The devices of an engine: the node's GPUs, named GPUs of the hardware table, or processors. Private to the
collection."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.problems import nearest
from ...hardware.gpu.products import BY_PRODUCT, Product

HYPOTHETICAL = re.compile(r"^(?:(\d+)\s*[x×*]\s*)?(.+)$", re.IGNORECASE)

LARGEST_COUNT = 1024
"""Largest number of GPUs of one name, more than any instance has."""


@dataclass(frozen=True)
class Device:
    """One GPU, or all processors of a node; `memory_mib` is the memory that CUDA can use. None if unknown."""

    name: str
    memory_mib: int | None
    compute_capability: tuple[int, int] | None = None
    accelerator: str = "nvidia"

    @property
    def is_cpu(self) -> bool:
        return self.accelerator == "cpu"

    @property
    def capability(self) -> str:
        """The compute capability as a text, such as 9.0."""
        return ".".join(map(str, self.compute_capability)) if self.compute_capability else "unknown"


NO_DEVICE = Device("no GPU", None)
"""The device of a node without GPUs."""

UNREPORTED = Device("GPU", None)
"""Stands for a GPU or MIG device that is named by UUID or GPU:DEVICE on a node without a driver. Only the driver
reports UUIDs and MIG devices."""


def processors(memory_mib: int | None) -> list[Device]:
    """The processors of a node, for an engine without a GPU."""
    return [Device("CPU", memory_mib, accelerator="cpu")]


def hypothetical(text: str) -> list[Device]:
    """The GPUs in a text such as 8xH100-80GB or 4xL4,4xA10.

    Memory and compute capability come from the hardware table; unknown memory is None. Raises ValueError for an unknown
    or ambiguous name, and for a wrong count.
    """
    devices: list[Device] = []
    for part in text.split(","):
        match = HYPOTHETICAL.match(part.strip())
        if match is None:
            raise ValueError(f"{part!r} is no GPU of the hardware table: {nearest(part, BY_PRODUCT)}")
        product = _product(match[2].strip())
        count = int(match[1] or 1)
        if not 1 <= count <= LARGEST_COUNT:
            raise ValueError(f"{part.strip()!r}: must be 1 to {LARGEST_COUNT} GPUs")
        devices += [_named(product)] * count
    return devices


def _product(name: str) -> Product:
    """The product of a name, or of the beginning of a name if it is unique.

    Raises ValueError for an unknown name, and for a beginning of several names.
    """
    products = {product.casefold(): product for product in BY_PRODUCT}
    exact = products.get(name.casefold())
    if exact:
        return BY_PRODUCT[exact]
    family = [product for key, product in products.items() if key.startswith(f"{name.casefold()}-")]
    if len(family) == 1:
        return BY_PRODUCT[family[0]]
    if family:
        raise ValueError(f"{name!r} is the name of several GPUs: {', '.join(family[:-1])} or {family[-1]}?")
    raise ValueError(f"{name!r} is no GPU of the hardware table: {nearest(name, BY_PRODUCT)}")


def _named(product: Product) -> Device:
    return Device(product.product, product.memory_mib, _capability(product.compute_capability))


def from_facts(gpus: Sequence[Mapping[str, Any]], wanted: Sequence[str] | None = None) -> list[Device]:
    """The GPUs of the fact `gpus`: all, or the wanted ones by index or UUID. A MIG device may be GPU:DEVICE, too.

    Raises ValueError for a GPU that the node does not have. Without a driver, only indexes are checked.
    """
    known: dict[str, Device] = {}
    whole: list[Device] = []
    for position, gpu in enumerate(gpus):
        device = _fact(gpu)
        whole.append(device)
        index = gpu.get("index")
        name = str(position if index is None else index)
        known[name] = device
        if gpu.get("uuid"):
            known[str(gpu["uuid"])] = device
        for slice_ in gpu.get("mig_devices") or ():
            product = f"{device.name} {slice_.get('profile') or 'MIG'}"
            part = Device(product, slice_.get("memory_total_mib"), device.compute_capability)
            if slice_.get("index") is not None:
                known[f"{name}:{slice_['index']}"] = part
            if slice_.get("uuid"):
                known[str(slice_["uuid"])] = part
    if wanted is None:
        return whole
    driver = any(gpu.get("reported", True) for gpu in gpus)
    missing = [name for name in wanted if name not in known and (driver or name.isdecimal())]
    if missing:
        raise ValueError(f"the node has no GPU {missing[0]!r}: {nearest(missing[0], known)}")
    return [known.get(name, UNREPORTED) for name in wanted]


def _fact(gpu: Mapping[str, Any]) -> Device:
    """One GPU of the facts, without the memory that the driver reserves."""
    total = gpu.get("memory_total_mib")
    if total is None and not gpu.get("reported", True):
        # Without a driver, a plan uses the memory of the product.
        product = BY_PRODUCT.get(gpu.get("product") or "")
        total = product.memory_mib if product else None
    return Device(
        name=gpu.get("product") or gpu.get("name") or "GPU",
        memory_mib=total - (gpu.get("memory_reserved_mib") or 0) if total else None,
        compute_capability=_capability(gpu.get("compute_capability")),
    )


def _capability(text: str | None) -> tuple[int, int] | None:
    major, dot, minor = (text or "").partition(".")
    return (int(major), int(minor)) if dot and major.isdecimal() and minor.isdecimal() else None
