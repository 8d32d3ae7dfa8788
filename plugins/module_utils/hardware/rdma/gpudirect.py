# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks whether RDMA devices can reach the memory of GPUs (GPUDirect RDMA). Private to the collection."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ...core import sysfs
from ..gpu import driver

PEERMEM = ("nvidia_peermem", "nv_peer_mem")
"""The driver's module, and the separate module before driver 470."""

DMA_BUF_KERNEL = (5, 12)
"""First kernel whose RDMA core accepts a dma-buf as memory. Source: infiniband/core/umem_dmabuf.c."""


@dataclass(frozen=True)
class GpuDirect:
    """The two methods, peermem and dma-buf. None if unknown."""

    peermem: bool | None
    """Whether a peermem module is loaded. It loads only if the RDMA core supports it."""
    peermem_module: str | None
    dma_buf: bool | None
    """Whether kernel and NVIDIA driver support dma-buf. No file shows whether the RDMA device's driver does, too."""
    dma_buf_reason: str


def gpudirect(root: Path) -> GpuDirect:
    """The support for GPUDirect RDMA, by files below `root`."""
    modules = root / "sys/module"
    peermem = next((name for name in PEERMEM if (modules / name).is_dir()), None)
    _version, flavor = driver.loaded(sysfs.read(root / "proc/driver/nvidia/version") or "")
    dma_buf, reason = _dma_buf(sysfs.read(root / "proc/sys/kernel/osrelease"), flavor)
    return GpuDirect(bool(peermem) if modules.is_dir() else None, peermem, dma_buf, reason)


def _dma_buf(release: str | None, flavor: str | None) -> tuple[bool | None, str]:
    """Whether GPU memory can be exported as dma-buf, and why. Source: NVIDIA GPU Operator, GPUDirect RDMA."""
    version = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", release or "")
    if version is None:
        return None, "the kernel's version is unknown"
    if (int(version[1]), int(version[2])) < DMA_BUF_KERNEL:
        return False, f"kernel {release} is older than {'.'.join(map(str, DMA_BUF_KERNEL))}"
    if flavor is None:
        return None, "the NVIDIA driver is not loaded"
    if flavor != driver.OPEN:
        return False, "the NVIDIA driver has the proprietary kernel module; only the open one exports dma-buf"
    return True, f"kernel {release} and the open NVIDIA kernel module"
