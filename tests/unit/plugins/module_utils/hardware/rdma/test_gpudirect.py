# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether GPUDirect RDMA is possible."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma.gpudirect import GpuDirect, gpudirect

OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.1.2  Release Build"
PROPRIETARY = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.1.2  Thu Jan  2 03:04:05 UTC 2025"


@pytest.mark.parametrize("module", ["nvidia_peermem", "nv_peer_mem"])
def test_each_module_for_peer_memory_is_recognised(machine: Any, module: str) -> None:
    machine.write(f"sys/module/{module}/initstate", "live")
    found = gpudirect(machine.root)
    assert (found.peermem, found.peermem_module) == (True, module)


def test_without_a_module_for_peer_memory_peermem_is_false(machine: Any) -> None:
    machine.write("sys/module/ib_core/initstate", "live")
    assert (gpudirect(machine.root).peermem, gpudirect(machine.root).peermem_module) == (False, None)


@pytest.mark.parametrize(
    ("release", "driver", "dma_buf", "words"),
    [
        ("6.12.48+deb13-amd64", OPEN, True, "the open NVIDIA kernel module"),
        ("5.12.0", OPEN, True, "5.12.0"),
        ("5.10.0-30-amd64", OPEN, False, "older than 5.12"),
        ("6.1.0-40-amd64", PROPRIETARY, False, "proprietary"),
        ("6.1.0-40-amd64", None, None, "not loaded"),
        ("rolling", OPEN, None, "is unknown"),
    ],
)
def test_dma_buf_needs_linux_5_12_and_the_open_kernel_module(
    machine: Any, release: str, driver: str | None, dma_buf: bool | None, words: str
) -> None:
    machine.write("proc/sys/kernel/osrelease", release)
    if driver:
        machine.write("proc/driver/nvidia/version", driver)
    found = gpudirect(machine.root)
    assert found.dma_buf is dma_buf and words in found.dma_buf_reason


def test_without_files_of_the_kernel_gpudirect_is_unknown(machine: Any) -> None:
    assert gpudirect(machine.root) == GpuDirect(None, None, None, "the kernel's version is unknown")
