# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the loaded kernel module with the installed one. Private to the collection."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ...core import sysfs
from ..gpu import driver
from ..gpu.driver import OPEN, PROPRIETARY


@dataclass(frozen=True)
class Build:
    """Version and flavour of a kernel module; None if unknown."""

    version: str | None
    flavor: str | None

    def __str__(self) -> str:
        return " ".join(filter(None, (self.flavor, self.version))) or "unknown"


def loaded(root: Path) -> Build | None:
    """The loaded module nvidia; None if it is not loaded."""
    if not (root / "sys/module/nvidia").is_dir():
        return None
    version, flavor = driver.loaded(sysfs.read(root / "proc/driver/nvidia/version") or "")
    return Build(version or sysfs.read(root / "sys/module/nvidia/version") or None, flavor)


def modinfo(output: str) -> Build | None:
    """The module in the output of ``modinfo``; None if the output has no version.

    The open module is licensed "Dual MIT/GPL", the proprietary one "NVIDIA". Source: MODULE_LICENSE of both.
    """
    fields = dict(re.findall(r"^(license|version):[ \t]+(.+?)\s*$", output, re.MULTILINE))
    if "version" not in fields:
        return None
    flavor = {"NVIDIA": PROPRIETARY}.get(
        fields.get("license", ""), OPEN if "GPL" in fields.get("license", "") else None
    )
    return Build(fields["version"], flavor)


def difference(running: Build | None, on_disk: Build | None) -> str | None:
    """How the loaded module differs from the one on disk; None if both are equal, or one is missing or unknown.

    Until the module is loaded again, the driver's libraries can be those of another version.
    """
    if running is None or on_disk is None:
        return None
    pairs = ((running.version, on_disk.version), (running.flavor, on_disk.flavor))
    if not any(one and other and one != other for one, other in pairs):
        return None
    return f"the loaded module is {running}, the installed one {on_disk}"
