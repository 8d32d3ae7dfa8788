# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs NVIDIA's installer, and uninstalls its driver. Private to the collection."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...core.commands import Outcome
from . import kernel_check, loaded, runfile
from .facts import Reader

HELP_SECONDS = 60
"""Time limit for the installer's list of options, which it prints without unpacking itself."""

PERSISTENCED = "nvidia-persistenced.service"

CHUNK = 1 << 20


class InstallerError(Exception):
    """NVIDIA's installer cannot be used, or failed; the text is for the operator."""


@dataclass(frozen=True)
class Checked:
    """Properties of a file of the installer."""

    sha256: str
    version: str | None
    machine: str | None
    size: int
    """Bytes."""


def check(path: Path) -> Checked:
    """Read and hash a file of the installer. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        header = stream.read(runfile.HEADER_BYTES)
        digest.update(header)
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
        size = stream.tell()
    file = runfile.of_header(header)
    return Checked(digest.hexdigest(), file.version, file.machine, size)


def problems(path: Path, found: Checked, checksum: str, version: str, machine: str = "") -> list[str]:
    """How a file differs from the wish. Empty strings accept any value."""
    wrong = []
    if checksum and checksum.lower() != f"sha256:{found.sha256}":
        wrong.append(
            f"{path} has the checksum sha256:{found.sha256}, not {checksum}: replace the file, or correct the checksum"
        )
    if version and found.version not in (None, version):
        wrong.append(f"{path} installs the driver {found.version}, not {version}: correct the file or the version")
    if machine and found.machine not in (None, machine):
        wrong.append(f"{path} is for {found.machine}, but this machine is {machine}: use the installer for {machine}")
    return wrong


@dataclass
class Installer:
    """The installer on one machine. Programs that change something get `time_limit` seconds."""

    reader: Reader
    time_limit: float
    started: float = field(default_factory=time.time)
    """Start of this run in seconds since 1970. Older logs belong to other runs."""

    def installed(self, running: str) -> runfile.Installed | None:
        """The installed driver; None if there is none. `running` is the release of the running kernel."""
        modules = self.reader.dkms_modules()
        build = loaded.modinfo(self.reader.ask("modinfo", "-k", running, runfile.DKMS_NAME))
        return self.reader.runfile_driver(modules, build)

    def uninstall(self) -> None:
        """Uninstall the driver, also from DKMS. Raises InstallerError."""
        before = self.reader.runfile_driver(self.reader.dkms_modules(), None)
        program = next((path for name in runfile.UNINSTALLERS if (path := self.reader.root / name).exists()), None)
        if program is None:
            return
        # The daemon uses the module. The preflight has checked for other users. The exit status does not matter.
        self.run(["systemctl", "stop", PERSISTENCED])
        outcome = self.run([str(program), "--silent"])
        if outcome.code != 0 or program.exists():
            raise InstallerError(self.failure(f"{program} --silent did not remove the driver", outcome))
        for module in {(one.name, one.version) for one in self.reader.dkms_modules()}:
            if before and module == (runfile.DKMS_NAME, before.version):
                outcome = self.run(["dkms", "remove", "/".join(module), "--all"])
                if outcome.code != 0:
                    raise InstallerError(self.failure(f"DKMS did not remove the driver {before.version}", outcome))

    def install(self, path: Path, arguments: Sequence[str], options: Sequence[str]) -> None:
        """Run the installer with its arguments, and with the options that it supports. Raises InstallerError.

        The installer unpacks itself in the directory of its file, where no other user may write.
        """
        listed = self.reader.run(["sh", str(path), "--advanced-options"], HELP_SECONDS)
        known = runfile.known_options(options, listed.stdout)
        outcome = self.run(["env", f"TMPDIR={path.parent}", "sh", str(path), *arguments, *known])
        if outcome.code != 0:
            raise InstallerError(self.failure(f"NVIDIA's installer {path.name} failed", outcome))

    def build(self, version: str, kernels: Sequence[str] = ()) -> list[str]:
        """Build the module for kernels without it, because the installer builds only for the running kernel.

        Returns the kernels for which the build succeeded. nvidia_driver_facts reports the other kernels.
        """
        name = f"{runfile.DKMS_NAME}/{version}"
        waiting = self.waiting(version, kernels)
        return [one for one in waiting if self.run(["dkms", "install", name, "-k", one]).code == 0]

    def waiting(self, version: str, kernels: Sequence[str] = ()) -> list[str]:
        """The kernels that have headers, but not the module."""
        modules = [one for one in self.reader.dkms_modules() if (one.name, one.version) == (runfile.DKMS_NAME, version)]
        return [
            kernel.release
            for kernel in self.reader.installed_kernels(kernels)
            if kernel.headers and not kernel_check.ready(kernel, modules)
        ]

    def run(self, command: Sequence[str]) -> Outcome:
        return self.reader.run(command, self.time_limit)

    def failure(self, sentence: str, outcome: Outcome) -> str:
        """A message about a failure, with the errors of the installer's logs, or else the end of the output."""
        words = outcome.message or f"exit status {outcome.code}"
        said = "\n".join(f"{outcome.stdout}\n{outcome.stderr}".strip().splitlines()[-runfile.QUOTED_LINES :])
        logs = [f"/{name} says:\n{text}" for name in runfile.LOGS if (text := runfile.complaint(self.log(name)))]
        return "\n".join(filter(None, [f"{sentence} ({words}).", *(logs or [said])]))

    def log(self, name: str) -> str:
        """The text of a log of this run; empty if there is none."""
        path = self.reader.root / name
        # One second earlier, because a file system may round times down.
        fresh = path.exists() and path.stat().st_mtime >= self.started - 1
        return path.read_text(encoding="utf-8", errors="replace") if fresh else ""
