# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of a driver that make the role nvidia_driver due."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import due
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.kernels import Kernel

KERNEL = "6.1.0-70-amd64"
MODULE = {
    "name": "nvidia",
    "version": "580.95.05",
    "kernel": KERNEL,
    "arch": "x86_64",
    "state": "installed",
    "notes": [],
}
PLAN: dict[str, Any] = {
    "uninstall_runfile": False,
    "install_runfile": False,
    "remove_first": [],
    "sign": False,
    "flavor": "open",
}
FIRMWARE: dict[str, Any] = {"serial": "0A7F", "enabled": False, "key": None, "problem": None}
SIGNED = {"release": KERNEL, "ready": True, "outdated_initrd": False, "signature": {"signer": "DKMS", "key": "0A7F"}}
FACTS: dict[str, Any] = {"difference": None, "secure_boot": FIRMWARE, "kernels": [SIGNED], "dkms": [MODULE]}


def reasons(
    plan: dict[str, Any] | None = None, facts: dict[str, Any] | None = None, own_key: bool = False
) -> list[str]:
    kernels = [Kernel(KERNEL, headers=True)]
    return due.reasons(PLAN | (plan or {}), FACTS | (facts or {}), kernels, "580.95.05", own_key)


def test_a_complete_driver_gives_no_reason() -> None:
    assert reasons() == []
    assert reasons({"sign": True}) == []
    assert reasons({"sign": True}, {"secure_boot": {**FIRMWARE, "enabled": True, "key": "enrolled"}}) == []


@pytest.mark.parametrize(
    ("plan", "facts", "words"),
    [
        ({"uninstall_runfile": True}, {}, "NVIDIA's installer must be removed"),
        ({"install_runfile": True}, {}, "NVIDIA's installer is missing"),
        ({"remove_first": ["libcuda1"]}, {}, "libcuda1: packages of another source"),
        ({"sign": True}, {"kernels": [{**SIGNED, "signature": None}]}, "not certain that the key of DKMS"),
        (
            {"sign": True},
            {"kernels": [{**SIGNED, "signature": {"signer": "DKMS", "key": "FF"}}]},
            "not certain that the key of DKMS",
        ),
        ({"sign": True}, {"secure_boot": {**FIRMWARE, "serial": None}}, "not certain that the key of DKMS"),
        ({}, {"kernels": [{**SIGNED, "outdated_initrd": True}]}, "may contain nouveau"),
        ({}, {"dkms": []}, "DKMS"),
        ({}, {"dkms": [{**MODULE, "state": "added"}]}, f"kernel {KERNEL}"),
        ({}, {"dkms": [{**MODULE, "version": "575.1"}]}, "580.95.05"),
        ({}, {"dkms": [{**MODULE, "notes": ["Diff between built and installed module!"]}]}, "DKMS warns"),
    ],
)
def test_each_difference_is_a_reason(plan: dict[str, Any], facts: dict[str, Any], words: str) -> None:
    found = reasons(plan, facts)
    assert len(found) == 1 and words in found[0]


def test_a_due_reboot_is_no_reason() -> None:
    missing = {"secure_boot": {**FIRMWARE, "enabled": True, "key": "missing", "problem": "enrol it"}}
    assert reasons({"sign": True}, missing) == []
    assert reasons({}, {"difference": "the loaded module is older"}) == []


def test_with_a_sites_own_key_missing_signatures_are_no_reason() -> None:
    unsigned = {"kernels": [{**SIGNED, "signature": None}]}
    assert reasons({"sign": True}, unsigned) != []
    assert reasons({"sign": True}, unsigned, own_key=True) == []
