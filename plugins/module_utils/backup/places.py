# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths of the backup's own files on a host. Private to the collection.

By default, a backup saves none of these files but the units: a restore must not bring back an old password, nor the
state of another machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..core.paths import Paths

JOBS = ("backup", "prune", "check")
"""The jobs. Each has its own timer."""


@dataclass(frozen=True)
class Places:
    """The layout below ``root`` (``/`` on a host, a temporary directory in tests)."""

    root: Path = Path("/")

    @property
    def etc(self) -> Path:
        """Settings and secrets; mode 0700."""
        return self.root / "etc/inference-backup"

    @property
    def settings(self) -> Path:
        return self.etc / "settings.json"

    @property
    def password(self) -> Path:
        return self.etc / "password"

    @property
    def environment(self) -> Path:
        """Credentials of the repository's server."""
        return self.etc / "environment.json"

    @property
    def key(self) -> Path:
        """The private key for SFTP."""
        return self.etc / "id_sftp"

    @property
    def known_hosts(self) -> Path:
        return self.etc / "known_hosts"

    @property
    def work(self) -> Path:
        """State, lock, and the files that restores replaced; mode 0700."""
        return self.root / "var/lib/inference-backup"

    @property
    def state(self) -> Path:
        return self.work / "state.json"

    @property
    def aside(self) -> Path:
        """The files that a restore replaced: one directory for each restore."""
        return self.work / "aside"

    @property
    def lock(self) -> Path:
        """Held by a running job or a restore."""
        return self.work / "lock"

    @property
    def cache(self) -> Path:
        """restic's cache. It can be removed at any time."""
        return self.root / "var/cache/inference-backup"

    @property
    def staging(self) -> Path:
        """The copy that restic saves. It lies in memory, and systemd removes it at the end of the service."""
        return self.root / "run/inference-backup/staging"

    @property
    def metrics(self) -> Path:
        return Paths(self.root).textfiles / "inference-backup.prom"

    @property
    def command(self) -> Path:
        return self.root / "usr/local/sbin/inference-backup"

    @property
    def library(self) -> Path:
        return self.root / "usr/local/lib/inference_backup"

    @property
    def units(self) -> Path:
        return Paths(self.root).units


def service(job: str) -> str:
    """Name of the unit that runs a job once."""
    return "inference-backup.service" if job == "backup" else f"inference-backup-{job}.service"


def timer(job: str) -> str:
    return service(job).replace(".service", ".timer")
