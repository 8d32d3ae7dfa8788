# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads facts about the driver of this machine, and changes nothing. Private to the collection."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...core.commands import NOT_INSTALLED, Outcome
from ...debian import apt_packages
from ..gpu import driver
from . import certificates, dkms, holders, kernel_check, kernels, loaded, packages, runfile, secure_boot, signing

Run = Callable[[Sequence[str], float], Outcome]
"""Runs a program with a time limit in seconds, like `commands.run`."""

DKMS_CONFIGURATION = ("etc/dkms/framework.conf", "etc/dkms/framework.conf.d/*.conf")


class Reader:
    """Reads files below `root`, and runs programs, each with a time limit of `timeout` seconds.

    `firmware` is the root of the firmware's variables, if they do not lie below `root`.
    """

    def __init__(self, root: Path, run: Run, timeout: float, firmware: Path | None = None) -> None:
        self.root = root
        self.run = run
        self.timeout = timeout
        self.firmware_root = firmware or root
        self.warnings: list[str] = []

    def ask(self, *command: str) -> str:
        """The output of a program, with errors, for every exit status. Empty if it is not installed. Adds a warning if
        it hangs or cannot run."""
        outcome = self.run(command, self.timeout)
        if outcome.failure and outcome.failure != NOT_INSTALLED:
            self.warnings.append(outcome.message)
        return f"{outcome.stdout}\n{outcome.stderr}"

    def installed_kernels(self, releases: Sequence[str] = ()) -> list[kernels.Kernel]:
        """The kernels of these releases; without releases, all kernels that could be booted."""
        return [kernels.kernel(self.root, one) for one in releases] if releases else kernels.installed(self.root)

    def dkms_modules(self) -> list[dkms.Module]:
        return dkms.parse(self.ask("dkms", "status"))

    def installed_packages(self) -> dict[str, str]:
        """The versions of the driver's and the kernels' packages. Half-installed packages count, too: a package stays
        so if its module does not build."""
        output = self.ask("dpkg-query", "--show", f"--showformat={apt_packages.FORM}")
        installed = {name: package.version for name, package in apt_packages.read_installed(output).items()}
        images = {name: version for name, version in installed.items() if name.startswith(kernels.IMAGE)}
        return {**images, **packages.family(installed)}

    def debian(self) -> int | None:
        """The major version of Debian; None on another system."""
        text = self.text("etc/os-release")
        match = re.search(r'^VERSION_ID="?(\d+)', text, re.MULTILINE)
        return int(match[1]) if match and re.search(r"^ID=\"?debian\"?$", text, re.MULTILINE) else None

    def firmware(self) -> dict[str, Any]:
        """Facts about Secure Boot and the key with which DKMS signs."""
        certificate = secure_boot.certificate(self.dkms_configuration())
        state = self.boot_state()
        key = self.enrolment(certificate) if state.enabled else None
        return {
            **asdict(state),
            "certificate": certificate,
            "serial": self.serial(certificate),
            "key": key,
            "problem": secure_boot.problem(state, key, certificate),
        }

    def boot_state(self) -> secure_boot.SecureBoot:
        return secure_boot.state(self.firmware_root, self.ask(*self.mokutil("--sb-state")))

    def mokutil(self, *arguments: str) -> list[str]:
        """The command mokutil. An environment variable gives libefivar another directory of variables."""
        if self.firmware_root == self.root:
            return ["mokutil", *arguments]
        return ["env", f"EFIVARFS_PATH={self.firmware_root / secure_boot.VARIABLES}/", "mokutil", *arguments]

    def enrolment(self, certificate: str) -> str | None:
        """The state of a key: enrolled, pending or missing; None if unknown."""
        return secure_boot.parse_key(self.ask(*self.mokutil("--test-key", certificate)))

    def dkms_configuration(self) -> str:
        return "\n".join(self.text(pattern) for pattern in DKMS_CONFIGURATION)

    def serial(self, certificate: str) -> str | None:
        """The serial number of a certificate; None if the file is missing or not in DER."""
        try:
            return certificates.serial((self.root / certificate.lstrip("/")).read_bytes())
        except (OSError, certificates.CertificateError):
            return None

    def signature(self, kernel: str, module: dkms.Module | None) -> signing.Signature | None:
        """The signature of the module that a kernel would load; None for a module without one."""
        return signing.signature(self.ask("modinfo", "-k", kernel, module.name)) if module else None

    def runfile_driver(self, modules: Sequence[dkms.Module], on_disk: loaded.Build | None) -> runfile.Installed | None:
        """The driver that NVIDIA's installer has installed; None without one."""
        if not any((self.root / path).exists() for path in runfile.UNINSTALLERS):
            return None
        version = runfile.installed_version(self.text(runfile.BACKUP_LOG)) or driver.read(self.root).library_version
        return runfile.Installed(
            version=version,
            flavor=on_disk.flavor if on_disk and on_disk.version == version else None,
            registered=any((one.name, one.version) == (runfile.DKMS_NAME, version) for one in modules),
        )

    def text(self, pattern: str) -> str:
        """The text of all matching files in the order of their names. Adds a warning for each unreadable file."""
        found = []
        for path in sorted(self.root.glob(pattern)):
            try:
                found.append(path.read_text(encoding="utf-8", errors="replace"))
            except OSError as error:
                self.warnings.append(str(error))
        return "\n".join(found)

    def facts(self, running: str = platform.release()) -> dict[str, Any]:
        """All facts, as the module nvidia_driver_facts documents them."""
        modules = [module for module in self.dkms_modules() if module.is_nvidia_driver]
        found = self.installed_kernels()
        processes, present = holders.processes(self.root), holders.modules(self.root)
        ready = {kernel.release: kernel_check.ready(kernel, modules) for kernel in found}
        now = loaded.loaded(self.root)
        on_disk = self.on_disk(running, ready.get(running))
        installer = self.runfile_driver(modules, on_disk)
        return {
            "debian": self.debian(),
            "packages": self.installed_packages(),
            "runfile": asdict(installer) if installer else None,
            "running_kernel": running,
            "kernels": [self.kernel_facts(kernel, ready[kernel.release]) for kernel in found],
            "dkms": [{**asdict(module), "notes": list(module.notes)} for module in modules],
            "loaded": asdict(now) if now else None,
            "on_disk": asdict(on_disk) if on_disk else None,
            "difference": loaded.difference(now, on_disk),
            "modules": [{**asdict(module), "holders": list(module.holders)} for module in present],
            "processes": [{**asdict(process), "devices": list(process.devices)} for process in processes],
            "held_by": [*map(str, processes), *holders.unexplained(processes, present)],
            "secure_boot": self.firmware(),
        }

    def kernel_facts(self, kernel: kernels.Kernel, module: dkms.Module | None) -> dict[str, Any]:
        """Facts about a kernel that could be booted; `module` is its installed module without warnings, if any."""
        signature = self.signature(kernel.release, module)
        return {
            "release": kernel.release,
            "headers": kernel.headers,
            "ready": module is not None,
            "signature": asdict(signature) if signature else None,
            "outdated_initrd": kernels.outdated_initrd(self.root, kernel.release),
        }

    def on_disk(self, running: str, module: dkms.Module | None) -> loaded.Build | None:
        """The module that the running kernel would load. Debian's module has another name on disk."""
        return loaded.modinfo(self.ask("modinfo", "-k", running, module.name if module else "nvidia"))
