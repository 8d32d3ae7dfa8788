# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results of the jobs: the state file, and its metrics. Private to the collection."""

from __future__ import annotations

from typing import Any

from ..core import files
from ..core.exposition import Samples
from . import repository
from .places import JOBS, Places
from .settings import Settings

SCHEMA = 1

MOST_INTERRUPTED = 2
"""From this many interrupted runs in a row on, the job counts as failed. A reboot interrupts one run. A time limit that
is too short interrupts each run, and no run would report that."""

_HELP = {
    "inference_backup_interval_seconds": "The longest time between two runs of the schedule; 0 without a schedule.",
    "inference_backup_since_timestamp_seconds": "When backups into this repository were configured.",
    "inference_backup_last_success_timestamp_seconds": "When the job last succeeded.",
    "inference_backup_last_run_timestamp_seconds": "When the job last ended.",
    "inference_backup_last_run_success": "1 if the last run of the job succeeded.",
    "inference_backup_duration_seconds": "How long the last run of the job took.",
    "inference_backup_size_bytes": "Size of the data in the last snapshot.",
    "inference_backup_added_bytes": "Size of the data that the last snapshot added to the repository.",
}


def read(places: Places) -> dict[str, Any]:
    """Read the state. Before the first job, `jobs` is empty. Raises ValueError, OSError."""
    value = files.read_json(places.state)
    if value is None:
        return {"schema": SCHEMA, "repository": "", "jobs": {}}
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise ValueError(f"{places.state} is not of schema {SCHEMA}. Remove it: the next backup writes a new one")
    return value


def is_set_up(places: Places, settings: Settings) -> bool:
    """Whether set_up() would change nothing. False for a damaged state: set_up() then raises. Raises OSError."""
    try:
        value = read(places)
    except ValueError:
        return False
    published = not places.metrics.parent.is_dir() or files.same(places.metrics, metrics(settings, value))
    return published and _begun(value, settings, value.get("since", 0.0)) == value


def set_up(places: Places, settings: Settings, now: float) -> None:
    """Write state and metrics of a host whose backups are configured. Raises ValueError, OSError.

    The alert BackupOld needs these metrics even if no job ever ends.
    """
    before = read(places)
    value = _begun(before, settings, now)
    if value != before:
        _write(places, value)
    publish(places, settings, value)


def _begun(value: dict[str, Any], settings: Settings, now: float) -> dict[str, Any]:
    """The state for the repository in the settings; without jobs if the state is that of another repository."""
    address = repository.mask(settings.repository)
    if value["repository"] != address:
        # The results belong to another repository.
        value = {**value, "repository": address, "jobs": {}, "since": now}
    value = {key: entry for key, entry in value.items() if key != "append_only"}
    if settings.append_only:
        # The host no longer prunes, so the alert about an earlier prune that failed would never end.
        kept = {job: known for job, known in value["jobs"].items() if job != "prune"}
        value = {**value, "jobs": kept, "append_only": True}
    return {"since": now, **value}


def begin(places: Places, settings: Settings, job: str, now: float) -> None:
    """Record that a job begins. An interrupted job leaves only this time, from which the next run counts it."""
    value = _begun(read(places), settings, now)
    value["host"] = settings.host
    known: dict[str, Any] = value["jobs"].setdefault(job, {})
    if unfinished(known):
        known["interrupted"] = known.get("interrupted", 0) + 1
    known["began"] = now
    failed = known.get("interrupted", 0) >= MOST_INTERRUPTED
    if failed:
        known.update(ok=False, error=f"the last {known['interrupted']} runs were interrupted")
    _write(places, value)
    if failed:
        publish(places, settings, value)


def unfinished(known: dict[str, Any]) -> bool:
    """Whether the last run of a job has no end on record: the job still runs, or was interrupted."""
    return bool(known.get("ended", 0) < known.get("began", 0))


def end(places: Places, settings: Settings, job: str, now: float, error: str = "", **found: Any) -> dict[str, Any]:
    """Record that a job has ended, and return its record. `found` has the values that the job returned."""
    value = read(places)
    known: dict[str, Any] = value["jobs"].setdefault(job, {})
    known.pop("interrupted", None)
    known.update(ended=now, seconds=round(now - known.get("began", now), 1), ok=not error, error=error)
    if not error:
        known.update(succeeded=now, **found)
    _write(places, value)
    publish(places, settings, value)
    return known


def _write(places: Places, value: dict[str, Any]) -> None:
    files.write(places.state, files.to_json(value), 0o644)


def publish(places: Places, settings: Settings, value: dict[str, Any]) -> None:
    """Write the metrics file, if node_exporter's directory exists. Raises OSError."""
    if places.metrics.parent.is_dir():
        files.write(places.metrics, metrics(settings, value))


def metrics(settings: Settings, value: dict[str, Any]) -> str:
    """The text of the metrics file."""
    samples = Samples(_HELP)
    for job in JOBS:
        known = value["jobs"].get(job, {})
        samples.add("inference_backup_interval_seconds", settings.intervals.get(job), job=job)
        samples.add("inference_backup_since_timestamp_seconds", value.get("since"), job=job)
        samples.add("inference_backup_last_success_timestamp_seconds", known.get("succeeded"), job=job)
        samples.add("inference_backup_last_run_timestamp_seconds", known.get("ended"), job=job)
        samples.add("inference_backup_last_run_success", known.get("ok"), job=job)
        samples.add("inference_backup_duration_seconds", known.get("seconds"), job=job)
        if "bytes" in known:
            samples.add("inference_backup_size_bytes", known["bytes"])
            samples.add("inference_backup_added_bytes", known["added"])
    return samples.text()
