# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the backup's own things lie on a node. Private to the collection.

All of it is outside of what is saved: a restore must not bring back an old password, nor the state of another machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..core.paths import Paths

JOBS = ("backup", "prune", "check")
"""What is done by a timer each."""


@dataclass(frozen=True)
class Places:
    """The layout below ``root`` (``/`` on a node, a temporary directory in tests)."""

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
        """What the backup remembers and keeps aside; mode 0700."""
        return self.root / "var/lib/inference-backup"

    @property
    def state(self) -> Path:
        return self.work / "state.json"

    @property
    def aside(self) -> Path:
        """What a restore has replaced, a directory for each."""
        return self.work / "aside"

    @property
    def lock(self) -> Path:
        """Held by the one job that runs, or by a restore."""
        return self.work / "lock"

    @property
    def cache(self) -> Path:
        """restic's own; it may be removed at any time."""
        return self.root / "var/cache/inference-backup"

    @property
    def staging(self) -> Path:
        """Where the copy that is saved lies for a moment: in memory, and gone with the service."""
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
    """The unit that does a job once."""
    return "inference-backup.service" if job == "backup" else f"inference-backup-{job}.service"


def timer(job: str) -> str:
    return service(job).replace(".service", ".timer")
