# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages of a driver: names by source, and those that are installed. Private to the collection.

Sources: Debian 12.15 and 13.7, components contrib, non-free and non-free-firmware, with apt-get --simulate; NVIDIA's
repositories for debian12 and debian13, branches 570 to 610.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..gpu.driver import OPEN, PROPRIETARY, upstream

DEBIAN, NVIDIA, RUNFILE = "debian", "nvidia", "runfile"
"""Sources of a driver: Debian's own packages, NVIDIA's repository, NVIDIA's installer."""

FAMILY = (
    "cuda-drivers",
    "cuda-drivers-*",
    "firmware-nvidia-gsp*",
    "firmware-nvidia-tesla-*",
    "glx-alternative-*",
    "glx-diversions",
    "libcuda1",
    "libcudadebugger1",
    "libegl-nvidia*",
    "libgl1-nvidia*",
    "libgles-nvidia*",
    "libglx-nvidia*",
    "libnvcuvid1",
    "libnvidia-allocator*",
    "libnvidia-api*",
    "libnvidia-cfg*",
    "libnvidia-egl*",
    "libnvidia-encode*",
    "libnvidia-fbc*",
    "libnvidia-gl*",
    "libnvidia-gpucomp*",
    "libnvidia-ml1",
    "libnvidia-ngx*",
    "libnvidia-nscq*",
    "libnvidia-nvvm*",
    "libnvidia-opticalflow*",
    "libnvidia-pkcs11*",
    "libnvidia-present*",
    "libnvidia-ptxjitcompiler*",
    "libnvidia-rtcore*",
    "libnvidia-sandboxutils*",
    "libnvidia-tesla-*",
    "libnvidia-vksc-core*",
    "libnvoptix1",
    "libnvsdm*",
    "libxnvctrl0",
    "nvidia-alternative",
    "nvidia-cuda-mps",
    "nvidia-driver",
    "nvidia-driver-*",
    "nvidia-egl-*",
    "nvidia-fabricmanager*",
    "nvidia-imex*",
    "nvidia-installer-cleanup",
    "nvidia-kernel-*",
    "nvidia-legacy-check",
    "nvidia-modprobe",
    "nvidia-open",
    "nvidia-open-*",
    "nvidia-opencl-common",
    "nvidia-opencl-icd",
    "nvidia-persistenced",
    "nvidia-powerd",
    "nvidia-settings*",
    "nvidia-smi",
    "nvidia-support",
    "nvidia-suspend-common",
    "nvidia-tesla-*",
    "nvidia-vdpau-driver",
    "nvidia-vulkan-*",
    "nvidia-xconfig",
    "nvlsm",
    "update-glx",
    "xserver-xorg-video-nvidia*",
)
"""Packages of a driver, from either source. Without the container toolkit and CUDA, which have their own versions."""

INDEPENDENT = {
    DEBIAN: (
        "glx-alternative-*",
        "glx-diversions",
        "libnvidia-egl-*",
        "libxnvctrl0",
        "nvidia-installer-cleanup",
        "nvidia-kernel-common",
        "nvidia-modprobe",
        "nvidia-persistenced",
        "nvidia-settings*",
        "nvidia-support",
        "nvidia-xconfig",
        "update-glx",
    ),
    NVIDIA: (
        "glx-alternative-*",
        "glx-diversions",
        "libnvidia-egl-*",
        "nvidia-driver-pinning-*",
        "nvidia-support",
        "nvlsm",
        "update-glx",
    ),
}
"""Packages of the family that have versions of their own, other than the driver's. By source."""

MODULE = re.compile(r"nvidia-(?:(?P<series>tesla(?:-\d+)?)-)?(?P<before>open-)?kernel-(?P<after>open-)?dkms")
"""Name of the package of the kernel module. Debian writes open-kernel, NVIDIA kernel-open."""

NVIDIA_MARKS = ("nvidia-kernel-open-dkms", "nvidia-driver-cuda", "nvidia-open", "nvidia-open-[0-9]*", "cuda-drivers*")
"""Packages that only NVIDIA's repository has. nvidia-kernel-dkms and libcuda1 are in both sources."""

SUFFIX = re.compile(r"-(?P<branch>\d{3})(?:\.[0-9.]+)?$")
"""The branch, or the version, at the end of a name, as in nvidia-fabricmanager-570."""


@dataclass(frozen=True)
class Present:
    """The driver that is installed from packages."""

    source: str
    series: str
    """Debian's name for an additional driver, as tesla-535; empty for the main driver."""
    flavor: str | None
    """None if no kernel module is installed, or modules of both flavours."""
    version: str
    """Version without the revision of the package; empty if unknown."""

    @property
    def branch(self) -> int | None:
        return branch_of(self.version)


def matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def branch_of(version: str) -> int | None:
    """The branch of a version, 535 for 535.261.03; None if the text is not a driver's version."""
    match = re.match(r"(\d{3})(?:\.|$)", version)
    return int(match[1]) if match else None


def family(installed: Mapping[str, str]) -> dict[str, str]:
    """The driver's packages among the installed ones, with their versions."""
    return {name: version for name, version in sorted(installed.items()) if matches(name, FAMILY)}


def present(installed: Mapping[str, str]) -> Present | None:
    """The driver that consists of the installed packages; None if there is none."""
    names = family(installed)
    modules = [match for match in map(MODULE.fullmatch, names) if match]
    versions = [names[match[0]] for match in modules]
    versions += [version for name, version in names.items() if matches(name, ("libcuda1", "libnvidia-*-cuda1"))]
    if not versions:
        return None
    flavors = {OPEN if match["before"] or match["after"] else PROPRIETARY for match in modules}
    return Present(
        source=NVIDIA if any(matches(name, NVIDIA_MARKS) for name in names) else DEBIAN,
        series=next((match["series"] for match in modules if match["series"]), ""),
        flavor=flavors.pop() if len(flavors) == 1 else None,
        version=upstream(versions[0]),
    )


def debian_set(series: str, flavor: str, desktop: bool) -> list[str]:
    """Debian's packages for computing, with those for a display if wanted."""
    infix = f"{series}-" if series else ""
    kernel = f"nvidia-{infix}kernel-dkms" if flavor == PROPRIETARY else "nvidia-open-kernel-dkms"
    libraries = [f"libnvidia-{infix}{name}" for name in ("cfg1", "ml1", "nvvm4")]
    cuda = f"libnvidia-{series}-cuda1" if series else "libcuda1"
    display = [f"nvidia-{infix}driver"] if desktop else []
    return [kernel, cuda, *libraries, f"nvidia-{infix}smi", *display, "nvidia-modprobe", "nvidia-persistenced"]


def nvidia_set(flavor: str, desktop: bool) -> list[str]:
    """The packages of NVIDIA's repository for computing, with those for a display if wanted."""
    kernel = "nvidia-kernel-open-dkms" if flavor == OPEN else "nvidia-kernel-dkms"
    display = ["nvidia-driver"] if desktop else []
    return [kernel, "nvidia-driver-cuda", *display, "nvidia-modprobe", "nvidia-persistenced"]


def of_other_flavor(name: str, flavor: str) -> bool:
    """Whether an installed package conflicts with a flavour: it is, or depends on, the other flavour's module."""
    if flavor == OPEN:
        return matches(name, ("nvidia-kernel-dkms", "nvidia-kernel-source", "nvidia-kernel-support", "cuda-drivers*"))
    return matches(name, ("nvidia-open", "nvidia-open-*", "nvidia-kernel-open-*"))


def of_other_branch(name: str, branch: int) -> bool:
    """Whether a package's name ends in another branch or a version of it, as nvidia-driver-pinning-570."""
    match = SUFFIX.search(name)
    return match is not None and int(match["branch"]) != branch
