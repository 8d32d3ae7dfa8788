# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of a maintenance report: certificates, disks and reboots. Private to the collection; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ..core.sizes import counted

OK, WARN, FAIL = "ok", "warn", "fail"

DAY = 86400.0
GIB = 1 << 30

REAL = ("ext", "xfs", "btrfs", "zfs", "f2fs", "vfat", "overlay", "nfs", "cifs", "ceph", "fuse.", "jfs", "bcachefs")
"""Beginnings of the types of file systems that keep files for good."""

_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True)
class Certificate:
    """A certificate that the site declares. `days` until it expires, negative afterwards; None if unknown."""

    path: str
    days: int | None
    status: str
    words: str


def certificate(path: str, enddate: str, now: datetime, warn_days: int, fail_days: int) -> Certificate:
    """Reads the output of `openssl x509 -enddate -noout`: ``notAfter=Nov 20 12:00:00 2027 GMT``."""
    try:
        text = enddate.strip().partition("notAfter=")[2].removesuffix(" GMT")
        end = datetime.strptime(" ".join(text.split()), "%b %d %H:%M:%S %Y").replace(tzinfo=UTC)
    except ValueError:
        return unreadable(path, "is no certificate in PEM")
    days = int((end - now).total_seconds() // DAY)
    status = FAIL if days < fail_days else WARN if days < warn_days else OK
    words = (
        f"ended {counted(-days, 'day')} ago" if days < 0 else f"has {counted(days, 'day')} left, until {end:%Y-%m-%d}"
    )
    words += "" if status == OK else ": renew the certificate"
    return Certificate(path, days, status, words)


def unreadable(path: str, reason: str) -> Certificate:
    """The result for a certificate that cannot be read."""
    return Certificate(path, None, FAIL, f"{reason}: correct maintenance_certificates, or put the certificate there")


@dataclass(frozen=True)
class Usage:
    """A file system. Sizes are in bytes."""

    path: str
    total: int
    free: int

    def __str__(self) -> str:
        used = 100 * (self.total - self.free) / self.total if self.total else 0.0
        return f"{self.path}: {used:.0f} % used, {self.free / GIB:.1f} of {self.total / GIB:.1f} GiB free"


def is_real(kind: str) -> bool:
    """Whether a file system of this type keeps files for good."""
    return kind.startswith(REAL)


def pending_kernel(running: str, installed: Sequence[str]) -> str:
    """The newest installed kernel, if this machine runs an older one; else empty."""
    if running not in installed:
        # A container runs its host's kernel; a machine that boots over the network has no kernel in /boot.
        return ""
    newest = max(installed, key=_natural)
    return newest if newest != running else ""


def _natural(release: str) -> tuple[list[int], str]:
    return [int(number) for number in _NUMBERS.findall(release)], release


def reboot_reasons(flagged: bool, packages: Iterable[str], kernel: str) -> list[str]:
    """Why a reboot is due; empty if none is due."""
    names = list(dict.fromkeys(name for name in packages if name))
    reasons = [", ".join(names) or "no reason is recorded"] if flagged else []
    return reasons + ([f"kernel {kernel} is installed and does not run"] if kernel else [])
