# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides which driver a node gets, or why it cannot have the one that was asked for. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..problems import Problem, nearest
from . import packages as pk
from .compatibility import IMPOSSIBLE, OPEN, PROPRIETARY, REQUIRED, Architecture, Compatibility, DebianDriver
from .kernels import header_packages, is_real_time

AUTO = "auto"

SOURCES = (pk.DEBIAN, pk.NVIDIA, pk.RUNFILE)
FLAVORS = (AUTO, OPEN, PROPRIETARY)

VERSION = re.compile(r"(?P<branch>\d{3})(?P<exact>\.\d+(?:\.\d+)?)?(?P<revision>-[A-Za-z0-9.+~]+)?")
"""A branch, 580; a version, 580.105.08; or that of a package, 580.105.08-1."""

CUDA = re.compile(r"\d{1,2}(?:\.\d+)?")

PINNING = "nvidia-driver-pinning-"
"""NVIDIA's package of a pin, with a branch or a version at its end. One of another version would pull against ours."""

NVSWITCH_DEVICE, CONTROL_DEVICE = "/dev/nvidia-nvswitch0", "/dev/nvidiactl"


@dataclass(frozen=True)
class Wish:
    """What the operator asked for."""

    source: str
    version: str = ""
    """A branch or a version; empty for what Debian has."""
    flavor: str = AUTO
    desktop: bool = False
    """Also install what drives a display."""
    peermem: bool = False
    """Load nvidia-peermem, which GPUDirect RDMA needs where the NICs' driver is DOCA's."""
    cuda: str = ""
    """The CUDA version of what shall run, as 12.9; empty where unknown."""


@dataclass(frozen=True)
class Node:
    """What is known of the node."""

    debian: int
    """The major version: 12 or 13."""
    gpus: Sequence[Mapping[str, Any]] = ()
    """As `gpu_facts` has them: `pci_bus_id`, `name`, `architecture`."""
    nvswitch: bool = False
    packages: Mapping[str, str] = field(default_factory=dict)
    """The version of every installed package, by name."""
    kernels: Sequence[str] = ()
    """The releases of the kernels that could be booted."""
    secure_boot: bool | None = None
    runfile: bool = False
    """Whether a driver of NVIDIA's installer is there."""
    month: str = ""
    """Now, as 2026-11, to judge ends of life by; empty to judge none."""


@dataclass(frozen=True)
class Plan:
    """One coherent driver. Packages are written as apt-get reads them: NAME, or NAME=VERSION with * as a wildcard."""

    source: str
    branch: int
    flavor: str
    reason: str
    """Why this flavour."""
    version: str
    """Of the packages, with a wildcard; the pin of the whole family, and what its installed members are brought to."""
    install: list[str]
    optional: list[str]
    """Installed where the node's sources have them."""
    remove_first: list[str]
    """In a run of apt-get of its own, before all else: another source's or branch's driver, as a whole."""
    remove: list[str]
    """Together with the installation."""
    uninstall_runfile: bool
    hold: list[str]
    """Patterns of what is held, pinned to the version, and kept from unattended upgrades."""
    components: list[str]
    """Of Debian's archive."""
    modules: list[str]
    """To load at boot."""
    units: dict[str, str]
    """The units to enable, and the device without which each must not be started."""
    sign: bool
    """Whether the modules must be signed by a key that the firmware knows."""
    runfile_arguments: list[str]


@dataclass(frozen=True)
class Decision:
    """A plan, or everything that stands against one."""

    plan: Plan | None
    problems: list[str]
    warnings: list[str]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def decide(wish: Wish, node: Node, known: Compatibility) -> Decision:
    """The driver for a node, from what was asked for and found."""
    return _Decision(wish, node, known).make()


class _Decision:
    """One decision, with the problems and warnings that come up."""

    def __init__(self, wish: Wish, node: Node, known: Compatibility) -> None:
        self.wish = wish
        self.node = node
        self.known = known
        self.problems: list[Problem] = []
        self.warnings: list[str] = []

    def refuse(self, variable: str, message: str) -> None:
        self.problems.append(Problem(f"nvidia_driver_{variable}", message))

    def make(self) -> Decision:
        if self.wish.source not in SOURCES:
            self.refuse("source", f"{self.wish.source!r} is no source; {nearest(self.wish.source, SOURCES)}")
        if self.wish.flavor not in FLAVORS:
            self.refuse("flavor", f"{self.wish.flavor!r} is no flavour; {nearest(self.wish.flavor, FLAVORS)}")
        if self.wish.cuda and not CUDA.fullmatch(self.wish.cuda):
            self.refuse("cuda", f"{self.wish.cuda!r} is no version of CUDA: write it as 12.9")
        self.check_kernels()
        found = self.architectures()
        plan = None
        branch, driver = self.branch() if self.wish.source in SOURCES else (None, None)
        if branch is not None:
            self.check_branch(branch, found)
            self.check_nvswitch()
            flavor, reason = self.flavor(branch, driver, found)
            if not self.problems:
                plan = self.plan(branch, driver, flavor, reason, found)
        return Decision(plan, [str(problem) for problem in self.problems], self.warnings)

    def check_kernels(self) -> None:
        for release in self.node.kernels:
            if is_real_time(release):
                message = f"{release} is a real-time kernel, for which NVIDIA's driver is not built: remove its package"
                self.problems.append(Problem("kernel", f"{message} linux-image-{release}"))

    def architectures(self) -> list[tuple[str, Architecture]]:
        """The known architectures among the node's GPUs, each with a GPU to name in messages."""
        found: dict[str, tuple[str, Architecture]] = {}
        for gpu in self.node.gpus:
            name = str(gpu.get("architecture"))
            where = f"GPU {gpu.get('pci_bus_id') or '?'} ({gpu.get('name') or 'of unknown name'})"
            if name in self.known.architectures:
                found.setdefault(name, (f"{where}, {name}", self.known.architectures[name]))
            elif self.wish.flavor == AUTO:
                self.refuse("flavor", f"the architecture of {where} is not known: set open or proprietary for it")
            else:
                self.warnings.append(f"the architecture of {where} is not known, so nothing could be checked for it")
        return list(found.values())

    def branch(self) -> tuple[int | None, DebianDriver | None]:
        """The branch that is meant, and Debian's driver where it is one; a refusal where there is none."""
        match = VERSION.fullmatch(self.wish.version)
        if self.wish.version and not match:
            message = "is no version: write a branch, such as 580, or a version, such as 580.105.08"
            self.refuse("version", f"{self.wish.version!r} {message}")
            return None, None
        branch = int(match["branch"]) if match else None
        if self.wish.source == pk.DEBIAN:
            return self.debian_branch(branch)
        if branch is None:
            example = "580" if self.wish.source == pk.NVIDIA else "580.105.08, the one in the installer's name"
            self.refuse("version", f"the source {self.wish.source} has many: set one, such as {example}")
        elif self.wish.source == pk.NVIDIA and branch < self.known.rules.compute_packages_from:
            first = self.known.rules.compute_packages_from
            message = (
                f"branch {branch} of NVIDIA's repository has no packages for computing alone, {first} and later have"
            )
            self.refuse("version", f"{message}: 580 supports every GPU since Maxwell")
        return branch, None

    def debian_branch(self, branch: int | None) -> tuple[int | None, DebianDriver | None]:
        drivers = self.known.debian_drivers(self.node.debian)
        if not drivers:
            releases = sorted({driver.release for driver in self.known.debian})
            message = f"the driver of Debian {self.node.debian} is not known, only of {', '.join(map(str, releases))}"
            self.refuse("source", f"{message}: set nvidia")
            return None, None
        chosen = next((driver for driver in drivers if branch in (None, driver.branch)), None)
        if chosen is None:
            has = " and ".join(str(driver.branch) for driver in drivers)
            message = f"Debian {self.node.debian} has no branch {branch}, only {has}"
            self.refuse("version", f"{message}: leave it empty, or set nvidia_driver_source to nvidia")
            return None, None
        return chosen.branch, chosen

    def check_branch(self, branch: int, found: list[tuple[str, Architecture]]) -> None:
        newer = (
            "set nvidia_driver_source to nvidia and nvidia_driver_version to"
            if self.wish.source == pk.DEBIAN
            else "set"
        )
        for where, architecture in found:
            first, last = architecture.first_branch, architecture.last_branch
            if first and branch < first:
                self.refuse(
                    "version", f"{where} needs a driver of branch {first} at least, this is {branch}: {newer} 580"
                )
            if last and branch > last:
                self.refuse("version", f"{where} is supported up to branch {last}, this is {branch}: set {last}")
        known = self.known.branches.get(branch)
        if known is None:
            message = (
                f"branch {branch} is newer or rarer than what is known here: its CUDA version and end of life are not"
            )
            self.warnings.append(f"{message} checked")
            return
        if known.end_of_life and known.end_of_life < self.node.month:
            self.warnings.append(f"branch {branch} has had no updates from NVIDIA since {known.end_of_life}")
        if CUDA.fullmatch(self.wish.cuda) and _major(self.wish.cuda) > _major(known.cuda):
            enough = [one.branch for one in self.known.branches.values() if _major(one.cuda) >= _major(self.wish.cuda)]
            least = f" {newer} {min(enough)}" if enough else ""
            message = f"what is built with CUDA {self.wish.cuda} does not run on branch {branch}, whose CUDA is"
            self.refuse("version", f"{message} {known.cuda}:{least or ' no branch that is known here would do'}")

    def check_nvswitch(self) -> None:
        if not self.node.nvswitch:
            return
        if self.wish.source != pk.NVIDIA:
            has = "Debian has no" if self.wish.source == pk.DEBIAN else "the installer brings no"
            message = (
                f"the node has NVSwitches, and {has} fabric manager, without which CUDA does not start (error 802)"
            )
            self.refuse("source", f"{message}: set nvidia, and an exact nvidia_driver_version")
        elif "." not in self.wish.version:
            message = "the node has NVSwitches, and its fabric manager must have the very version of the driver"
            self.refuse("version", f"{message}: set an exact one, such as 580.105.08, instead of {self.wish.version!r}")

    def flavor(
        self, branch: int, driver: DebianDriver | None, found: list[tuple[str, Architecture]]
    ) -> tuple[str, str]:
        """The flavour of the kernel module, and why; a refusal where GPUs, branch or source have no such one."""
        rules = self.known.rules
        no_open = [where for where, architecture in found if architecture.open_module == IMPOSSIBLE]
        only_open = [where for where, architecture in found if architecture.open_module == REQUIRED]
        if no_open and only_open:
            message = f"{no_open[0]} has no open kernel module, {only_open[0]} no other one: no driver runs both"
            self.refuse("flavor", f"{message}. Take one of them out of the node")
            return self.wish.flavor, ""
        if no_open:
            chosen, reason, forced = PROPRIETARY, f"{no_open[0]} has no open kernel module", True
        elif only_open:
            chosen, reason, forced = OPEN, f"{only_open[0]} has no other kernel module than the open one", True
        elif branch >= rules.open_only_from:
            chosen, reason, forced = OPEN, f"there is no other one from branch {rules.open_only_from} on", True
        elif branch >= rules.open_by_default_from:
            chosen, reason, forced = OPEN, f"NVIDIA's default from branch {rules.open_by_default_from} on", False
        else:
            chosen, reason, forced = PROPRIETARY, f"NVIDIA's default before branch {rules.open_by_default_from}", False
        if self.wish.flavor in (OPEN, PROPRIETARY) and self.wish.flavor != chosen:
            if forced:
                self.refuse("flavor", f"{self.wish.flavor} cannot work: {reason}. Set auto or {chosen}")
            chosen, reason = self.wish.flavor, "nvidia_driver_flavor asks for it"
        if driver and chosen not in driver.flavors:
            message = f"Debian {driver.release} has branch {driver.branch} as {' and '.join(driver.flavors)} only"
            self.refuse(
                "flavor", f"{message}: set nvidia_driver_source to nvidia for {chosen}, which is chosen as {reason}"
            )
        return chosen, reason

    def plan(
        self,
        branch: int,
        driver: DebianDriver | None,
        flavor: str,
        reason: str,
        found: list[tuple[str, Architecture]],
    ) -> Plan:
        """The packages of a driver that nothing stands against."""
        source = self.wish.source
        version = self.pattern(branch)
        series = driver.series if driver else ""
        blackwell = any(architecture.open_module == REQUIRED for _where, architecture in found)
        names = self.names(branch, series, flavor, blackwell)
        optional = [PINNING + pk.upstream(self.wish.version)] if source == pk.NVIDIA else []
        remove_first, remove, carried = self.leftovers(branch, series, flavor, [*names, *optional])
        independent = pk.INDEPENDENT.get(source, ())
        signing = ["mokutil", "openssl"] if self.node.secure_boot else []
        units = {"nvidia-persistenced.service": CONTROL_DEVICE}
        if self.node.nvswitch:
            # From NVLink 5 on, which came with Blackwell, the switches are no PCI devices of the host.
            units["nvidia-fabricmanager.service"] = CONTROL_DEVICE if blackwell else NVSWITCH_DEVICE
        return Plan(
            source=source,
            branch=branch,
            flavor=flavor,
            reason=reason,
            version=version,
            install=[
                "dkms",
                *header_packages(self.node.packages),
                *signing,
                *(name if pk.matches(name, independent) else f"{name}={version}" for name in [*names, *carried]),
            ],
            optional=optional,
            remove_first=remove_first,
            remove=remove,
            uninstall_runfile=self.node.runfile and source != pk.RUNFILE,
            hold=list(pk.FAMILY) if source != pk.RUNFILE else [],
            components=["contrib", "non-free", "non-free-firmware"] if source == pk.DEBIAN else [],
            modules=["nvidia", "nvidia-uvm", *(["nvidia-peermem"] if self.wish.peermem else [])],
            units=units,
            sign=bool(self.node.secure_boot),
            runfile_arguments=["--silent", "--dkms", self.runfile_flavor(branch, flavor)]
            if source == pk.RUNFILE
            else [],
        )

    def pattern(self, branch: int) -> str:
        """The version of the packages, with a wildcard for what was not said; Debian's own stays within its branch."""
        match = VERSION.fullmatch(self.wish.version)
        if match and match["revision"]:
            return self.wish.version
        # The dash keeps 580.105.08 from matching 580.105.081.
        return f"{self.wish.version}-*" if match and match["exact"] else f"{branch}.*"

    def names(self, branch: int, series: str, flavor: str, blackwell: bool) -> list[str]:
        """The packages of the driver itself."""
        if self.wish.source == pk.RUNFILE:
            return []
        if self.wish.source == pk.DEBIAN:
            return pk.debian_set(series, flavor, self.wish.desktop)
        found = pk.nvidia_set(flavor, self.wish.desktop)
        if self.node.nvswitch:
            bare = branch >= self.known.rules.fabric_manager_without_suffix_from
            found.append("nvidia-fabricmanager" if bare else f"nvidia-fabricmanager-{branch}")
            # The fabric of NVLink 5 has a subnet manager, which the fabric manager starts.
            found += ["nvlsm"] if blackwell else []
        return found

    def leftovers(
        self, branch: int, series: str, flavor: str, names: list[str]
    ) -> tuple[list[str], list[str], list[str]]:
        """Of the installed driver: what goes before the change, what goes with it, and what is brought along."""
        installed = list(pk.family(self.node.packages))
        before = pk.present(self.node.packages)
        if before and (before.source, before.series, before.branch) != (self.wish.source, series, branch):
            return installed, [], []
        unwanted = [
            name
            for name in installed
            if name not in names
            and (
                pk.of_other_flavor(name, flavor)
                or name.startswith(PINNING)
                or (self.wish.source == pk.NVIDIA and pk.of_other_branch(name, branch))
                or (not self.node.nvswitch and pk.matches(name, ("nvidia-fabricmanager*", "nvlsm")))
            )
        ]
        independent = pk.INDEPENDENT.get(self.wish.source, ())
        # Beside one of Debian's other drivers lie parts of its main one, which have that one's version.
        kept = [name for name in installed if series in name and not pk.matches(name, independent)]
        return [], unwanted, [name for name in kept if name not in (*unwanted, *names)]

    def runfile_flavor(self, branch: int, flavor: str) -> str:
        """The installer's option for the flavour. Source: --advanced-options of the installers of 535 and 580."""
        if branch >= self.known.rules.open_by_default_from:
            return f"--kernel-module-type={flavor}"
        return f"--kernel-module-build-directory={'kernel-open' if flavor == OPEN else 'kernel'}"


def _major(version: str) -> int:
    """The major version of CUDA."""
    return int(version.partition(".")[0])
