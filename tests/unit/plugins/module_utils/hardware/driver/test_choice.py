# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Branch and flavour of a driver, and refusals of wishes that cannot work."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.choice import Node, Wish
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.plan import Decision, decide
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.driver.nodes import (
    KNOWN,
    installer,
    node,
    planned,
    refused,
)


@pytest.mark.parametrize(
    ("architectures", "version", "flavor", "reason"),
    [
        (["Volta"], "580", "proprietary", "no open kernel module"),
        (["Volta", "Ampere"], "580", "proprietary", "no open kernel module"),
        (["Blackwell"], "580", "open", "has only an open kernel module"),
        (["Hopper"], "580", "open", "560"),
        (["Hopper"], "630", "open", "620"),
        ([], "580", "open", "560"),
    ],
)
def test_the_flavour_comes_from_the_gpus_or_from_the_branch(
    architectures: list[str | None], version: str, flavor: str, reason: str
) -> None:
    plan = planned(Wish("nvidia", version), node(*architectures))
    assert plan.flavor == flavor
    assert reason in plan.reason


def test_the_first_and_the_last_branch_of_a_gpu_are_accepted() -> None:
    assert planned(Wish("nvidia", "570"), node("Blackwell")).branch == 570
    assert planned(Wish("nvidia", "580"), node("Maxwell")).branch == 580


def test_a_wanted_flavour_overrides_the_default() -> None:
    assert planned(Wish("debian", flavor="open"), node("Ampere")).flavor == "open"
    assert planned(Wish("nvidia", "580", "proprietary"), node("Ampere")).flavor == "proprietary"


@pytest.mark.parametrize(
    ("wish", "where", "words"),
    [
        (Wish("ubuntu"), node(), ["nvidia_driver_source", "debian, nvidia, runfile"]),
        (Wish("debian", flavor="opn"), node(), ["nvidia_driver_flavor", "did you mean 'open'"]),
        (Wish("nvidia", "latest"), node(), ["nvidia_driver_version", "'latest'", "580.105.08"]),
        (Wish("nvidia", "580-1"), node(), ["nvidia_driver_version", "'580-1' is not a version"]),
        (Wish("nvidia"), node(), ["nvidia_driver_version", "set a branch", "580"]),
        (Wish("nvidia"), node("Hopper", nvswitch=True), ["nvidia_driver_version", "a full version", "580.105.08"]),
        (Wish("runfile"), node(), ["nvidia_driver_version", "a full version"]),
        (Wish("runfile", "580.7"), node(), ["nvidia_driver_runfile: is required", "controller:/PATH"]),
        (Wish("runfile", "580.7"), node(), ["nvidia_driver_runfile_checksum: is required", "sha256sum"]),
        (Wish("runfile", "580.7", runfile="http://example/x.run"), node(), ["'http://example/x.run'", "https"]),
        (Wish("runfile", "580.7", checksum="md5:7a"), node(), ["'md5:7a' is not a checksum"]),
        (installer("580"), node(), ["'580' is not a full version", "580.105.08"]),
        (installer("580.7.01-1"), node(), ["'580.7.01-1' is not a full version"]),
        (
            replace(installer("580.7.02"), runfile="https://example/d/NVIDIA-Linux-x86_64-580.7.01.run?x=1"),
            node(),
            ["NVIDIA-Linux-x86_64-580.7.01.run has the version 580.7.01", "is 580.7.02"],
        ),
        (Wish("nvidia", "550"), node("Ampere"), ["nvidia_driver_version", "560", "580"]),
        (
            Wish("debian", "580"),
            node(),
            ["Debian 12", "535 and 470", "source to nvidia, or leave nvidia_driver_version empty for 535"],
        ),
        (Wish("debian"), node(debian=14), ["Debian 12 and 13", "set nvidia"]),
        (Wish("debian"), node("Blackwell"), ["0000:00:00.0", "Blackwell", "570", "set nvidia_driver_source to nvidia"]),
        (Wish("debian"), Node(None), ["Debian 12 and 13", "set nvidia"]),
        (Wish("debian"), node("Kepler"), ["Kepler", "up to branch 470", "set 470"]),
        (
            Wish("nvidia", "580"),
            node("Kepler"),
            ["set nvidia_driver_source to debian and nvidia_driver_version to 470"],
        ),
        (Wish("nvidia", "580"), node("Kepler", debian=13), ["Kepler", "remove the GPU from the node", "an installer"]),
        (installer("470.7", "open"), node("Ampere"), ["470 has no open kernel module, only branches from 515 on"]),
        (installer("595.7"), node("Volta"), ["use an installer of branch 580"]),
        (Wish("nvidia", "595"), node("Pascal"), ["Pascal", "up to branch 580", "set 580"]),
        (Wish("nvidia", "580", "open"), node("Volta"), ["open cannot work", "Volta", "proprietary"]),
        (Wish("nvidia", "580", "proprietary"), node("Blackwell"), ["proprietary cannot work", "Blackwell"]),
        (Wish("nvidia", "630", "proprietary"), node("Hopper"), ["proprietary cannot work", "620"]),
        (Wish("nvidia", "580"), node("Volta", "Blackwell"), ["Volta", "Blackwell", "no driver runs both"]),
        (Wish("nvidia", "580"), node("Hopper", nvswitch=True), ["exactly the driver's version", "580.105.08"]),
        (Wish("debian"), node("Hopper", nvswitch=True), ["NVSwitch", "802", "set nvidia"]),
        (installer("580.7"), node("Hopper", nvswitch=True), ["NVSwitch", "installer", "set nvidia"]),
        (Wish("nvidia", "580"), node(None), ["nvidia_driver_flavor", "0000:00:00.0", "open or proprietary"]),
        (Wish("debian", cuda="13.0"), node("Ampere"), ["CUDA 13.0", "12.2", "nvidia", "580"]),
        # The first branches with this CUDA have no source here.
        (Wish("debian", "470", cuda="12.9"), Node(None), ["CUDA 12.9", "nvidia_driver_source to nvidia", "to 570"]),
        (installer("470.7", cuda="12.9"), Node(None), ["CUDA 12.9", "use an installer of branch 535"]),
        (Wish("debian", cuda="new"), node("Ampere"), ["nvidia_driver_cuda", "12.9"]),
    ],
)
def test_the_refusal_of_a_wish_names_the_reason_or_the_setting_to_change(
    wish: Wish, where: Node, words: list[str]
) -> None:
    problems = refused(wish, where)
    assert any(all(word in problem for word in words) for problem in problems), problems


TO_580 = "set nvidia_driver_source to nvidia and nvidia_driver_version to 580"
TO_470 = "set nvidia_driver_source to debian and nvidia_driver_version to 470"


@pytest.mark.parametrize(
    ("wish", "where", "words"),
    [
        (Wish("debian", "550"), node("Ampere"), f"{TO_580}, or leave nvidia_driver_version empty for 535"),
        (Wish("debian", "470"), node("Ampere", debian=13), f"{TO_580}, or leave nvidia_driver_version empty for 550"),
        (Wish("debian", "580"), node("Kepler"), "only 535 and 470: set 470"),
        (Wish("nvidia", "470"), node("Kepler"), TO_470),
        (Wish("nvidia", "550"), node("Ampere"), "not for 550: set 580"),
        (Wish("debian", "535", "open"), node("Ampere", debian=13), TO_580),
        (Wish("debian"), Node(None), "set nvidia, and 580 as nvidia_driver_version"),
        (Wish("debian", "590"), Node(None), "set nvidia"),
        (Wish("debian", "470", "open"), node("Kepler"), "set nvidia_driver_flavor to proprietary"),
    ],
)
def test_a_refusal_ends_with_the_settings_to_change(wish: Wish, where: Node, words: str) -> None:
    problems = refused(wish, where)
    assert any(problem.endswith(words) for problem in problems), problems


@pytest.mark.parametrize(
    ("wish", "where"),
    [
        (Wish("nvidia", "580"), node("Ampere")),
        (Wish("nvidia", "580"), node("Ampere", debian=13)),
        (Wish("debian", "470"), node("Kepler")),
        (Wish("nvidia", "580"), Node(None)),
        (Wish("nvidia", "590"), Node(None)),
    ],
)
def test_the_advised_drivers_are_accepted(wish: Wish, where: Node) -> None:
    assert decide(wish, where, KNOWN).problems == []


def test_all_problems_of_a_wish_are_reported_at_once() -> None:
    where = replace(node("Blackwell", "Volta", nvswitch=True), kernels=["6.1.0-77-rt-amd64"])
    problems = " ".join(refused(Wish("debian", cuda="13.0"), where))
    for words in ("real-time kernel", "no driver runs both", "fabric manager", "CUDA 13.0", "branch 570 or later"):
        assert words in problems


def test_a_missing_version_with_nvswitches_is_one_problem() -> None:
    assert len(refused(Wish("nvidia"), node("Hopper", nvswitch=True))) == 1


def test_a_refusal_does_not_suggest_a_version_that_cannot_work() -> None:
    problems = refused(Wish("debian", "580"), node("Blackwell", nvswitch=True))
    assert len(problems) == 2
    assert not any("empty for" in problem for problem in problems)


def test_a_later_cuda_of_the_same_major_version_is_accepted() -> None:
    planned(Wish("debian", cuda="12.9"), node("Ampere"))


def test_a_real_time_kernel_is_refused() -> None:
    for release in ("6.1.0-77-rt-amd64", "6.12.7-rt"):
        (problem,) = refused(Wish("debian"), replace(node(), kernels=[release]))
        assert release in problem
    planned(Wish("debian"), replace(node(), kernels=["6.1.0-77-amd64-art"]))


def warnings(wish: Wish, where: Node) -> list[str]:
    decision: Decision = decide(wish, where, KNOWN)
    assert decision.plan is not None
    return decision.warnings


def test_an_unsupported_branch_an_unknown_branch_and_an_unknown_gpu_give_warnings() -> None:
    assert "2026-06" in warnings(Wish("debian"), node(month="2026-07"))[0]
    assert warnings(Wish("debian"), node(month="2026-06")) == []
    assert warnings(Wish("debian"), node()) == []
    assert "630" in warnings(Wish("nvidia", "630"), node())[0]
    assert "0000:00:00.0" in warnings(Wish("nvidia", "580", "open"), node(None))[0]
