# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what a maintenance reports of a node: reboot, driver, rails, disks, certificates and the store. Private to the
collection."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from ..core import commands, files
from ..core.paths import Paths
from ..debian.block_devices import read_mounts
from ..hardware.driver import dkms, kernels
from ..hardware.rdma_settings import boot
from ..models.manifest import MANIFEST, REVISION, Manifest
from ..store.hashes import hash_cache
from ..store.store import Store
from . import report

SECONDS = 60.0
"""Limit for one command."""


def reboot_reasons(root: Path) -> list[str]:
    """Why a reboot is due; empty if none is due."""
    flag = root / "run/reboot-required"
    try:
        packages = (root / "run/reboot-required.pkgs").read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        packages = []
    installed = [kernel.release for kernel in kernels.installed(root)]
    return report.reboot_reasons(flag.exists(), packages, report.pending_kernel(platform.release(), installed))


def has_driver() -> bool:
    """Whether DKMS builds the NVIDIA driver. False on a node without DKMS."""
    outcome = commands.run(["dkms", "status"], SECONDS)
    return any(module.is_nvidia_driver for module in dkms.parse(outcome.stdout))


def rails(paths: Paths) -> list[str]:
    """The recorded settings of RDMA rails that differ, and that need a drained node. Empty without recorded settings,
    and where the record is damaged, which the doctor reports."""
    try:
        wanted = boot.read(paths)
    except ValueError:
        return []
    if wanted is None:
        return []

    def run(command: Sequence[str]) -> commands.Outcome:
        return commands.run(command, SECONDS)

    found = boot.gather(paths.root, run)
    return [str(one) for one in boot.settle(paths.root, wanted, found, run, busy=True, check=True).pending]


def usages(root: Path) -> list[report.Usage]:
    """The file systems that keep files for good, each once. Raises OSError."""
    found: dict[int, report.Usage] = {}
    for mount in read_mounts(root / "proc"):
        path = Path(mount.path)
        # An overlay other than the root belongs to a container.
        if not report.is_real(mount.kind) or (mount.kind == "overlay" and mount.path != "/"):
            continue
        try:
            if not path.is_dir():
                continue
            stat, device = os.statvfs(path), path.stat().st_dev
        except OSError:
            # The server of a network file system has an error. The doctor reports models that cannot be read.
            continue
        usage = report.Usage(mount.path, stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize)
        if usage.total and (device not in found or len(mount.path) < len(found[device].path)):
            found[device] = usage
    return sorted(found.values(), key=lambda usage: usage.path)


def certificates(paths: Iterable[str], now: datetime, warn_days: int, fail_days: int) -> list[dict[str, Any]]:
    """The state of each certificate."""
    return [asdict(_certificate(path, now, warn_days, fail_days)) for path in paths]


def _certificate(path: str, now: datetime, warn_days: int, fail_days: int) -> report.Certificate:
    if not Path(path).is_file():
        return report.unreadable(path, "does not exist")
    outcome = commands.run(["openssl", "x509", "-enddate", "-noout", "-in", path], SECONDS)
    return report.certificate(path, outcome.stdout if outcome.code == 0 else "", now, warn_days, fail_days)


def damaged(root: Path, cache: Path, *, verify: bool, read_only: bool) -> tuple[int, list[str]]:
    """The number of published revisions, and the damage to them. Raises OSError."""
    records = sorted(
        path
        for path in root.glob(f"[!.]*/*/{MANIFEST}")
        if REVISION.match(path.parent.name) and not path.parent.is_symlink()
    )
    problems = []
    with hash_cache(cache, read_only) as known:
        store = Store(root, known, verify)
        for record in records:
            where = f"{record.parent.parent.name}/{record.parent.name}"
            try:
                plan = store.plan(record.parent.parent.name, Manifest.from_dict(files.read_json(record)))
            except ValueError as error:
                problems.append(f"{where}: {MANIFEST} {error}")
                continue
            problems += [f"{where}: {damage}" for damage in plan.damage]
    return len(records), problems
