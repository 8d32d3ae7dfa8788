# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the facts of an installed driver with a plan. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import kernel_check
from .dkms import Module
from .kernels import Kernel


def reasons(
    plan: Mapping[str, Any], facts: Mapping[str, Any], kernels: Sequence[Kernel], version: str, own_key: bool
) -> list[str]:
    """Why the role nvidia_driver has something to do, one sentence for each reason.

    A due reboot is not a reason. Each of `kernels` must have the driver's module. If `version` is not empty, the
    module must have this version. `own_key` means that the site has its own key or password for signatures, which only
    the module nvidia_driver_signing can compare.
    """
    found = []
    if plan["uninstall_runfile"] or plan["install_runfile"]:
        found.append(
            f"the driver of NVIDIA's installer {'must be removed' if plan['uninstall_runfile'] else 'is missing'}"
        )
    if plan["remove_first"]:
        found.append(f"{', '.join(plan['remove_first'])}: packages of another source, series or branch")
    if plan["sign"] and not own_key and not _signed(facts):
        found.append("it is not certain that the key of DKMS has signed every module")
    found += [
        f"kernel {kernel['release']}: the initial RAM disk may contain nouveau"
        for kernel in facts["kernels"]
        if kernel["outdated_initrd"]
    ]
    modules = [Module(**{**one, "notes": tuple(one["notes"])}) for one in facts["dkms"]]
    return found + [
        str(one) for one in kernel_check.problems(kernels, modules, kernel_check.Wanted(version, plan["flavor"]))
    ]


def _signed(facts: Mapping[str, Any]) -> bool:
    """Whether every installed module is signed with DKMS's key. Whether the key is enrolled does not matter here."""
    serial = facts["secure_boot"]["serial"]
    signatures = [kernel["signature"] for kernel in facts["kernels"] if kernel["ready"]]
    return serial is not None and all(one is not None and one["key"] == serial for one in signatures)
