# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The jobs that the timers start: backup, prune and check. Private to the collection."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ..core import files
from . import append_only, record, staging, state
from .places import Places
from .restic import Access, Restic, ResticError
from .settings import Settings

_ADVICE = (
    "If the server must refuse deletions, set backup_append_only to true and run baremetal.inference.backup."
    " Otherwise, let the server allow deletions with the credentials in backup_environment"
)
"""What to do if the server refuses the deletions of a host's own prune."""

Work = Callable[[Places, Settings, Restic], dict[str, Any]]
"""Does a job, and returns the values to record in the state file."""


class NotSetUp(Exception):
    """The settings on the host are missing or damaged. The message names the playbook that writes them."""


def open_node(places: Places) -> tuple[Settings, Restic]:
    """The host's settings, and the repository that they name. Raises NotSetUp."""
    try:
        settings = Settings.from_json(files.read_json(places.settings))
        environment = files.read_json(places.environment) or {}
        return settings, Restic(Access.of_node(places, settings, environment))
    except (OSError, ValueError) as error:
        raise NotSetUp(f"{error}. To write the settings, run baremetal.inference.backup for this host") from error


class NotHere(Exception):
    """Another machine does this job for the host. The message says how."""


@contextlib.contextmanager
def alone(places: Places) -> Iterator[None]:
    """Hold the lock of the host's jobs. A second job waits."""
    places.work.mkdir(mode=0o700, parents=True, exist_ok=True)
    with places.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def running(places: Places, value: dict[str, Any]) -> str:
    """The job of the state `value` that runs now; empty if none runs. Raises OSError.

    During a restore, which has the same lock, an interrupted job counts as running.
    """
    begun = {job: known["began"] for job, known in value["jobs"].items() if state.unfinished(known)}
    if not begun or not places.lock.exists():
        return ""
    with places.lock.open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            # Only the last job that began can hold the lock. Each earlier one in `begun` was interrupted.
            return max(begun, key=lambda job: begun[job])
    return ""


def run(places: Places, job: str, clock: Callable[[], float] = time.time) -> dict[str, Any]:
    """Do a job and return its result, with `ok` and `error`. A failed job does not raise.

    Raises NotSetUp, NotHere, and OSError without the lock.
    """
    settings, restic = open_node(places)
    if job == "prune" and settings.append_only:
        raise NotHere(
            "this host cannot delete snapshots (backup_append_only). To remove old ones, run"
            " baremetal.inference.backup_prune on the controller"
        )
    with alone(places):
        # The time is read with the lock held: the job that held it before may have saved a snapshot meanwhile.
        works: dict[str, Work] = {"backup": partial(backup, now=clock()), "prune": prune, "check": check}
        _remember(lambda: state.begin(places, settings, job, clock()))
        try:
            found, error = works[job](places, settings, restic), ""
        except (ResticError, append_only.NotProven, staging.StagingError, OSError, ValueError) as failure:
            found, error = {}, str(failure)
        known = {"ok": not error, "error": error, **found}
        _remember(lambda: known.update(state.end(places, settings, job, clock(), error, **found)))
        return known


def _remember(write: Callable[[], None]) -> None:
    """Write the state. A failure, such as a full disk, is printed and does not stop the job."""
    try:
        write()
    except (OSError, ValueError) as error:
        sys.stderr.write(f"inference-backup: cannot write the state file: {error}\n")
        sys.stderr.flush()


def backup(places: Places, settings: Settings, restic: Restic, now: float) -> dict[str, Any]:
    """Save a snapshot. Raises ResticError, StagingError, OSError.

    A clock in the past (a dead battery, no time server) would date the new snapshot before older snapshots. Then
    `latest` would be an old snapshot, and prune would remove the new one first. So the snapshot is dated one second
    after the last one. `now` is in seconds since 1970.
    """
    behind = restic.newest(settings.host) - now
    staged = staging.stage(places.root, settings.paths, settings.exclude, places.staging, settings.max_mib << 20)
    try:
        value = record.collect(places.root, settings.host, staged.listing.values())
        files.write(places.staging / record.FILE, files.to_json(value), 0o600)
        tags = [f"machine-{value['machine_id'][:8]}"] if value["machine_id"] else []
        moment = now + behind + 1 if behind > 0 else None
        summary = restic.backup(places.staging, settings.host, tags, settings.lock_minutes, moment)
    finally:
        shutil.rmtree(places.staging, ignore_errors=True)
    return {
        "snapshot": str(summary["snapshot_id"])[:8],
        "files": staged.files,
        "bytes": staged.bytes,
        "added": int(summary["data_added"]),
        "tries": staged.tries,
        "behind": max(round(behind), 0),
    }


def prune(places: Places, settings: Settings, restic: Restic) -> dict[str, Any]:
    """Remove this host's old snapshots, and data that no other snapshot uses. Raises ResticError."""
    keep = [word for key, count in settings.keep.items() for word in (f"--keep-{key}", str(count))]
    old = restic.outdated(settings.host, keep)
    restic.forget(settings.host, keep, settings.lock_minutes, old, _ADVICE)
    return {"snapshots": len(restic.snapshots(settings.host))}


def check(places: Places, settings: Settings, restic: Restic) -> dict[str, Any]:
    """Check the structure of the repository, and read a sample of its data.

    With append_only, also check that the server still lets the host delete no backup. Raises ResticError, NotProven.
    """
    restic.patiently(["check", f"--read-data-subset={settings.check_subset}"], settings.lock_minutes)
    if settings.append_only:
        append_only.prove(restic.access)
    return {"subset": settings.check_subset}


def remove_leftovers(directory: Path, pattern: str) -> None:
    """Remove the directories that an interrupted run has left."""
    for path in directory.glob(pattern):
        shutil.rmtree(path, ignore_errors=True)
