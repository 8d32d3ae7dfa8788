# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of the packages of a driver, and the driver that installed packages make up."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import packages as pk
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.packages import Present


@pytest.mark.parametrize(
    "name",
    [
        "nvidia-kernel-dkms",
        "nvidia-kernel-open-dkms",
        "nvidia-open-kernel-support",
        "nvidia-tesla-535-smi",
        "libcuda1",
        "libnvidia-ptxjitcompiler1",
        "libnvidia-tesla-470-cuda1",
        "firmware-nvidia-gsp",
        "nvidia-fabricmanager-570",
        "cuda-drivers-580",
        "nvidia-driver-pinning-580.7.01",
    ],
)
def test_a_package_of_a_driver_is_recognised_by_its_name(name: str) -> None:
    assert pk.matches(name, pk.FAMILY)


@pytest.mark.parametrize(
    "name",
    [
        # The role docker installs the container toolkit.
        "nvidia-container-toolkit",
        "nvidia-container-toolkit-base",
        "libnvidia-container1",
        "libnvidia-container-tools",
        "cuda-keyring",
        "cuda-toolkit-13-0",
        "nvidia-cuda-toolkit",
        "libnvidia-ml-dev",
        "nvidia-opencl-dev",
        "nvidia-openjdk-8-jre",
        "nvidia-fs-dkms",
        "datacenter-gpu-manager-4-core",
        # NVIDIA's firmware for nouveau.
        "firmware-nvidia-graphics",
    ],
)
def test_another_package_of_nvidia_is_no_package_of_a_driver(name: str) -> None:
    assert not pk.matches(name, pk.FAMILY)


@pytest.mark.parametrize(
    ("installed", "present"),
    [
        (
            {"nvidia-open-kernel-dkms": "535.7.03-1", "libcuda1": "535.7.03-1", "nvidia-smi": "535.7.03-1"},
            Present("debian", "", "open", "535.7.03"),
        ),
        (
            {"nvidia-kernel-dkms": "535.7.03-1~deb12u1", "nvidia-alternative": "535.7.03-1~deb12u1"},
            Present("debian", "", "proprietary", "535.7.03"),
        ),
        (
            {"nvidia-tesla-470-kernel-dkms": "470.7-1", "libcuda1": "535.7-1"},
            Present("debian", "tesla-470", "proprietary", "470.7"),
        ),
        (
            {"nvidia-kernel-open-dkms": "580.7.01-1", "nvidia-driver-cuda": "580.7.01-1"},
            Present("nvidia", "", "open", "580.7.01"),
        ),
        (
            {"nvidia-kernel-dkms": "580.7.01-1", "nvidia-driver-cuda": "580.7.01-1"},
            Present("nvidia", "", "proprietary", "580.7.01"),
        ),
        ({"libcuda1": "535.7.03-1"}, Present("debian", "", None, "535.7.03")),
        ({"nvidia-container-toolkit": "1.18.0-1", "bash": "5.2"}, None),
    ],
)
def test_the_installed_driver_is_recognised_by_its_packages(installed: dict[str, str], present: Present | None) -> None:
    assert pk.present(installed) == present


@pytest.mark.parametrize(
    ("version", "upstream"),
    [("535.7.03-1~deb12u1", "535.7.03"), ("1:580.7-0ubuntu1", "580.7"), ("580.7.01", "580.7.01")],
)
def test_an_upstream_version_has_no_epoch_and_no_revision(version: str, upstream: str) -> None:
    assert pk.upstream(version) == upstream


@pytest.mark.parametrize(("version", "branch"), [("535.7.03", 535), ("580", 580), ("20220217", None), ("", None)])
def test_the_branch_is_the_first_number_of_a_version(version: str, branch: int | None) -> None:
    assert pk.branch_of(version) == branch
