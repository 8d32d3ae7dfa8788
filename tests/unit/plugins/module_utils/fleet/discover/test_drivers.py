# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proposed driver, repositories, toolkit and Docker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.drivers import KEY_URLS, propose
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.finding import Proposal
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.machine import DEBIAN, Machine
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.compatibility import load

Make = Callable[..., Machine]

KNOWN = load()


def values(found: Proposal) -> dict[str, Any]:
    return {one.name: one.value for one in found.variables}


@pytest.mark.parametrize(
    ("kind", "version", "flavor"),
    [
        ("hgx-h100", "580.105.08", "open"),
        ("hgx-b200", "580.105.08", "open"),
        ("a100", "580.105.08", "open"),
        ("l40s", "580", "open"),
        ("v100s", "580", "proprietary"),
    ],
)
def test_each_kind_of_gpu_gets_a_driver_with_a_reason(machine: Make, kind: str, version: str, flavor: str) -> None:
    found = propose(machine(kind), KNOWN)
    assert values(found)["nvidia_driver_version"] == version
    reasons = {one.name: one.reason for one in found.variables}
    assert f"Kernel module {flavor}" in reasons["nvidia_driver_version"]
    assert ("fabric manager" in reasons["nvidia_driver_source"]) == (version != "580")


def test_docker_comes_from_a_source_with_cdi(machine: Make) -> None:
    assert values(propose(machine("l40s"), KNOWN))["docker_source"] == "docker"
    # Docker of Debian 13 supports CDI.
    assert "docker_source" not in values(propose(machine("hgx-b200"), KNOWN))
    snap = propose(machine("l40s", docker={"owner": "snap", "running": []}), KNOWN)
    assert "docker_source" not in values(snap) and "docker_source" in [one.variable for one in snap.questions]


def test_a_machine_without_gpus_gets_no_proposal(machine: Make) -> None:
    assert propose(machine("none"), KNOWN) == Proposal()


def test_volta_needs_an_image_of_an_older_cuda(machine: Make) -> None:
    asked = [one for one in propose(machine("v100s"), KNOWN).questions if one.variable == "engine_image"]
    assert "no code for 3 x V100S-32GB" in asked[0].text
    assert not propose(machine("v100s"), KNOWN, cuda="12.9").questions


def test_no_image_has_code_for_pascal(machine: Make) -> None:
    gpus = [{**each, "compute_capability": "6.1"} for each in machine("v100s").usable_gpus]
    old = machine("v100s", gpus=gpus)
    (asked,) = [one for one in propose(old, KNOWN).questions if one.variable == "engine_image"]
    assert (
        "no version of vLLM has code for it" in asked.text
        and "Remove the machine from the group inference" in asked.text
    )
    assert "Name an image" not in asked.text


@pytest.mark.parametrize(("enabled", "said"), [(None, True), (False, False), (True, False)])
def test_a_state_of_secure_boot_that_is_unknown_is_named(machine: Make, enabled: bool | None, said: bool) -> None:
    found = propose(machine("l40s", secure_boot={"efi": True, "enabled": enabled}), KNOWN)
    assert any("it is unknown whether Secure Boot is on" in line for line in found.findings) is said


def test_an_installed_driver_secure_boot_and_containers_are_named(machine: Make) -> None:
    found = propose(
        machine(
            "l40s",
            driver={"package": {"name": "nvidia-kernel-dkms", "version": "535.1-1"}, "module_version": "535.1"},
            secure_boot={"enabled": True},
            docker={"owner": "debian", "running": ["web", "db"]},
        ),
        KNOWN,
    )
    text = "\n".join(found.findings)
    assert "has the driver of the package nvidia-kernel-dkms 535.1-1: the first run replaces it" in text
    assert "Docker runs 2 containers already (web, db)" in text
    assert "nvidia_driver_mok_password" in [one.variable for one in found.questions]


def test_a_driver_of_the_proposed_version_is_not_replaced(machine: Make) -> None:
    first = next(one.value for one in propose(machine("l40s"), KNOWN).variables if one.name == "nvidia_driver_version")
    package = {"name": "nvidia-kernel-open-dkms", "version": f"{first}.95.05-1"}
    text = "\n".join(propose(machine("l40s", driver={"package": package, "error": None}), KNOWN).findings)
    assert f"has the driver of the package nvidia-kernel-open-dkms {first}.95.05-1" in text
    assert "the first run replaces it" not in text


def test_the_address_of_each_repositorys_key_is_known(machine: Make) -> None:
    for debian in DEBIAN:
        (sources,) = [
            one.value
            for one in propose(machine("l40s", debian=debian), KNOWN).variables
            if one.name == "common_apt_sources"
        ]
        assert {source["key"].rpartition("/")[2] for source in sources} <= KEY_URLS.keys()
        assert all(source["key"].startswith("controller:{{ inventory_dir }}/group_vars/all/") for source in sources)
        assert all(len(fingerprint) == 40 for source in sources for fingerprint in source["fingerprints"])
        # NVIDIA names a key's file by the last digits of its fingerprint.
        (pinned,) = sources[0]["fingerprints"]
        published = KEY_URLS[sources[0]["key"].rpartition("/")[2]]
        assert pinned.endswith(published.rpartition("/")[2].removesuffix(".pub").upper())


def test_a_gpu_without_any_driver_becomes_a_question(machine: Make) -> None:
    kepler = {"architecture": "Kepler", "pci_bus_id": "0000:1a:00.0", "name": "Tesla K80", "product": None}
    found = propose(machine("l40s", gpus=[kepler]), KNOWN)
    assert not found.variables and "no driver fits" in found.questions[0].text
