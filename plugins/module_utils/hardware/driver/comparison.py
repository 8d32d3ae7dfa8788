# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares a node with the plan of a driver. Tries CUDA if nothing else differs. Private to the collection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core import commands, differences
from ...debian import apt_packages, apt_pins
from ..gpu import facts as gpu_facts
from . import cuda, due, fabric, kernels, signing

NOUVEAU = "nouveau"

Run = Callable[..., tuple[int, str, str]]
"""Runs a command, like run_command of a module."""


@dataclass(frozen=True)
class Comparison:
    """One node and its plan. `wanted` is the option `compare` of the module nvidia_driver_facts."""

    wanted: Mapping[str, Any]
    version: str
    """Version that the module of every kernel must have; empty for any."""
    kernels: list[str]
    """Releases of the kernels; empty for those in /boot."""
    devices: int | None
    """How many GPUs CUDA must find; None for any number."""
    run: Run
    timeout: float
    """Seconds for CUDA, and for nvidia-smi."""
    library: str = cuda.LIBRARY
    root: Path = Path("/")

    @property
    def plan(self) -> dict[str, Any]:
        plan: dict[str, Any] = self.wanted["decision"]["plan"]
        return plan

    def reasons(self) -> list[str]:
        """Why the role nvidia_driver has something to do. Raises PinError, SystemdError and OSError."""
        driver, own_key = self.wanted["driver"], self.wanted["own_key"]
        # While a reboot is due, the role neither loads modules nor starts their units.
        load = self.wanted["load"] and not self.reboot_reason()
        named = [kernels.kernel(self.root, one) for one in self.kernels] or [
            kernels.Kernel(one["release"], one["headers"]) for one in driver["kernels"]
        ]
        found = due.reasons(self.plan, driver, named, self.version, own_key)
        found += [] if own_key else self.keys_left()
        found += self.packages() + self.pins()
        found += differences.of_files(self.wanted["files"], self.root)
        active = dict.fromkeys(self.wanted["units"], load) | dict.fromkeys(self.wanted["boot_units"], False)
        found += differences.of_units([{"name": name, "active": runs} for name, runs in active.items()])
        found += self.modules() if load else []
        # Only if nothing else differs: CUDA may load a module, which would hide that nothing loads it at boot.
        return self.cuda() if self.wanted["ask_cuda"] and not found and not self.reboot_reason() else found

    def reboot_reason(self) -> str:
        """Why the driver works only after a reboot; empty if no reboot is due, or no GPU needs the driver."""
        if not self.wanted["load"]:
            return ""
        driver = self.wanted["driver"]
        found = str(driver["secure_boot"]["problem"] or driver["difference"] or "")
        nouveau = (self.root / "sys/module" / NOUVEAU).exists()
        return found or (f"{NOUVEAU}, the kernel's own driver, uses the GPUs" if nouveau else "")

    def keys_left(self) -> list[str]:
        """DKMS files of a key that the site no longer declares."""
        paths = [self.root / name.lstrip("/") for name in signing.own_files("", b"")]
        return [f"{path} exists" for path in paths if path.exists()]

    def packages(self) -> list[str]:
        """Packages that are missing, and packages that must be removed. Raises OSError."""
        plan = self.plan
        lists = apt_packages.read_lists(plan["install"], plan["remove"], plan["optional"]).lists
        names = [*lists.present, *lists.absent, *lists.optional]
        code, output, words = self.run(["dpkg-query", "--show", f"--showformat={apt_packages.FORM}", *names])
        # Exit code 1: dpkg-query does not know one of the packages.
        if code not in (0, 1):
            raise OSError(f"`dpkg-query --show {' '.join(names)}` failed ({code}): {(words or output).strip()}")
        gap = apt_packages.gap(lists, apt_packages.read_installed(output), self.policy)
        return [f"{name} is not installed" for name in gap.missing] + [f"{name} is installed" for name in gap.surplus]

    def policy(self, names: list[str]) -> str:
        """The output of apt-cache policy for packages."""
        return self.run(["apt-cache", "policy", *names], environ_update=apt_packages.ENVIRONMENT)[1]

    def pins(self) -> list[str]:
        """Packages that are not pinned and held as planned. Raises PinError and OSError."""
        return [
            reason
            for item in self.wanted["pins"]
            for reason in apt_pins.Pins(self.run, {"versions": {}, **item}, check=True).reasons()
        ]

    def modules(self) -> list[str]:
        """Planned kernel modules that are not loaded."""
        loaded = self.root / "sys/module"
        missing = [name for name in self.plan["modules"] if not (loaded / name.replace("-", "_")).exists()]
        return [f"the module {name} is not loaded" for name in missing]

    def cuda(self) -> list[str]:
        """Why CUDA does not find every GPU; empty if it does."""

        def ask() -> cuda.Check:
            return cuda.check(self.library, self.timeout)

        found = fabric.wait(ask, self.gpus, 0) if self.wanted["fabric"] else ask()
        if not found.ok:
            return [found.message]
        return [] if self.devices in (None, found.devices) else [f"CUDA finds {found.devices} GPUs of {self.devices}"]

    def gpus(self) -> list[dict[str, Any]]:
        """The fact `gpus`, with the values of nvidia-smi."""

        def run(words: list[str]) -> commands.Outcome:
            return commands.run(words, self.timeout)

        return list(gpu_facts.gather(self.root, run, "nvidia-smi", (gpu_facts.NVIDIA_SMI,), self.timeout)["gpus"])
