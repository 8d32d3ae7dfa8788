# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The check that every kernel that could be booted next has the driver's module."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import dkms, kernel_check, kernels
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.kernels import Kernel

OLD, NEW = "6.1.0-70-amd64", "6.1.0-77-amd64"
BOTH = (Kernel(OLD, True), Kernel(NEW, True))
ANY = kernel_check.Wanted()


def add_kernel(root: Path, release: str, headers: bool = True) -> None:
    """A kernel as Debian's packages leave it."""
    for directory in ("boot", f"lib/modules/{release}"):
        (root / directory).mkdir(parents=True, exist_ok=True)
    (root / f"boot/vmlinuz-{release}").touch()
    if headers:
        source = root / f"usr/src/linux-headers-{release}"
        source.mkdir(parents=True)
        (source / "Makefile").touch()
        (root / f"lib/modules/{release}/build").symlink_to(f"/usr/src/linux-headers-{release}")


def test_every_kernel_image_in_boot_is_an_installed_kernel(tmp_path: Path) -> None:
    add_kernel(tmp_path, OLD)
    add_kernel(tmp_path, NEW, headers=False)
    for name in ("initrd.img-6.1.0-77-amd64", "vmlinuz-6.1.0-78-amd64.dpkg-new", "config-6.1.0-77-amd64"):
        (tmp_path / "boot" / name).touch()
    assert kernels.installed(tmp_path) == [Kernel(OLD, True), Kernel(NEW, False)]


def test_removed_headers_do_not_count(tmp_path: Path) -> None:
    add_kernel(tmp_path, NEW)
    (tmp_path / f"usr/src/linux-headers-{NEW}/Makefile").unlink()
    assert kernels.installed(tmp_path) == [Kernel(NEW, False)]


def test_headers_in_a_directory_with_the_name_build_are_found(tmp_path: Path) -> None:
    add_kernel(tmp_path, NEW, headers=False)
    build = tmp_path / f"lib/modules/{NEW}/build"
    build.mkdir()
    (build / "Makefile").touch()
    assert kernels.kernel(tmp_path, NEW).headers


def test_each_kernel_package_has_a_package_of_headers() -> None:
    packages = [
        "linux-image-amd64",
        f"linux-image-{NEW}",
        f"linux-image-{OLD}-unsigned",
        "linux-image-amd64-dbg",
        "bash",
    ]
    assert kernels.header_packages(packages) == [
        f"linux-headers-{OLD}",
        f"linux-headers-{NEW}",
        "linux-headers-amd64",
    ]


def complaints(status: str, wanted: kernel_check.Wanted = ANY, found: Sequence[Kernel] = BOTH) -> list[str]:
    return [str(problem) for problem in kernel_check.problems(found, dkms.parse(status), wanted)]


def built(kernel: str, name: str = "nvidia-current-open", version: str = "535.7.01", state: str = "installed") -> str:
    return f"{name}/{version}, {kernel}, x86_64: {state}\n"


def test_there_is_no_problem_if_every_kernel_has_the_module() -> None:
    assert complaints(built(OLD) + built(NEW)) == []
    assert complaints(built(OLD) + built(NEW), kernel_check.Wanted("535.7.01", "open")) == []
    assert complaints(built(OLD, "nvidia") + built(NEW, "nvidia"), kernel_check.Wanted(flavor="open")) == []


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("", ["DKMS", "no module nvidia", "-dkms package"]),
        ("zfs/2.2, 6.1.0-77-amd64, x86_64: installed", ["no module nvidia"]),
        (built(OLD), [NEW, "not built", f"dkms install nvidia-current-open/535.7.01 -k {NEW}", "build/make.log"]),
        (built(OLD) + built(NEW, state="built"), [NEW, "built, but not installed", "dkms install"]),
        ("nvidia/580.7: broken\n" + built(OLD), [NEW, "not built"]),
        (
            built(OLD) + built(NEW, state="installed (Differences between built and installed modules)"),
            [NEW, "warns: Differences", "--force"],
        ),
    ],
)
def test_a_problem_names_the_kernel_and_the_next_step(status: str, words: list[str]) -> None:
    found = [text for text in complaints(status) if all(word in text for word in words)]
    assert len(found) == 1, complaints(status)


def test_a_broken_source_is_a_problem_of_every_kernel() -> None:
    found = complaints("nvidia/580.7: broken")
    assert len(found) == 2
    assert all("reinstall" in text for text in found)


def test_a_kernel_without_headers_is_named_with_its_package() -> None:
    (found,) = complaints(built(OLD), found=[Kernel(OLD, True), Kernel(NEW, False)])
    assert NEW in found
    assert f"apt-get install linux-headers-{NEW}" in found


def test_an_installed_module_needs_no_headers() -> None:
    assert complaints(built(NEW), found=[Kernel(NEW, False)]) == []


def test_another_version_or_flavour_does_not_count() -> None:
    old = built(OLD) + built(NEW)
    assert "no driver 580.7" in complaints(old, kernel_check.Wanted("580.7"))[0]
    assert "nvidia-current-open/535.7.01" in complaints(old, kernel_check.Wanted("580.7"))[0]
    assert "no proprietary driver" in complaints(old, kernel_check.Wanted(flavor="proprietary"))[0]
    leftover = old + built(NEW, "nvidia-current", "550.7")
    (found,) = complaints(leftover, kernel_check.Wanted("550.7"))
    assert OLD in found


def test_a_real_time_kernel_is_a_problem() -> None:
    (found,) = complaints(built(NEW), found=[Kernel(NEW, True), Kernel("6.1.0-77-rt-amd64", True)])
    assert "real-time" in found


def test_no_kernel_at_all_is_a_problem() -> None:
    assert "option kernels" in complaints(built(NEW), found=[])[0]
