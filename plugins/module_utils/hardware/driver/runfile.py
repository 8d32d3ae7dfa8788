# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's installer, the .run file: what it is, and what it leaves behind. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

CONTROLLER, NODE, URL = "controller", "node", "url"

CHECKSUM = re.compile(r"sha256:[0-9a-fA-F]{64}")

EXACT = re.compile(r"\d{3}\.\d+(?:\.\d+)?")
"""A version of the driver, as 580.105.08."""

NAME = re.compile(rf"NVIDIA-Linux-(?P<machine>[a-z0-9_]+)-(?P<version>{EXACT.pattern})(?:-[\w.-]+)?\.run")

TARGET = re.compile(
    rf"^targetdir=[\"']?NVIDIA-Linux-(?P<machine>[a-z0-9_]+)-(?P<version>{EXACT.pattern})", re.MULTILINE
)
"""In the script that the file begins with: the directory that it unpacks itself to. Source: makeself-header.sh."""

HEADER_BYTES = 1 << 17
"""Where the script ends at the latest. Its help alone has 40 kB."""

UNINSTALLERS = ("usr/bin/nvidia-uninstall", "usr/local/bin/nvidia-uninstall")
"""What the installer leaves, and no package has."""

BACKUP_LOG = "var/lib/nvidia/log"
"""What the installer keeps of an installation; its first line has the version. Source: backup.c of nvidia-installer."""

LOGS = ("var/log/nvidia-installer.log", "var/log/nvidia-uninstall.log")

DKMS_NAME = "nvidia"
"""The driver's name in DKMS. Source: --dkms of nvidia-installer."""

QUOTED_LINES = 12
"""How much of a log stands in an error message."""


@dataclass(frozen=True)
class Origin:
    """Where the file comes from."""

    kind: str
    """CONTROLLER, NODE or URL."""
    path: str
    """The path there, or the whole URL."""

    @property
    def name(self) -> str:
        path = urlsplit(self.path).path if self.kind == URL else self.path
        return path.rpartition("/")[2]


@dataclass(frozen=True)
class File:
    """What a file of the installer is; None where it does not tell."""

    version: str | None
    machine: str | None
    """The architecture, as the kernel names it: x86_64 or aarch64."""


@dataclass(frozen=True)
class Installed:
    """A driver that the installer put on a node."""

    version: str | None
    """None where it left no trace of it."""
    flavor: str | None
    """Of the module that the running kernel would load; None where it has none."""
    registered: bool
    """Whether DKMS knows it, and builds it for kernels to come."""

    def is_driver(self, version: str, flavor: str) -> bool:
        """Whether it is the one that is wanted, so that there is nothing to do."""
        return self.version == version and self.registered and self.flavor in (None, flavor)


def origin(text: str) -> Origin | None:
    """Where controller:/PATH, /PATH and https://… lead; None for anything else."""
    if text.startswith("https://") and urlsplit(text).hostname:
        return Origin(URL, text)
    kind = CONTROLLER if text.startswith("controller:") else NODE
    path = text.removeprefix("controller:")
    return Origin(kind, path) if path.startswith("/") and not path.endswith("/") else None


def of_name(name: str) -> File:
    """What the file's name tells: NVIDIA-Linux-x86_64-580.105.08.run."""
    match = NAME.fullmatch(name)
    return File(match["version"], match["machine"]) if match else File(None, None)


def of_header(data: bytes) -> File:
    """What the script at the file's begin tells."""
    match = TARGET.search(data[:HEADER_BYTES].decode("utf-8", errors="replace"))
    return File(match["version"], match["machine"]) if match else File(None, None)


def known_options(options: Iterable[str], help_text: str) -> list[str]:
    """Those of the options that an installer's ``--advanced-options`` names: another one makes it give up."""
    return [one for one in options if re.search(rf"(?<![\w-]){re.escape(one)}(?![\w-])", help_text)]


def installed_version(backup_log: str) -> str | None:
    """The version of what is installed, of the installer's own log of it: 580.105.08, or 1.0-0 (180.29) of old."""
    match = re.search(rf"(?<![\d.]){EXACT.pattern}(?![\d.])", backup_log.partition("\n")[0])
    return match[0] if match else None


def complaint(log: str) -> str:
    """What a log of the installer says went wrong: its errors, with the lines that belong to them, or else its end."""
    lines = [line.rstrip() for line in log.splitlines() if line.strip()]
    wanted: list[str] = []
    inside = False
    for line in lines:
        starts = re.match(r"\s*(?:->\s*)?ERROR\b", line)
        # What goes on is indented; a new entry begins with a word, or with an arrow.
        inside = bool(starts) or (inside and line[0].isspace())
        wanted += [line] if inside else []
    return "\n".join((wanted or lines)[-QUOTED_LINES:])
