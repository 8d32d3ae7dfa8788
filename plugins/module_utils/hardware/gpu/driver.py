# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the loaded driver and the installed one. Private to the collection."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ...core import sysfs
from ..pci import GIVEN_AWAY
from .models import Gpu
from .values import whole, word

LOADED = re.compile(r"Kernel Module(?: +for +\S+)? +([0-9]+(?:\.[0-9]+)+)")

MODULE_PACKAGE = re.compile(r"nvidia-(?:[a-z0-9.]+-)*dkms(?:-[a-z0-9.]+)*")
"""Debian's nvidia-kernel-dkms and nvidia-open-kernel-dkms, NVIDIA's nvidia-kernel-open-dkms, also with a branch."""

LIBRARY = "libnvidia-ml.so"
LIBRARIES = ("usr/lib/*-linux-gnu", "usr/lib/*-linux-gnu/nvidia/*", "usr/lib64")

OPEN, PROPRIETARY = "open", "proprietary"


def upstream(version: str) -> str:
    """The driver's version in a package's version: 535.183.01 in 535.183.01-1~deb12u1."""
    without_epoch = version.rpartition(":")[2]
    return without_epoch.rpartition("-")[0] or without_epoch


@dataclass(frozen=True)
class Package:
    """The package from which the kernel module is built."""

    name: str
    version: str
    flavor: str

    @property
    def upstream(self) -> str:
        return upstream(self.version)


@dataclass(frozen=True)
class Driver:
    """The loaded module, the installed package and the installed library."""

    module_version: str | None
    module_flavor: str | None
    package: Package | None
    library_version: str | None

    @property
    def matches_package(self) -> bool | None:
        """Whether the loaded module is the installed one; None if either is unknown."""
        if self.module_version is None or self.package is None:
            return None
        same_flavor = self.module_flavor in (None, self.package.flavor)
        return self.module_version == self.package.upstream and same_flavor


def read(root: Path) -> Driver:
    """The driver below a root, without any command."""
    version, flavor = loaded(sysfs.read(root / "proc/driver/nvidia/version") or "")
    return Driver(
        module_version=version or sysfs.read(root / "sys/module/nvidia/version") or None,
        module_flavor=flavor,
        package=package(_status(root)),
        library_version=_library(root),
    )


def loaded(text: str) -> tuple[str | None, str | None]:
    """Version and flavour of the loaded module, from /proc/driver/nvidia/version; None if unknown.

    The text names the open module as such. The text after the version is free, such as a date in any language.
    """
    match = LOADED.search(text)
    if match is None:
        return None, None
    return match[1], OPEN if "Open Kernel Module" in text else PROPRIETARY


def package(status: str) -> Package | None:
    """The installed package of the kernel module in dpkg's status file; None if there is none, or several."""
    found = []
    for paragraph in re.findall(r"^Package: nvidia-.*(?:\n.+)*", status, re.MULTILINE):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if re.match(r"[A-Z][\w-]*: ", line))
        if MODULE_PACKAGE.fullmatch(fields["Package"]) and fields.get("Status", "").endswith(" installed"):
            flavor = OPEN if "open" in fields["Package"].split("-") else PROPRIETARY
            found.append(Package(fields["Package"], fields.get("Version", ""), flavor))
    return found[0] if len(found) == 1 else None


def information(root: Path, gpu: Gpu) -> None:
    """Add a GPU's data from the module's own files, without a tool that may hang."""
    # The module names its directories by the PCI addresses of sysfs.
    text = sysfs.read(root / "proc/driver/nvidia/gpus" / (gpu.pci_bus_id or "") / "information") or ""
    fields = {key.strip(): value.strip() for key, _colon, value in (line.partition(":") for line in text.splitlines())}

    def known(key: str) -> str | None:
        # Values that the module has not read yet consist of question marks.
        value = word(fields.get(key))
        return None if value is None or "?" in value else value

    gpu.name = gpu.name or (None if known("Model") == "Unknown" else known("Model"))
    gpu.uuid = gpu.uuid or known("GPU UUID")
    gpu.vbios_version = gpu.vbios_version or known("Video BIOS")
    gpu.gsp_firmware_version = gpu.gsp_firmware_version or known("GPU Firmware")
    if gpu.minor_number is None:
        gpu.minor_number = whole(fields.get("Device Minor"))


def excluded(root: Path, address: str) -> bool:
    """Whether the module's parameter NVreg_ExcludedGpus excludes a GPU."""
    text = sysfs.read(root / "proc/driver/nvidia/gpus" / address / "information") or ""
    return bool(re.search(r"^GPU (?:Excluded|Blacklisted):\s*Yes", text, re.MULTILINE))


def left_alone(root: Path, kernel_driver: str | None, address: str) -> bool:
    """Whether NVIDIA's driver does not use a GPU: a virtual machine has it, or NVreg_ExcludedGpus excludes it."""
    return kernel_driver in GIVEN_AWAY or excluded(root, address)


def _status(root: Path) -> str:
    try:
        return (root / "var/lib/dpkg/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _library(root: Path) -> str | None:
    """The version of the NVML library, by its file's name; None if there is no version, or several."""
    versions = {
        path.name.removeprefix(f"{LIBRARY}.")
        for directory in LIBRARIES
        for path in root.glob(f"{directory}/{LIBRARY}.*.*")
    }
    return versions.pop() if len(versions) == 1 else None
