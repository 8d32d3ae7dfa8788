# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan: the packages to install, remove and hold, and the modules and units of a driver."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_pins
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import packages as pk
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.choice import Wish
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.plan import decide
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.runfile import Installed
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.driver.nodes import (
    KNOWN,
    installer,
    node,
    planned,
    refused,
)

DEBIAN_OPEN = {
    "nvidia-open-kernel-dkms": "535.7.03-1",
    "nvidia-open-kernel-support": "535.7.03-1",
    "libcuda1": "535.7.03-1",
    "libnvidia-encode1": "535.7.03-1",
    "nvidia-smi": "535.7.03-1",
    "nvidia-persistenced": "535.7.04-1",
    "nvidia-container-toolkit": "1.18.0-1",
}


NVIDIA_OPEN = {
    "nvidia-kernel-open-dkms": "580.7.01-1",
    "nvidia-driver-cuda": "580.7.01-1",
    "libcuda1": "580.7.01-1",
    "nvidia-driver-pinning-580.7.01": "580.7.01-1",
    "nvidia-container-toolkit": "1.18.0-1",
}


def test_the_plan_for_debians_driver_has_no_packages_for_a_display() -> None:
    plan = planned(Wish("debian"), node("Ampere"))
    assert plan.install == [
        "dkms",
        "linux-headers-6.1.0-77-amd64",
        "linux-headers-amd64",
        "nvidia-kernel-dkms=535.*",
        "libcuda1=535.*",
        "libnvidia-cfg1=535.*",
        "libnvidia-ml1=535.*",
        "libnvidia-nvvm4=535.*",
        "nvidia-smi=535.*",
        "nvidia-modprobe",
        "nvidia-persistenced",
    ]
    assert (plan.branch, plan.version, plan.flavor) == (535, "535.*", "proprietary")
    assert plan.components == ["contrib", "non-free", "non-free-firmware"]
    assert plan.optional == plan.remove == plan.remove_first == []
    assert plan.units == {"nvidia-persistenced.service": "ConditionPathExists=/dev/nvidiactl"}
    assert plan.modules == ["nvidia", "nvidia-uvm"]
    assert not plan.sign
    assert not plan.uninstall_runfile


def test_packages_for_a_display_are_installed_only_if_wanted() -> None:
    assert "nvidia-driver=535.*" in planned(Wish("debian", desktop=True), node()).install
    assert "nvidia-driver=580.*" in planned(Wish("nvidia", "580", desktop=True), node()).install


def test_debian_13_has_a_second_driver() -> None:
    plan = planned(Wish("debian", "535"), node("Ampere", debian=13))
    assert "nvidia-tesla-535-kernel-dkms=535.*" in plan.install
    assert "libnvidia-tesla-535-cuda1=535.*" in plan.install
    problems = refused(Wish("debian", "535", "open"), node("Ampere", debian=13))
    assert any("only as proprietary" in problem and "nvidia_driver_source to nvidia" in problem for problem in problems)


def test_the_plan_for_nvidias_packages_has_no_packages_for_a_display() -> None:
    plan = planned(Wish("nvidia", "580.7.01"), node("Hopper"))
    assert plan.install[3:] == [
        "nvidia-kernel-open-dkms=580.7.01-*",
        "nvidia-driver-cuda=580.7.01-*",
        "nvidia-modprobe=580.7.01-*",
        "nvidia-persistenced=580.7.01-*",
    ]
    assert plan.optional == ["nvidia-driver-pinning-580.7.01"]
    assert plan.components == []
    assert planned(Wish("nvidia", "580.7.01-1"), node()).version == "580.7.01-1"


def test_the_installer_needs_no_packages_of_a_driver() -> None:
    plan = planned(installer("580.7.01"), node("Hopper", packages=DEBIAN_OPEN))
    assert plan.install == ["dkms", "linux-headers-6.1.0-77-amd64", "linux-headers-amd64"]
    assert plan.runfile_arguments == ["--silent", "--dkms", "--kernel-module-type=open"]
    assert set(plan.remove_first) == set(DEBIAN_OPEN) - {"nvidia-container-toolkit"}
    assert plan.hold == []
    # An earlier run may have held the packages that are removed.
    assert all(pk.matches(name, plan.own_holds) for name in plan.remove_first)
    assert (plan.runfile_origin, plan.runfile_path) == ("controller", "/srv/driver.run")
    old = planned(installer("535.7", "open"), node("Hopper"))
    assert old.runfile_arguments[-1] == "--kernel-module-build-directory=kernel-open"
    assert planned(installer("470.7"), node("Kepler")).runfile_arguments == ["--silent", "--dkms"]


def test_the_installer_leaves_out_files_for_a_display() -> None:
    assert "--no-opengl-files" in planned(installer("580.7.01"), node()).runfile_options
    assert "--no-opengl-files" not in planned(installer("580.7.01", desktop=True), node()).runfile_options
    assert planned(Wish("debian"), node()).runfile_options == []


@pytest.mark.parametrize(
    ("there", "due"),
    [
        (None, True),
        (Installed("580.7.01", "open", registered=True), False),
        (Installed("580.7.01", None, registered=True), False),
        (Installed("580.7.01", "proprietary", registered=True), True),
        (Installed("580.7.01", "open", registered=False), True),
        (Installed("580.7.02", "open", registered=True), True),
        (Installed(None, "open", registered=True), True),
    ],
)
def test_the_installer_runs_unless_its_driver_is_installed(there: Installed | None, due: bool) -> None:
    plan = planned(installer("580.7.01"), node("Hopper", runfile=there))
    assert plan.install_runfile is due
    # The installer itself removes an older driver of an installer.
    assert not plan.uninstall_runfile
    assert not planned(Wish("debian"), node(runfile=there)).install_runfile


@pytest.mark.parametrize(
    ("version", "architecture", "manager"),
    [
        ("580.7.01", "Hopper", ["nvidia-fabricmanager=580.7.01-*"]),
        ("570.7.01", "Hopper", ["nvidia-fabricmanager-570=570.7.01-*"]),
        ("580.7.01", "Blackwell", ["nvidia-fabricmanager=580.7.01-*", "nvlsm"]),
    ],
)
def test_the_fabric_manager_has_exactly_the_drivers_version(
    version: str, architecture: str, manager: list[str]
) -> None:
    plan = planned(Wish("nvidia", version), node(architecture, nvswitch=True))
    assert plan.install[-len(manager) :] == manager
    without = planned(Wish("nvidia", version), node(architecture))
    assert not any("fabric" in name for name in [*without.install, *without.units])


def test_the_fabric_manager_does_not_wait_for_files_that_it_creates() -> None:
    """The module lists the switches in /proc. The switches of NVLink 5 are not devices of the driver."""
    hopper = planned(Wish("nvidia", "580.7.01"), node("Hopper", nvswitch=True))
    condition = hopper.units["nvidia-fabricmanager.service"]
    assert condition == "ConditionDirectoryNotEmpty=/proc/driver/nvidia-nvswitch/devices"
    assert "ib_umad" not in hopper.modules
    blackwell = planned(Wish("nvidia", "580.7.01"), node("Blackwell", nvswitch=True))
    assert blackwell.units["nvidia-fabricmanager.service"] == "ConditionPathExists=/dev/nvidiactl"


def test_the_managers_of_nvlink_5_get_their_module() -> None:
    assert "ib_umad" in planned(Wish("nvidia", "580.7.01"), node("Blackwell", nvswitch=True)).modules
    assert "ib_umad" not in planned(Wish("nvidia", "580.7.01"), node("Blackwell")).modules


def test_a_new_version_updates_all_packages_of_the_driver() -> None:
    plan = planned(Wish("debian", "535.8.01", "open"), node("Ampere", packages=DEBIAN_OPEN))
    assert "libnvidia-encode1=535.8.01-*" in plan.install
    assert "nvidia-open-kernel-support=535.8.01-*" in plan.install
    assert not any("toolkit" in name for name in plan.install)
    assert plan.remove == plan.remove_first == []
    newer = planned(Wish("nvidia", "580.8"), node("Ampere", packages=NVIDIA_OPEN))
    assert "libcuda1=580.8-*" in newer.install
    # This package would pin the old version.
    assert newer.remove == ["nvidia-driver-pinning-580.7.01"]


def test_parts_of_debians_main_driver_stay_next_to_an_additional_driver() -> None:
    installed = {"nvidia-tesla-535-kernel-dkms": "535.7-1", "nvidia-tesla-535-alternative": "535.7-1"}
    where = node(debian=13, packages={**installed, "nvidia-legacy-check": "550.7-1"})
    plan = planned(Wish("debian", "535.8"), where)
    assert "nvidia-tesla-535-alternative=535.8-*" in plan.install
    assert not any("legacy-check" in name for name in [*plan.install, *plan.remove, *plan.remove_first])


def test_the_same_wish_removes_nothing() -> None:
    plan = planned(Wish("nvidia", "580.7.01"), node("Ampere", packages=NVIDIA_OPEN))
    assert plan.remove == plan.remove_first == []


def test_another_flavour_removes_the_packages_of_the_old_flavour() -> None:
    plan = planned(Wish("debian", flavor="proprietary"), node("Ampere", packages=DEBIAN_OPEN))
    assert plan.remove == ["nvidia-open-kernel-dkms", "nvidia-open-kernel-support"]
    assert plan.remove_first == []
    back = {"nvidia-kernel-dkms": "535.7-1", "nvidia-kernel-support": "535.7-1", "libcuda1": "535.7-1"}
    plan = planned(Wish("debian", flavor="open"), node("Ampere", packages=back))
    assert plan.remove == ["nvidia-kernel-dkms", "nvidia-kernel-support"]
    nvidia = planned(Wish("nvidia", "580.7.01", "proprietary"), node("Ampere", packages=NVIDIA_OPEN))
    assert nvidia.remove == ["nvidia-kernel-open-dkms"]


@pytest.mark.parametrize(
    ("wish", "installed"),
    [
        (Wish("nvidia", "580.7.01"), DEBIAN_OPEN),
        (Wish("debian"), NVIDIA_OPEN),
        (Wish("nvidia", "595.7"), NVIDIA_OPEN),
        (Wish("debian", "470", "proprietary"), DEBIAN_OPEN),
    ],
)
def test_another_source_or_branch_removes_the_old_driver(wish: Wish, installed: dict[str, str]) -> None:
    plan = planned(wish, node(packages=installed))
    assert set(plan.remove_first) == set(installed) - {"nvidia-container-toolkit"}
    assert plan.remove == []


def test_a_fabric_manager_without_switches_is_removed() -> None:
    installed = {**NVIDIA_OPEN, "nvidia-fabricmanager": "580.7.01-1"}
    assert planned(Wish("nvidia", "580.7.01"), node(packages=installed)).remove == ["nvidia-fabricmanager"]


def test_the_installers_driver_is_uninstalled_before_packages() -> None:
    there = Installed("580.7.01", None, registered=True)
    assert planned(Wish("debian"), node(runfile=there)).uninstall_runfile
    assert not planned(installer("580.7.01"), node(runfile=there)).uninstall_runfile


def test_secure_boot_needs_signatures() -> None:
    plan = planned(Wish("debian"), node(secure_boot=True))
    assert plan.sign
    assert {"mokutil", "openssl"} <= set(plan.install)


def test_modules_can_be_signed_without_secure_boot() -> None:
    plan = planned(Wish("debian", sign=True), node())
    assert plan.sign
    assert {"mokutil", "openssl"} <= set(plan.install)


def test_peermem_is_loaded_if_wanted() -> None:
    assert "nvidia-peermem" in planned(Wish("debian", peermem=True), node()).modules


def test_the_held_packages_can_be_pinned() -> None:
    for wish in (Wish("debian"), Wish("nvidia", "580.7.01"), Wish("nvidia", "580.7.01-1")):
        plan = planned(wish, node())
        assert apt_pins.mistakes("nvidia", plan.hold, plan.hold, plan.version) == []
        names = [name.partition("=")[0] for name in plan.install if not name.startswith(("linux-", "dkms"))]
        assert all(pk.matches(name, plan.hold) for name in names)


def test_the_decision_is_plain_data() -> None:
    data = decide(Wish("debian"), node("Ampere"), KNOWN).as_dict()
    assert data["plan"]["branch"] == 535
    assert data["problems"] == data["warnings"] == []
