# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chooses branch and flavour of a driver, or reports why the wish cannot work. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.problems import Problem, nearest
from ..gpu.driver import OPEN, PROPRIETARY
from . import runfile
from .compatibility import IMPOSSIBLE, REQUIRED, Architecture, Compatibility, DebianDriver
from .kernels import is_real_time
from .packages import DEBIAN, NVIDIA, RUNFILE

AUTO = "auto"

SOURCES = (DEBIAN, NVIDIA, RUNFILE)
FLAVORS = (AUTO, OPEN, PROPRIETARY)

VERSION = re.compile(r"(?P<branch>\d{3})(?:(?P<exact>\.\d+(?:\.\d+)?)(?P<revision>-[A-Za-z0-9.+~]+)?)?")
"""A branch, 580; a version, 580.105.08; or a version of a package, 580.105.08-1."""

CUDA = re.compile(r"\d{1,2}(?:\.\d+)?")

LONG_TERM = "long-term support"

FIRST_OPEN_BRANCH = 515
"""First branch whose installer has two kernel modules. Source: NVIDIA's release notes of 515.43.04."""


@dataclass(frozen=True)
class Wish:
    """The driver that the operator asks for."""

    source: str
    version: str = ""
    """A branch or a version; empty for Debian's own version."""
    flavor: str = AUTO
    desktop: bool = False
    """Also install the packages for a display."""
    peermem: bool = False
    """Load nvidia-peermem, which GPUDirect RDMA needs if the NICs have DOCA's driver."""
    cuda: str = ""
    """CUDA version of the engines, as 12.9; empty if unknown."""
    sign: bool = False
    """Sign the modules although Secure Boot is off."""
    runfile: str = ""
    """NVIDIA's installer: controller:/PATH, a path on the node, or an https URL."""
    checksum: str = ""
    """Checksum of the installer, as sha256:…"""


@dataclass(frozen=True)
class Node:
    """Facts about the node."""

    debian: int | None
    """Major version of Debian; None on another system."""
    gpus: Sequence[Mapping[str, Any]] = ()
    """GPUs as in `gpu_facts`, with `pci_bus_id`, `name` and `architecture`."""
    nvswitch: bool = False
    packages: Mapping[str, str] = field(default_factory=dict)
    """Versions of the installed packages of driver and kernels, by name."""
    kernels: Sequence[str] = ()
    """Releases of the kernels that could be booted."""
    secure_boot: bool | None = None
    runfile: runfile.Installed | None = None
    """The driver that NVIDIA's installer has installed; None without one."""
    month: str = ""
    """The present month, as 2026-11, for the check of ends of life; empty for no check."""


@dataclass(frozen=True)
class Found:
    """An architecture among the node's GPUs, with one of its GPUs for messages."""

    architecture: Architecture
    gpu: str

    def __str__(self) -> str:
        return self.gpu

    def fits(self, branch: int) -> bool:
        return (self.architecture.first_branch or branch) <= branch <= (self.architecture.last_branch or branch)


@dataclass(frozen=True)
class Choice:
    """A driver that fits."""

    branch: int
    flavor: str
    reason: str
    """Why this flavour."""
    series: str
    """Part of the names of Debian's packages; empty for the main driver and for other sources."""
    blackwell: bool
    """Whether the node has GPUs of Blackwell. With NVSwitches, these have NVLink 5, which needs a subnet manager."""


class Chooser:
    """One choice, with its problems and warnings."""

    def __init__(self, wish: Wish, node: Node, known: Compatibility) -> None:
        self.wish = wish
        self.node = node
        self.known = known
        self.problems: list[Problem] = []
        self.warnings: list[str] = []

    def choose(self) -> Choice | None:
        """The driver; None if there are problems."""
        self.check_words()
        self.check_runfile()
        self.check_kernels()
        found = self.architectures()
        if self.wish.source not in SOURCES:
            return None
        self.check_nvswitch()
        branch, driver = self.branch(found)
        if branch is None:
            return None
        self.check_generations(branch, found)
        self.check_lifetime(branch)
        flavor, reason = self.flavor(branch, driver, found)
        if self.problems:
            return None
        blackwell = any(one.architecture.open_module == REQUIRED for one in found)
        return Choice(branch, flavor, reason, driver.series if driver else "", blackwell)

    def refuse(self, variable: str, message: str) -> None:
        self.problems.append(Problem(f"nvidia_driver_{variable}", message))

    def check_words(self) -> None:
        if self.wish.source not in SOURCES:
            self.refuse("source", f"{self.wish.source!r} is not a source; {nearest(self.wish.source, SOURCES)}")
        if self.wish.flavor not in FLAVORS:
            self.refuse("flavor", f"{self.wish.flavor!r} is not a flavour; {nearest(self.wish.flavor, FLAVORS)}")
        if self.wish.cuda and not CUDA.fullmatch(self.wish.cuda):
            self.refuse("cuda", f"{self.wish.cuda!r} is not a version of CUDA: write it as 12.9")

    def check_runfile(self) -> None:
        """Check the installer's path, checksum and version, and the version in its name."""
        if self.wish.source != RUNFILE:
            return
        origin = runfile.origin(self.wish.runfile)
        if origin is None:
            message = f"{self.wish.runfile!r} is not a path or URL" if self.wish.runfile else "is required"
            self.refuse("runfile", f"{message}: write controller:/PATH, a path on the node, or an https URL")
        if not runfile.CHECKSUM.fullmatch(self.wish.checksum):
            wrong = f"{self.wish.checksum!r} is not a checksum" if self.wish.checksum else "is required"
            self.refuse("runfile_checksum", f"{wrong}: write sha256: and the digits that sha256sum prints for the file")
        match = VERSION.fullmatch(self.wish.version)
        if match and not runfile.EXACT.fullmatch(self.wish.version):
            message = "is not a full version: write the installer's version, such as 580.105.08"
            self.refuse("version", f"{self.wish.version!r} {message}")
        named = runfile.of_name(origin.name).version if origin else None
        if match and named and named != self.wish.version:
            message = f"has the version {named}, but nvidia_driver_version is {self.wish.version}: correct one of them"
            self.refuse("runfile", f"{origin.name if origin else ''} {message}")

    def check_kernels(self) -> None:
        for release in filter(is_real_time, self.node.kernels):
            message = "is a real-time kernel, for which NVIDIA's driver is not built: remove its package linux-image"
            self.problems.append(Problem(f"kernel {release}", message))

    def architectures(self) -> list[Found]:
        """The known architectures among the node's GPUs."""
        found: dict[str, Found] = {}
        for gpu in self.node.gpus:
            name = str(gpu.get("architecture"))
            where = f"GPU {gpu.get('pci_bus_id') or '?'} ({gpu.get('name') or 'of unknown name'})"
            if name in self.known.architectures:
                found.setdefault(name, Found(self.known.architectures[name], f"{where}, {name}"))
            elif self.wish.flavor == AUTO:
                self.refuse("flavor", f"the architecture of {where} is not known: set open or proprietary")
            else:
                self.warnings.append(f"the architecture of {where} is not known, so nothing is checked for this GPU")
        return list(found.values())

    def branch(self, found: list[Found]) -> tuple[int | None, DebianDriver | None]:
        """The wanted branch, and Debian's driver of this branch if Debian is the source. Refuses a wrong branch."""
        match = VERSION.fullmatch(self.wish.version)
        if self.wish.version and not match:
            message = "is not a version: write a branch, such as 580, or a version, such as 580.105.08"
            self.refuse("version", f"{self.wish.version!r} {message}")
            return None, None
        branch = int(match["branch"]) if match else None
        if self.wish.source == DEBIAN:
            return self.debian_branch(branch, found)
        first = self.known.rules.compute_packages_from
        if branch is None:
            exact = self.wish.source == RUNFILE or self.node.nvswitch
            example = "a full version, such as 580.105.08" if exact else "a branch, such as 580"
            self.refuse("version", f"is empty, but the source {self.wish.source} has many versions: set {example}")
        elif self.wish.source == NVIDIA and branch < first:
            message = (
                f"NVIDIA's repository has packages without the parts for a display only from branch {first} on, not "
                f"for {branch}"
            )
            self.refuse("version", f"{message}: {self.way_to(self.advised(found))}")
        return branch, None

    def debian_branch(self, branch: int | None, found: list[Found]) -> tuple[int | None, DebianDriver | None]:
        drivers = self.known.debian_drivers(self.node.debian) if self.node.debian else []
        if not drivers:
            releases = sorted({driver.release for driver in self.known.debian})
            message = (
                f"only the drivers of Debian {' and '.join(map(str, releases))} are known, not of this node's system"
            )
            advised = self.advised(found)
            more = "" if self.nvidia_has(branch, found) else f", and {advised} as nvidia_driver_version"
            way = f"set nvidia{more}" if self.source_of(advised) else self.way_to(advised)
            self.refuse("source", f"{message}: {way}")
            return branch, None
        chosen = next((driver for driver in drivers if branch in (None, driver.branch)), None)
        if chosen is None:
            has = " and ".join(str(driver.branch) for driver in drivers)
            main = drivers[0].branch
            other = f", or leave nvidia_driver_version empty for {main}" if all(one.fits(main) for one in found) else ""
            message = f"Debian {self.node.debian} has no branch {branch}, only {has}"
            only_source = self.nvidia_has(branch, found)
            way = "set nvidia_driver_source to nvidia" if only_source else self.way_to(self.advised(found))
            self.refuse("version", f"{message}: {way}{other}")
            return branch, None
        return chosen.branch, chosen

    @property
    def long_term(self) -> int:
        """The newest branch with long-term support."""
        return max(one.branch for one in self.known.branches.values() if one.kind == LONG_TERM)

    def advised(self, found: list[Found]) -> int:
        """The branch to advise: the newest with long-term support, or the nearest branch that fits the node's GPUs."""
        lasts = [one.architecture.last_branch for one in found if one.architecture.last_branch]
        firsts = [one.architecture.first_branch for one in found if one.architecture.first_branch]
        return max([min([self.long_term, *lasts]), *firsts])

    def nvidia_has(self, branch: int | None, found: list[Found]) -> bool:
        """Whether NVIDIA's repository has packages of a wanted branch, which fits the node's GPUs."""
        return branch is not None and self.source_of(branch) == NVIDIA and all(one.fits(branch) for one in found)

    def source_of(self, branch: int) -> str | None:
        """The source of packages of a branch for the node's system; None if no source has the branch."""
        if branch >= self.known.rules.compute_packages_from:
            return NVIDIA
        in_debian = self.node.debian and branch in (one.branch for one in self.known.debian_drivers(self.node.debian))
        return DEBIAN if in_debian else None

    def way_to(self, branch: int) -> str:
        """The end of a message: which variables to set for a branch."""
        if self.wish.source == RUNFILE:
            return f"use an installer of branch {branch}"
        source = self.source_of(branch)
        if source is None:
            return (
                f"no source of packages has branch {branch} for this Debian: remove the GPU from the node, or try an "
                "installer of the branch (nvidia_driver_source runfile)"
            )
        change = "" if source == self.wish.source else f"nvidia_driver_source to {source} and nvidia_driver_version to "
        return f"set {change}{branch}"

    def check_generations(self, branch: int, found: list[Found]) -> None:
        for one in found:
            first, last = one.architecture.first_branch, one.architecture.last_branch
            if first and branch < first:
                message = f"{one} needs a driver of branch {first} or later, not {branch}"
                self.refuse("version", f"{message}: {self.way_to(max(first, self.long_term))}")
            if last and branch > last:
                message = f"{one} is supported up to branch {last}, not by {branch}"
                self.refuse("version", f"{message}: {self.way_to(last)}")

    def check_lifetime(self, branch: int) -> None:
        """Warn of a branch without updates. Refuse a branch that cannot run the wanted CUDA version."""
        known = self.known.branches.get(branch)
        if known is None:
            self.warnings.append(
                f"branch {branch} is not known here: its CUDA version and its end of life are not checked"
            )
            return
        if known.end_of_life and known.end_of_life < self.node.month:
            self.warnings.append(f"branch {branch} has had no updates from NVIDIA since {known.end_of_life}")
        if CUDA.fullmatch(self.wish.cuda) and _major(self.wish.cuda) > _major(known.cuda):
            enough = [one.branch for one in self.known.branches.values() if _major(one.cuda) >= _major(self.wish.cuda)]
            # An installer is a source of every branch.
            offered = [one for one in enough if self.wish.source == RUNFILE or self.source_of(one)]
            way = self.way_to(min(offered)) if offered else "no known branch has this version"
            message = f"engines with CUDA {self.wish.cuda} do not run on branch {branch}, whose CUDA is"
            self.refuse("version", f"{message} {known.cuda}: {way}")

    def check_nvswitch(self) -> None:
        if not self.node.nvswitch:
            return
        if self.wish.source != NVIDIA:
            has = "Debian has no" if self.wish.source == DEBIAN else "the installer has no"
            message = f"the node has NVSwitches, but {has} fabric manager, without which CUDA fails with error 802"
            self.refuse("source", f"{message}: set nvidia, and a full version as nvidia_driver_version")
        elif self.wish.version and "." not in self.wish.version:
            message = "the node has NVSwitches, whose fabric manager must have exactly the driver's version"
            self.refuse("version", f"{message}: set a full version, such as 580.105.08, not {self.wish.version!r}")

    def flavor(self, branch: int, driver: DebianDriver | None, found: list[Found]) -> tuple[str, str]:
        """The flavour of the kernel module, and why. Refuses a flavour that GPUs, branch or source do not have."""
        rules = self.known.rules
        no_open = [one for one in found if one.architecture.open_module == IMPOSSIBLE]
        only_open = [one for one in found if one.architecture.open_module == REQUIRED]
        if no_open and only_open:
            message = f"{no_open[0]} has no open kernel module, {only_open[0]} only an open one: no driver runs both"
            self.refuse("flavor", f"{message}. Remove one of them from the node")
            return self.wish.flavor, ""
        if no_open:
            chosen, reason, forced = PROPRIETARY, f"{no_open[0]} has no open kernel module", True
        elif only_open:
            chosen, reason, forced = OPEN, f"{only_open[0]} has only an open kernel module", True
        elif branch >= rules.open_only_from:
            chosen, reason, forced = (
                OPEN,
                f"from branch {rules.open_only_from} on, there is only an open kernel module",
                True,
            )
        elif branch >= rules.open_by_default_from:
            chosen, reason, forced = OPEN, f"NVIDIA's default from branch {rules.open_by_default_from} on", False
        else:
            chosen, reason, forced = PROPRIETARY, f"NVIDIA's default before branch {rules.open_by_default_from}", False
        if self.wish.flavor in (OPEN, PROPRIETARY) and self.wish.flavor != chosen:
            if forced:
                self.refuse("flavor", f"{self.wish.flavor} cannot work: {reason}. Set auto or {chosen}")
            chosen, reason = self.wish.flavor, "nvidia_driver_flavor asks for it"
        installer = self.wish.source == RUNFILE and not no_open
        if installer and self.wish.flavor == OPEN and branch < FIRST_OPEN_BRANCH:
            message = f"branch {branch} has no open kernel module, only branches from {FIRST_OPEN_BRANCH} on"
            self.refuse("flavor", f"{message}. Set auto or {PROPRIETARY}")
        if driver and chosen not in driver.flavors:
            has = " and ".join(driver.flavors)
            message = f"{chosen} ({reason}) is not available: Debian {driver.release} has {driver.branch} only as {has}"
            advised = self.advised(found)
            other = f"set nvidia_driver_flavor to {' or '.join(driver.flavors)}"
            self.refuse("flavor", f"{message}: {self.way_to(advised) if self.source_of(advised) == NVIDIA else other}")
        return chosen, reason


def _major(version: str) -> int:
    """The major version of CUDA."""
    return int(version.partition(".")[0])
