# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver from a fake of NVIDIA's repository."""

from __future__ import annotations

from typing import Any

import pytest
from fixtures import on_deb13
from node import Node, changes
from nvidia_packages import BROKEN, NEW, NEXT, OLD, installed
from repository import Package, Repository
from simulated_gpus import unforeseen

ALLOWED = 'Unattended-Upgrade::Origins-Pattern:: "origin=NVIDIA";'


def to(node: Node, version: str, check: bool = True, **extra: Any) -> str:
    """Run the role for a version of NVIDIA's driver."""
    return node.site(check=check, nvidia_driver_source="nvidia", nvidia_driver_version=version, **extra)


def modules(node: Node) -> set[str]:
    """The versions that DKMS has."""
    return {line.split(",")[0] for line in node.run("dkms status").splitlines()}


def test_check_mode_predicted_the_converge() -> None:
    assert unforeseen() == set()


def test_all_packages_of_the_driver_are_installed_and_held(node: Node) -> None:
    found = installed(node)
    assert {"nvidia-driver-cuda", "nvidia-kernel-open-dkms", "libcuda1", f"nvidia-driver-pinning-{OLD}"} <= set(found)
    assert set(found.values()) == {f"{OLD}-1", "1"}
    assert modules(node) == {f"nvidia/{OLD}"}
    assert set(found) <= set(node.run("apt-mark showhold").split())


@pytest.mark.full
def test_upgrades_do_not_change_the_driver(node: Node) -> None:
    """The upgrades are real: they upgrade another package of the same source."""
    node.run("apt-get -qq install --yes inference-other")
    Repository(node, "NVIDIA").publish([Package("inference-other", "2-1")])
    before = installed(node)
    node.run(f"echo '{ALLOWED}' >/etc/apt/apt.conf.d/99-test")
    try:
        node.run("unattended-upgrade")
    finally:
        node.run("rm /etc/apt/apt.conf.d/99-test")
    assert node.run("dpkg-query -W -f '${Version}' inference-other") == "2-1", "nothing was upgraded"
    node.run("apt-get -qq --yes full-upgrade")
    assert installed(node) == before


@on_deb13
def test_a_new_version_is_installed_in_one_upgrade(node: Node) -> None:
    node.run(": >/var/log/apt/history.log")
    to(node, NEW)
    assert {version for name, version in installed(node).items() if "pinning" not in name} == {f"{NEW}-1"}
    assert f"nvidia-driver-pinning-{NEW}" in installed(node)
    assert f"nvidia-driver-pinning-{OLD}" not in installed(node)
    assert modules(node) == {f"nvidia/{NEW}"}
    upgrades = [line for line in node.run("cat /var/log/apt/history.log").splitlines() if line.startswith("Upgrade:")]
    assert len(upgrades) == 1 and "libcuda1" in upgrades[0] and "nvidia-kernel-open-dkms" in upgrades[0]
    assert changes(to(node, NEW)) == 0


def test_a_version_that_the_source_does_not_have_is_refused(node: Node) -> None:
    before = installed(node)
    output = to(node, "580.1.1", check=False)
    assert changes(output) == 0 and "580.1.1" in output and NEW in output
    assert installed(node) == before


@pytest.mark.full
def test_the_fabric_manager_has_the_drivers_version(deb12: Node) -> None:
    output = to(deb12, "580", check=False, nvidia_driver_nvswitch="yes")
    assert changes(output) == 0 and "must have exactly the driver's version" in " ".join(output.split())
    to(deb12, NEW, nvidia_driver_nvswitch="yes")
    assert installed(deb12)["nvidia-fabricmanager"] == f"{NEW}-1"
    deb12.run("systemctl start nvidia-fabricmanager.service")
    assert deb12.run("systemctl show --value --property=ConditionResult nvidia-fabricmanager.service") == "no"
    to(deb12, NEW)
    assert "nvidia-fabricmanager" not in installed(deb12)


@pytest.mark.full
def test_the_flavour_is_changed(deb12: Node) -> None:
    to(deb12, NEW, nvidia_driver_flavor="proprietary")
    assert "nvidia-kernel-dkms" in installed(deb12) and "nvidia-kernel-open-dkms" not in installed(deb12)
    assert deb12.run("modinfo -F license -k $(ls /lib/modules | head -n1) nvidia") == "NVIDIA"


@pytest.mark.full
def test_another_branch_leaves_no_package_of_the_old_branch(deb12: Node) -> None:
    to(deb12, NEXT)
    assert {version for name, version in installed(deb12).items() if "pinning" not in name} == {f"{NEXT}-1"}
    assert not any("580" in name for name in installed(deb12))
    assert modules(deb12) == {f"nvidia/{NEXT}"}
    assert deb12.run("grep -rl 580 /etc/apt/preferences.d || true") == ""
    to(deb12, NEW)
    assert modules(deb12) == {f"nvidia/{NEW}"}


@pytest.mark.full
def test_a_module_that_does_not_build_fails_the_run_and_can_be_replaced(deb12: Node) -> None:
    output = " ".join(to(deb12, BROKEN, check=False).replace("\\n", " ").split())
    assert BROKEN in output and "make.log" in output
    # The role can replace a broken driver by another version, with the same variables.
    to(deb12, NEW)
    assert {version for name, version in installed(deb12).items() if "pinning" not in name} == {f"{NEW}-1"}
    assert modules(deb12) == {f"nvidia/{NEW}"}
    assert changes(to(deb12, NEW)) == 0
