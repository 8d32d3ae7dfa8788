# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans the packages, modules and units of a driver on a node, and what must be removed. Private to the collection."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..gpu.driver import OPEN
from . import packages as pk
from . import runfile
from .choice import FIRST_OPEN_BRANCH, VERSION, Choice, Chooser, Node, Wish
from .compatibility import Compatibility
from .kernels import header_packages

PINNING = "nvidia-driver-pinning-"
"""Start of the names of NVIDIA's packages that contain an apt pin. A branch or version follows in the name. The pin of
another branch or version would conflict with ours."""

FABRIC_MANAGER, SUBNET_MANAGER = "nvidia-fabricmanager", "nvlsm"

HAS_SWITCHES = "ConditionDirectoryNotEmpty=/proc/driver/nvidia-nvswitch/devices"
"""The module lists each NVSwitch in this directory. The files /dev/nvidia-nvswitch* cannot be a condition, because
the fabric manager itself may create them. Source: procfs_nvswitch.c of NVIDIA/open-gpu-kernel-modules, and NVIDIA's
driver containers, which check this directory before they start the fabric manager."""
HAS_CONTROL_DEVICE = "ConditionPathExists=/dev/nvidiactl"

MANAGEMENT_DATAGRAMS = "ib_umad"
"""The module through which fabric manager and subnet manager reach the switches of NVLink 5. Without it, NVIDIA's start
script does not start them. Without rdma-core, no other program loads this module."""

COMPONENTS = {pk.DEBIAN: ["contrib", "non-free", "non-free-firmware"]}
"""Components of Debian's archive that contain Debian's driver."""

SIGNING = ["mokutil", "openssl"]
"""openssl creates DKMS's key; mokutil asks the firmware to enrol it."""

RUNFILE_OPTIONS = [
    "--no-x-check",
    "--no-nouveau-check",
    "--no-install-compat32-libs",
    "--no-rebuild-initramfs",
    # The module may be unsigned, or signed with a key that is not enrolled yet.
    "--skip-module-load",
    # The preflight has checked whether the driver is in use.
    "--allow-installation-with-running-driver",
]
"""Options for NVIDIA's installer, if it supports them. The role itself handles nouveau, initial RAM disks and loading.
Source: --advanced-options of the installers of 470 to 580."""


@dataclass(frozen=True)
class Plan:
    """A complete driver. Packages are written for apt-get: NAME, or NAME=VERSION with * as a wildcard."""

    source: str
    branch: int
    flavor: str
    reason: str
    """Why this flavour."""
    version: str
    """Version of the packages, usually with a wildcard; also the pin of the whole family."""
    install: list[str]
    optional: list[str]
    """Packages that are installed if the node's sources have them."""
    remove_first: list[str]
    """Packages of a driver of another source, series or branch, removed in a separate run of apt-get before."""
    remove: list[str]
    """Packages that are removed together with the installation."""
    uninstall_runfile: bool
    """Whether to remove the driver of NVIDIA's installer before the installation."""
    install_runfile: bool
    """Whether to run NVIDIA's installer, which also removes an older driver of an installer."""
    hold: list[str]
    """Patterns of packages that are held, pinned to the version, and excluded from unattended upgrades."""
    own_holds: list[str]
    """Patterns of packages that an earlier run may have held."""
    components: list[str]
    """Needed components of Debian's archive."""
    modules: list[str]
    """Kernel modules to load at boot."""
    units: dict[str, str]
    """Units to enable, each with the systemd condition for its start."""
    sign: bool
    """Whether the modules must be signed."""
    runfile_origin: str
    """controller, node or url; empty for a driver of packages."""
    runfile_path: str
    runfile_arguments: list[str]
    runfile_options: list[str]
    """Further options, which are left out if the installer does not support them."""


@dataclass(frozen=True)
class Decision:
    """A plan, or all problems."""

    plan: Plan | None
    problems: list[str]
    warnings: list[str]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def decide(wish: Wish, node: Node, known: Compatibility) -> Decision:
    """The driver for a node, or all problems."""
    chooser = Chooser(wish, node, known)
    choice = chooser.choose()
    plan = _Planner(wish, node, known, choice).plan() if choice else None
    return Decision(plan, [str(problem) for problem in chooser.problems], chooser.warnings)


class _Planner:
    """Plans the packages of a driver that has no problems."""

    def __init__(self, wish: Wish, node: Node, known: Compatibility, choice: Choice) -> None:
        self.wish = wish
        self.node = node
        self.known = known
        self.choice = choice
        self.independent = pk.INDEPENDENT.get(wish.source, ())

    def plan(self) -> Plan:
        source, version = self.wish.source, self.version()
        names = self.names()
        optional = [PINNING + pk.upstream(self.wish.version)] if source == pk.NVIDIA else []
        remove_first, remove, carried = self.leftovers([*names, *optional])
        origin = runfile.origin(self.wish.runfile) if source == pk.RUNFILE else None
        sign = self.wish.sign or bool(self.node.secure_boot)
        return Plan(
            source=source,
            branch=self.choice.branch,
            flavor=self.choice.flavor,
            reason=self.choice.reason,
            version=version,
            install=[
                "dkms",
                *header_packages(self.node.packages),
                *(SIGNING if sign else []),
                *(name if pk.matches(name, self.independent) else f"{name}={version}" for name in [*names, *carried]),
            ],
            optional=optional,
            remove_first=remove_first,
            remove=remove,
            uninstall_runfile=self.node.runfile is not None and origin is None,
            install_runfile=origin is not None and not self.is_installed(),
            hold=list(pk.FAMILY) if source != pk.RUNFILE else [],
            own_holds=list(pk.FAMILY),
            components=COMPONENTS.get(source, []),
            modules=self.modules(),
            units=self.units(),
            sign=sign,
            runfile_origin=origin.kind if origin else "",
            runfile_path=origin.path if origin else "",
            runfile_arguments=["--silent", "--dkms", *self.runfile_flavor()] if origin else [],
            runfile_options=[*RUNFILE_OPTIONS, *([] if self.wish.desktop else ["--no-opengl-files"])] if origin else [],
        )

    def version(self) -> str:
        """Version of the packages, with a wildcard for the parts that the wish leaves open."""
        match = VERSION.fullmatch(self.wish.version)
        if match and match["revision"]:
            return self.wish.version
        # The dash keeps 580.105.08 from matching 580.105.081.
        return f"{self.wish.version}-*" if match and match["exact"] else f"{self.choice.branch}.*"

    def names(self) -> list[str]:
        """The packages of the driver itself."""
        if self.wish.source == pk.RUNFILE:
            return []
        if self.wish.source == pk.DEBIAN:
            return pk.debian_set(self.choice.series, self.choice.flavor, self.wish.desktop)
        found = pk.nvidia_set(self.choice.flavor, self.wish.desktop)
        if self.node.nvswitch:
            bare = self.choice.branch >= self.known.rules.fabric_manager_without_suffix_from
            found.append(FABRIC_MANAGER if bare else f"{FABRIC_MANAGER}-{self.choice.branch}")
            # For the fabric of NVLink 5, the fabric manager starts the subnet manager.
            found += [SUBNET_MANAGER] if self.choice.blackwell else []
        return found

    def modules(self) -> list[str]:
        found = ["nvidia", "nvidia-uvm", *(["nvidia-peermem"] if self.wish.peermem else [])]
        return [*found, MANAGEMENT_DATAGRAMS] if self.node.nvswitch and self.choice.blackwell else found

    def units(self) -> dict[str, str]:
        """The units to enable, each with the condition for its start."""
        found = {"nvidia-persistenced.service": HAS_CONTROL_DEVICE}
        if self.node.nvswitch:
            # From NVLink 5 (Blackwell) on, the switches are not PCI devices of the host.
            found[f"{FABRIC_MANAGER}.service"] = HAS_CONTROL_DEVICE if self.choice.blackwell else HAS_SWITCHES
        return found

    def leftovers(self, names: list[str]) -> tuple[list[str], list[str], list[str]]:
        """Installed packages of the driver: to remove before the change, to remove with it, and to update with it."""
        installed = list(pk.family(self.node.packages))
        before, series = pk.present(self.node.packages), self.choice.series
        after = (self.wish.source, series, self.choice.branch)
        if before and (before.source, before.series, before.branch) != after:
            return installed, [], []
        unwanted = [name for name in installed if name not in names and self.is_unwanted(name)]
        # Next to an additional driver of Debian, parts of Debian's main driver are installed, with their own version.
        kept = [name for name in installed if series in name and not pk.matches(name, self.independent)]
        return [], unwanted, [name for name in kept if name not in (*unwanted, *names)]

    def is_unwanted(self, name: str) -> bool:
        """Whether an installed package of the driver conflicts with the planned driver."""
        without_switches = (f"{FABRIC_MANAGER}*", SUBNET_MANAGER)
        return (
            pk.of_other_flavor(name, self.choice.flavor)
            or name.startswith(PINNING)
            or (self.wish.source == pk.NVIDIA and pk.of_other_branch(name, self.choice.branch))
            or (not self.node.nvswitch and pk.matches(name, without_switches))
        )

    def is_installed(self) -> bool:
        """Whether NVIDIA's installer has already installed exactly this driver."""
        return self.node.runfile is not None and self.node.runfile.is_driver(self.wish.version, self.choice.flavor)

    def runfile_flavor(self) -> list[str]:
        """The installer's option for the flavour. Source: --advanced-options of the installers of 535 and 580."""
        if self.choice.branch >= self.known.rules.open_by_default_from:
            return [f"--kernel-module-type={self.choice.flavor}"]
        if self.choice.branch < FIRST_OPEN_BRANCH and self.choice.flavor != OPEN:
            return []
        return [f"--kernel-module-build-directory={'kernel-open' if self.choice.flavor == OPEN else 'kernel'}"]
