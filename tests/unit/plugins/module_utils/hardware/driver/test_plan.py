# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which driver a node gets, and why it does not get what it cannot have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_pins
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import packages as pk
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.choice import Node, Wish
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.compatibility import load
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.plan import Decision, Plan, decide
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.runfile import Installed

KNOWN = load()
KERNELS = {"linux-image-amd64": "6.1.77-1", "linux-image-6.1.0-77-amd64": "6.1.77-1"}
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


def gpu(architecture: str | None, number: int = 0) -> dict[str, Any]:
    return {"pci_bus_id": f"0000:{number:02x}:00.0", "name": f"NVIDIA {architecture}", "architecture": architecture}


def node(*architectures: str | None, debian: int = 12, **more: Any) -> Node:
    packages = {**KERNELS, **more.pop("packages", {})}
    gpus = [gpu(architecture, number) for number, architecture in enumerate(architectures)]
    return Node(debian, gpus, packages=packages, kernels=("6.1.0-77-amd64",), **more)


def planned(wish: Wish, where: Node) -> Plan:
    decision = decide(wish, where, KNOWN)
    assert decision.plan is not None, decision.problems
    assert decision.problems == []
    return decision.plan


def refused(wish: Wish, where: Node) -> list[str]:
    decision = decide(wish, where, KNOWN)
    assert decision.plan is None
    return decision.problems


def test_debian_headless() -> None:
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


def test_a_display_is_only_for_who_asks() -> None:
    assert "nvidia-driver=535.*" in planned(Wish("debian", desktop=True), node()).install
    assert "nvidia-driver=580.*" in planned(Wish("nvidia", "580", desktop=True), node()).install


def test_debian_has_a_second_driver() -> None:
    plan = planned(Wish("debian", "535"), node("Ampere", debian=13))
    assert "nvidia-tesla-535-kernel-dkms=535.*" in plan.install
    assert "libnvidia-tesla-535-cuda1=535.*" in plan.install
    problems = refused(Wish("debian", "535", "open"), node("Ampere", debian=13))
    assert any("proprietary only" in problem and "nvidia" in problem for problem in problems)


def test_nvidia_headless() -> None:
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


def installer(version: str, flavor: str = "auto", **more: Any) -> Wish:
    return Wish(
        "runfile", version, flavor, runfile="controller:/srv/driver.run", checksum=f"sha256:{'7a' * 32}", **more
    )


def test_the_runfile_has_no_packages_of_its_own() -> None:
    plan = planned(installer("580.7.01"), node("Hopper", packages=DEBIAN_OPEN))
    assert plan.install == ["dkms", "linux-headers-6.1.0-77-amd64", "linux-headers-amd64"]
    assert plan.runfile_arguments == ["--silent", "--dkms", "--kernel-module-type=open"]
    assert set(plan.remove_first) == set(DEBIAN_OPEN) - {"nvidia-container-toolkit"}
    assert plan.hold == []
    # The packages that go are those that an earlier run held.
    assert all(pk.matches(name, plan.own_holds) for name in plan.remove_first)
    assert (plan.runfile_origin, plan.runfile_path) == ("controller", "/srv/driver.run")
    old = planned(installer("535.7", "open"), node("Hopper"))
    assert old.runfile_arguments[-1] == "--kernel-module-build-directory=kernel-open"
    assert planned(installer("470.7"), node("Kepler")).runfile_arguments == ["--silent", "--dkms"]


def test_the_installer_leaves_out_what_only_a_display_needs() -> None:
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
def test_the_installer_runs_where_it_has_something_to_do(there: Installed | None, due: bool) -> None:
    plan = planned(installer("580.7.01"), node("Hopper", runfile=there))
    assert plan.install_runfile is due
    # It takes its own older driver away itself.
    assert not plan.uninstall_runfile
    assert not planned(Wish("debian"), node(runfile=there)).install_runfile


@pytest.mark.parametrize(
    ("architectures", "version", "flavor", "reason"),
    [
        (["Volta"], "580", "proprietary", "no open kernel module"),
        (["Volta", "Ampere"], "580", "proprietary", "no open kernel module"),
        (["Blackwell"], "580", "open", "no other kernel module"),
        (["Hopper"], "580", "open", "560"),
        (["Hopper"], "630", "open", "620"),
        ([], "580", "open", "560"),
    ],
)
def test_the_flavour_comes_from_the_gpus(
    architectures: list[str | None], version: str, flavor: str, reason: str
) -> None:
    plan = planned(Wish("nvidia", version), node(*architectures))
    assert plan.flavor == flavor
    assert reason in plan.reason


def test_the_first_and_the_last_branch_of_a_gpu_will_do() -> None:
    assert planned(Wish("nvidia", "570"), node("Blackwell")).branch == 570
    assert planned(Wish("nvidia", "580"), node("Maxwell")).branch == 580


def test_a_wish_goes_before_a_default() -> None:
    assert planned(Wish("debian", flavor="open"), node("Ampere")).flavor == "open"
    assert planned(Wish("nvidia", "580", "proprietary"), node("Ampere")).flavor == "proprietary"


@pytest.mark.parametrize(
    ("wish", "where", "words"),
    [
        (Wish("ubuntu"), node(), ["nvidia_driver_source", "debian, nvidia, runfile"]),
        (Wish("debian", flavor="opn"), node(), ["nvidia_driver_flavor", "did you mean 'open'"]),
        (Wish("nvidia", "latest"), node(), ["nvidia_driver_version", "'latest'", "580.105.08"]),
        (Wish("nvidia"), node(), ["nvidia_driver_version", "set one", "580"]),
        (Wish("nvidia"), node("Hopper", nvswitch=True), ["nvidia_driver_version", "an exact one", "580.105.08"]),
        (Wish("runfile"), node(), ["nvidia_driver_version", "an exact one"]),
        (Wish("runfile", "580.7"), node(), ["nvidia_driver_runfile: is required", "controller:/PATH"]),
        (Wish("runfile", "580.7"), node(), ["nvidia_driver_runfile_checksum: is required", "sha256sum"]),
        (Wish("runfile", "580.7", runfile="http://example/x.run"), node(), ["'http://example/x.run'", "https"]),
        (Wish("runfile", "580.7", checksum="md5:7a"), node(), ["'md5:7a' is no checksum"]),
        (installer("580"), node(), ["'580' is not exact", "580.105.08"]),
        (installer("580.7.01-1"), node(), ["'580.7.01-1' is not exact"]),
        (
            replace(installer("580.7.02"), runfile="https://example/d/NVIDIA-Linux-x86_64-580.7.01.run?x=1"),
            node(),
            ["NVIDIA-Linux-x86_64-580.7.01.run has 580.7.01", "is 580.7.02"],
        ),
        (Wish("nvidia", "550"), node("Ampere"), ["nvidia_driver_version", "560", "580"]),
        (Wish("debian", "580"), node(), ["Debian 12", "535 and 470", "source to nvidia, or leave it empty for 535"]),
        (Wish("debian"), node(debian=14), ["Debian 12, 13", "set nvidia"]),
        (Wish("debian"), node("Blackwell"), ["0000:00:00.0", "Blackwell", "570", "set nvidia_driver_source to nvidia"]),
        (Wish("debian"), Node(None), ["Debian 12, 13", "set nvidia"]),
        (Wish("debian"), node("Kepler"), ["Kepler", "up to branch 470", "set 470"]),
        (
            Wish("nvidia", "580"),
            node("Kepler"),
            ["set nvidia_driver_source to debian and nvidia_driver_version to 470"],
        ),
        (Wish("nvidia", "580"), node("Kepler", debian=13), ["Kepler", "take that GPU out"]),
        (installer("595.7"), node("Volta"), ["take an installer of branch 580"]),
        (Wish("nvidia", "595"), node("Pascal"), ["Pascal", "up to branch 580", "set 580"]),
        (Wish("nvidia", "580", "open"), node("Volta"), ["open cannot work", "Volta", "proprietary"]),
        (Wish("nvidia", "580", "proprietary"), node("Blackwell"), ["proprietary cannot work", "Blackwell"]),
        (Wish("nvidia", "630", "proprietary"), node("Hopper"), ["proprietary cannot work", "620"]),
        (Wish("nvidia", "580"), node("Volta", "Blackwell"), ["Volta", "Blackwell", "no driver runs both"]),
        (Wish("nvidia", "580"), node("Hopper", nvswitch=True), ["fabric manager", "exact", "580.105.08"]),
        (Wish("debian"), node("Hopper", nvswitch=True), ["NVSwitch", "802", "set nvidia"]),
        (installer("580.7"), node("Hopper", nvswitch=True), ["NVSwitch", "installer", "set nvidia"]),
        (Wish("nvidia", "580"), node(None), ["nvidia_driver_flavor", "0000:00:00.0", "open or proprietary"]),
        (Wish("debian", cuda="13.0"), node("Ampere"), ["CUDA 13.0", "12.2", "nvidia", "580"]),
        (Wish("debian", cuda="new"), node("Ampere"), ["nvidia_driver_cuda", "12.9"]),
    ],
)
def test_refusals_say_what_to_set_instead(wish: Wish, where: Node, words: list[str]) -> None:
    problems = refused(wish, where)
    assert any(all(word in problem for word in words) for problem in problems), problems


def test_all_refusals_come_at_once() -> None:
    where = replace(node("Blackwell", "Volta", nvswitch=True), kernels=["6.1.0-77-rt-amd64"])
    problems = " ".join(refused(Wish("debian", cuda="13.0"), where))
    for words in ("real-time kernel", "no driver runs both", "fabric manager", "CUDA 13.0", "branch 570 at least"):
        assert words in problems


def test_nothing_is_said_twice() -> None:
    assert len(refused(Wish("nvidia"), node("Hopper", nvswitch=True))) == 1


def test_no_way_out_leads_nowhere() -> None:
    problems = refused(Wish("debian", "580"), node("Blackwell", nvswitch=True))
    assert len(problems) == 2
    assert not any("leave it empty" in problem for problem in problems)


def test_cuda_of_the_same_major_version_runs() -> None:
    planned(Wish("debian", cuda="12.9"), node("Ampere"))


def test_a_real_time_kernel_is_named() -> None:
    for release in ("6.1.0-77-rt-amd64", "6.12.7-rt"):
        (problem,) = refused(Wish("debian"), replace(node(), kernels=[release]))
        assert release in problem
    planned(Wish("debian"), replace(node(), kernels=["6.1.0-77-amd64-art"]))


@pytest.mark.parametrize(
    ("version", "architecture", "manager"),
    [
        ("580.7.01", "Hopper", ["nvidia-fabricmanager=580.7.01-*"]),
        ("570.7.01", "Hopper", ["nvidia-fabricmanager-570=570.7.01-*"]),
        ("580.7.01", "Blackwell", ["nvidia-fabricmanager=580.7.01-*", "nvlsm"]),
    ],
)
def test_the_fabric_manager_has_the_very_version(version: str, architecture: str, manager: list[str]) -> None:
    plan = planned(Wish("nvidia", version), node(architecture, nvswitch=True))
    assert plan.install[-len(manager) :] == manager
    without = planned(Wish("nvidia", version), node(architecture))
    assert not any("fabric" in name for name in [*without.install, *without.units])


def test_the_fabric_manager_does_not_wait_for_files_that_it_makes_itself() -> None:
    """But for what the kernel tells of the switches. Those of NVLink 5 are no devices of NVIDIA's driver at all."""
    hopper = planned(Wish("nvidia", "580.7.01"), node("Hopper", nvswitch=True))
    condition = hopper.units["nvidia-fabricmanager.service"]
    assert condition == "ConditionDirectoryNotEmpty=/proc/driver/nvidia-nvswitch/devices"
    assert "ib_umad" not in hopper.modules
    blackwell = planned(Wish("nvidia", "580.7.01"), node("Blackwell", nvswitch=True))
    assert blackwell.units["nvidia-fabricmanager.service"] == "ConditionPathExists=/dev/nvidiactl"


def test_the_managers_of_nvlink_5_have_their_way_to_the_switches() -> None:
    assert "ib_umad" in planned(Wish("nvidia", "580.7.01"), node("Blackwell", nvswitch=True)).modules
    assert "ib_umad" not in planned(Wish("nvidia", "580.7.01"), node("Blackwell")).modules


def test_a_new_version_takes_the_whole_driver_along() -> None:
    plan = planned(Wish("debian", "535.8.01", "open"), node("Ampere", packages=DEBIAN_OPEN))
    assert "libnvidia-encode1=535.8.01-*" in plan.install
    assert "nvidia-open-kernel-support=535.8.01-*" in plan.install
    assert not any("toolkit" in name for name in plan.install)
    assert plan.remove == plan.remove_first == []
    newer = planned(Wish("nvidia", "580.8"), node("Ampere", packages=NVIDIA_OPEN))
    assert "libcuda1=580.8-*" in newer.install
    # It would pull back to the old version.
    assert newer.remove == ["nvidia-driver-pinning-580.7.01"]


def test_parts_of_debians_main_driver_stay_as_they_are_beside_another() -> None:
    installed = {"nvidia-tesla-535-kernel-dkms": "535.7-1", "nvidia-tesla-535-alternative": "535.7-1"}
    where = node(debian=13, packages={**installed, "nvidia-legacy-check": "550.7-1"})
    plan = planned(Wish("debian", "535.8"), where)
    assert "nvidia-tesla-535-alternative=535.8-*" in plan.install
    assert not any("legacy-check" in name for name in [*plan.install, *plan.remove, *plan.remove_first])


def test_the_same_again_changes_nothing() -> None:
    plan = planned(Wish("nvidia", "580.7.01"), node("Ampere", packages=NVIDIA_OPEN))
    assert plan.remove == plan.remove_first == []


def test_another_flavour_leaves_nothing_of_the_first() -> None:
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
def test_another_source_or_branch_leaves_nothing_of_the_first(wish: Wish, installed: dict[str, str]) -> None:
    plan = planned(wish, node(packages=installed))
    assert set(plan.remove_first) == set(installed) - {"nvidia-container-toolkit"}
    assert plan.remove == []


def test_a_fabric_manager_goes_with_the_switches() -> None:
    installed = {**NVIDIA_OPEN, "nvidia-fabricmanager": "580.7.01-1"}
    assert planned(Wish("nvidia", "580.7.01"), node(packages=installed)).remove == ["nvidia-fabricmanager"]


def test_the_installers_driver_goes_first() -> None:
    there = Installed("580.7.01", None, registered=True)
    assert planned(Wish("debian"), node(runfile=there)).uninstall_runfile
    assert not planned(installer("580.7.01"), node(runfile=there)).uninstall_runfile


def test_secure_boot_wants_a_key() -> None:
    plan = planned(Wish("debian"), node(secure_boot=True))
    assert plan.sign
    assert {"mokutil", "openssl"} <= set(plan.install)


def test_a_key_is_used_before_secure_boot_asks_for_it() -> None:
    plan = planned(Wish("debian", sign=True), node())
    assert plan.sign
    assert {"mokutil", "openssl"} <= set(plan.install)


def test_peermem_is_loaded_where_it_is_asked_for() -> None:
    assert "nvidia-peermem" in planned(Wish("debian", peermem=True), node()).modules


def warnings(wish: Wish, where: Node) -> list[str]:
    decision: Decision = decide(wish, where, KNOWN)
    assert decision.plan is not None
    return decision.warnings


def test_warnings() -> None:
    assert "2026-06" in warnings(Wish("debian"), node(month="2026-07"))[0]
    assert warnings(Wish("debian"), node(month="2026-06")) == []
    assert warnings(Wish("debian"), node()) == []
    assert "630" in warnings(Wish("nvidia", "630"), node())[0]
    assert "0000:00:00.0" in warnings(Wish("nvidia", "580", "open"), node(None))[0]


def test_what_is_held_can_be_pinned() -> None:
    for wish in (Wish("debian"), Wish("nvidia", "580.7.01"), Wish("nvidia", "580.7.01-1")):
        plan = planned(wish, node())
        assert apt_pins.mistakes("nvidia", plan.hold, plan.hold, plan.version) == []
        names = [name.partition("=")[0] for name in plan.install if not name.startswith(("linux-", "dkms"))]
        assert all(pk.matches(name, plan.hold) for name in names)


def test_the_decision_is_plain_data() -> None:
    data = decide(Wish("debian"), node("Ampere"), KNOWN).as_dict()
    assert data["plan"]["branch"] == 535
    assert data["problems"] == data["warnings"] == []
