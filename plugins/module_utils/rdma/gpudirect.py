# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether RDMA devices can reach the memory of GPUs (GPUDirect RDMA). Private to the collection."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .. import sysfs

PEERMEM = ("nvidia_peermem", "nv_peer_mem")
"""The module of the driver, and the one that was built apart before driver 470."""

DMA_BUF_KERNEL = (5, 12)
"""The first kernel whose RDMA core takes a dma-buf as memory. Source: infiniband/core/umem_dmabuf.c."""


@dataclass(frozen=True)
class GpuDirect:
    """The two ways. None where unknown."""

    peermem: bool | None
    """A module for it is loaded, which happens only where the RDMA core takes it in."""
    peermem_module: str | None
    dma_buf: bool | None
    """Kernel and NVIDIA driver have it. The driver of the RDMA device must have it too, which no file tells."""
    dma_buf_reason: str


def gpudirect(root: Path) -> GpuDirect:
    """What the files below `root` tell."""
    modules = root / "sys/module"
    peermem = next((name for name in PEERMEM if (modules / name).is_dir()), None)
    dma_buf, reason = _dma_buf(
        sysfs.read(root / "proc/sys/kernel/osrelease"), sysfs.read(root / "proc/driver/nvidia/version")
    )
    return GpuDirect(bool(peermem) if modules.is_dir() else None, peermem, dma_buf, reason)


def _dma_buf(release: str | None, driver: str | None) -> tuple[bool | None, str]:
    """Whether GPU memory can be exported as dma-buf, and why. Source of the conditions: the page on GPUDirect RDMA in the
    manual of NVIDIA's GPU Operator.
    """
    version = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", release or "")
    if version is None:
        return None, "the version of the kernel is not known"
    if (int(version[1]), int(version[2])) < DMA_BUF_KERNEL:
        return False, f"kernel {release} is older than {'.'.join(map(str, DMA_BUF_KERNEL))}"
    if driver is None:
        return None, "the NVIDIA driver is not loaded"
    if "Open Kernel Module" not in driver:
        return False, "the NVIDIA driver's kernel module is the proprietary one; only the open one exports dma-buf"
    return True, f"kernel {release} and the open NVIDIA kernel module"
