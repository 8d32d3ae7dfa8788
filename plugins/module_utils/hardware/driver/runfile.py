# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads NVIDIA's installer (the .run file), its logs, and traces of its driver. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from ...core.controller import ON_CONTROLLER

CONTROLLER, NODE, URL = "controller", "node", "url"

CHECKSUM = re.compile(r"sha256:[0-9a-fA-F]{64}")

EXACT = re.compile(r"\d{3}\.\d+(?:\.\d+)?")
"""A full version of the driver, as 580.105.08."""

NAME = re.compile(rf"NVIDIA-Linux-(?P<machine>[a-z0-9_]+)-(?P<version>{EXACT.pattern})(?:-[\w.-]+)?\.run")

TARGET = re.compile(
    rf"^targetdir=[\"']?NVIDIA-Linux-(?P<machine>[a-z0-9_]+)-(?P<version>{EXACT.pattern})", re.MULTILINE
)
"""The target directory in the script at the start of the file. Source: makeself-header.sh."""

HEADER_BYTES = 1 << 17
"""Bytes that contain the whole script. Its help alone has 40 kB."""

UNINSTALLERS = ("usr/bin/nvidia-uninstall", "usr/local/bin/nvidia-uninstall")
"""Programs that the installer installs and no package contains."""

BACKUP_LOG = "var/lib/nvidia/log"
"""The installer's record of an installation; the first line has the version. Source: backup.c of nvidia-installer."""

LOGS = ("var/log/nvidia-installer.log", "var/log/nvidia-uninstall.log")

DKMS_NAME = "nvidia"
"""The driver's name in DKMS. Source: --dkms of nvidia-installer."""

QUOTED_LINES = 12
"""Lines of a log in an error message."""


@dataclass(frozen=True)
class Origin:
    """Place of the installer's file."""

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
    """Version and architecture of an installer's file; None if unknown."""

    version: str | None
    machine: str | None
    """The architecture, as the kernel names it: x86_64 or aarch64."""


@dataclass(frozen=True)
class Installed:
    """A driver that the installer has installed on a node."""

    version: str | None
    """None if unknown."""
    flavor: str | None
    """Flavour of the module that the running kernel would load; None if unknown, or if no module has this version."""
    registered: bool
    """Whether DKMS has the module, and builds it for new kernels."""

    def is_driver(self, version: str, flavor: str) -> bool:
        """Whether this is the wanted driver, so that the role has nothing to do."""
        return self.version == version and self.registered and self.flavor in (None, flavor)


def origin(text: str) -> Origin | None:
    """The place named by controller:/PATH, /PATH or https://…; None for another text."""
    if text.startswith("https://"):
        try:
            return Origin(URL, text) if urlsplit(text).hostname else None
        except ValueError:
            return None
    kind = CONTROLLER if text.startswith(ON_CONTROLLER) else NODE
    path = text.removeprefix(ON_CONTROLLER)
    return Origin(kind, path) if path.startswith("/") and not path.endswith("/") else None


def of_name(name: str) -> File:
    """Version and architecture by the file's name, as NVIDIA-Linux-x86_64-580.105.08.run."""
    match = NAME.fullmatch(name)
    return File(match["version"], match["machine"]) if match else File(None, None)


def of_header(data: bytes) -> File:
    """Version and architecture by the script at the start of the file."""
    match = TARGET.search(data[:HEADER_BYTES].decode("utf-8", errors="replace"))
    return File(match["version"], match["machine"]) if match else File(None, None)


def known_options(options: Iterable[str], help_text: str) -> list[str]:
    """The options that ``--advanced-options`` of an installer lists. An installer fails on an unknown option."""
    return [one for one in options if re.search(rf"(?<![\w-]){re.escape(one)}(?![\w-])", help_text)]


def installed_version(backup_log: str) -> str | None:
    """The installed version, from the installer's record: 580.105.08, or in old records 1.0-0 (180.29)."""
    match = re.search(rf"(?<![\d.]){EXACT.pattern}(?![\d.])", backup_log.partition("\n")[0])
    return match[0] if match else None


def complaint(log: str) -> str:
    """The last errors in a log of the installer, with their further lines, or else the end of the log."""
    lines = [line.rstrip() for line in log.splitlines() if line.strip()]
    wanted: list[str] = []
    inside = False
    for line in lines:
        starts = re.match(r"\s*(?:->\s*)?ERROR\b", line)
        # Continued lines are indented. A new entry begins with a word or an arrow.
        inside = bool(starts) or (inside and line[0].isspace())
        wanted += [line] if inside else []
    return "\n".join((wanted or lines)[-QUOTED_LINES:])
