# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks whether every kernel that could run next has the driver's module. Private to the collection.

Without this check, a failed build after a kernel upgrade shows only at the next boot, when engines have no GPUs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.problems import Problem
from .dkms import Module
from .kernels import HEADERS, Kernel, is_real_time

TREE = Path("/var/lib/dkms")

READY = ("installed", "installed-weak")
"""States of a module in the kernel's directory; weak: it was built for a compatible kernel."""


@dataclass(frozen=True)
class Wanted:
    """The driver that the kernels must have; an empty field accepts any value."""

    version: str = ""
    """Version without the revision of a package, as 580.105.08."""
    flavor: str = ""
    """open or proprietary. NVIDIA's packages build both under one name, so NVIDIA's module counts as either."""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.flavor, "driver", self.version)))

    def among(self, modules: Iterable[Module]) -> list[Module]:
        """The driver's modules with this version and flavour."""
        return [
            module
            for module in modules
            if module.is_nvidia_driver
            and self.version in ("", module.version)
            and (not self.flavor or module.is_open in (None, self.flavor == "open"))
        ]


def problems(kernels: Sequence[Kernel], modules: Sequence[Module], wanted: Wanted) -> list[Problem]:
    """Why kernels do not have the driver, at most one problem for each kernel."""
    if not kernels:
        message = "has no vmlinuz-*, so this machine boots from elsewhere: name its kernels with the option kernels"
        return [Problem("/boot", message)]
    candidates = wanted.among(modules)
    if candidates:
        return [problem for problem in (_problem(kernel, candidates) for kernel in kernels) if problem]
    others = dict.fromkeys(f"{module.name}/{module.version}" for module in modules if module.is_nvidia_driver)
    known = f"found {', '.join(others)}" if others else "found no module nvidia"
    return [Problem("DKMS", f"has no {wanted} to build ({known}): install the driver's -dkms package")]


def ready(kernel: Kernel, candidates: Iterable[Module]) -> Module | None:
    """The driver's installed module of a kernel, if DKMS has no warning about it; else None."""
    return next((one for one in candidates if _is_installed(one, kernel) and one.doubt is None), None)


def _is_installed(module: Module, kernel: Kernel) -> bool:
    return module.kernel == kernel.release and module.state in READY


def _problem(kernel: Kernel, candidates: list[Module]) -> Problem | None:
    if ready(kernel, candidates):
        return None
    # Prefer a module that DKMS has tried for this kernel, then a module with its source.
    module = min(candidates, key=lambda one: (one.kernel != kernel.release, one.state == "broken"))
    name = f"{module.name}/{module.version}"
    build = f"dkms install {name} -k {kernel.release}"
    log = TREE / module.name / module.version / "build/make.log"
    if is_real_time(kernel.release):
        message = "is a real-time kernel, for which the driver is not built: remove its package linux-image"
    elif module.state == "broken":
        message = f"the source of {name} is missing: reinstall the driver's -dkms package, then run {build}"
    elif _is_installed(module, kernel):
        message = f"{name} is installed, but DKMS warns: {module.doubt}. Run {build} --force"
    elif not kernel.headers:
        message = f"has no headers to build {name} with: run apt-get install {HEADERS}{kernel.release}, then {build}"
    else:
        state = "built, but not installed" if module.kernel == kernel.release else "not built"
        message = f"{name} is {state}: run {build}. If this fails, see {log}"
    return Problem(f"kernel {kernel.release}", message)
