# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernels that a machine could boot next."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import kernels
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.kernels import Kernel


def boot(root: Path, *names: str) -> None:
    (root / "boot").mkdir(exist_ok=True)
    for name in names:
        (root / "boot" / name).write_text("")


def test_every_image_in_boot_is_a_kernel_that_could_run_next(tmp_path: Path) -> None:
    boot(tmp_path, "vmlinuz-6.1.0-2-amd64", "vmlinuz-6.1.0-1-amd64", "vmlinux-6.12", "vmlinuz-6.1.0-1-amd64.dpkg-old")
    assert [kernel.release for kernel in kernels.installed(tmp_path)] == ["6.12", "6.1.0-1-amd64", "6.1.0-2-amd64"]


def test_a_container_has_no_kernel_of_its_own(tmp_path: Path) -> None:
    assert kernels.installed(tmp_path) == []


@pytest.mark.parametrize(
    "target", ["/usr/src/linux-headers-6.1.0-1-amd64", "../../../usr/src/linux-headers-6.1.0-1-amd64"]
)
def test_headers_are_a_makefile_in_the_target_of_the_link_build(tmp_path: Path, target: str) -> None:
    headers, modules = tmp_path / "usr/src/linux-headers-6.1.0-1-amd64", tmp_path / "lib/modules/6.1.0-1-amd64"
    headers.mkdir(parents=True)
    modules.mkdir(parents=True)
    (modules / "build").symlink_to(target)
    assert kernels.kernel(tmp_path, "6.1.0-1-amd64") == Kernel("6.1.0-1-amd64", headers=False)
    (headers / "Makefile").write_text("")
    assert kernels.kernel(tmp_path, "6.1.0-1-amd64") == Kernel("6.1.0-1-amd64", headers=True)


def test_an_initial_ram_disk_older_than_the_blacklist_of_nouveau_is_outdated(tmp_path: Path) -> None:
    assert not kernels.outdated_initrd(tmp_path, "6.1")
    boot(tmp_path, "initrd.img-6.1")
    assert not kernels.outdated_initrd(tmp_path, "6.1")
    (tmp_path / kernels.NOUVEAU_BLACKLIST).parent.mkdir(parents=True)
    (tmp_path / kernels.NOUVEAU_BLACKLIST).write_text("blacklist nouveau")
    os.utime(tmp_path / "boot/initrd.img-6.1", (1, 1))
    assert kernels.outdated_initrd(tmp_path, "6.1")
    os.utime(tmp_path / "boot/initrd.img-6.1", (2**33, 2**33))
    assert not kernels.outdated_initrd(tmp_path, "6.1")


def test_a_real_time_kernel_is_recognised_by_a_part_of_its_name() -> None:
    assert kernels.is_real_time("6.1.0-77-rt-amd64")
    assert not kernels.is_real_time("6.1.0-77-art-amd64")


def test_each_kernel_package_has_a_package_of_headers() -> None:
    packages = ["linux-image-amd64", "linux-image-6.1.0-1-amd64", "linux-image-6.1.0-1-amd64-dbg", "vim"]
    unsigned = ["linux-image-6.1.0-1-amd64-unsigned"]
    headers = ["linux-headers-6.1.0-1-amd64", "linux-headers-amd64"]
    assert kernels.header_packages([*packages, *unsigned]) == headers
