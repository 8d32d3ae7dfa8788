# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A summary of a node for the fleet's report: instances, GPUs, the doctor, updates, backups.
Private to the collection."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..backup import state as backup_state
from ..backup.places import Places
from ..backup.settings import Settings
from ..core import files
from ..engine.state import drains, history, lock, releases
from ..hardware.rdma_settings import boot
from . import status
from .doctor import catalogue, check
from .doctor.host import Host

SCHEMA = 1


def gather(host: Host, now: datetime) -> dict[str, Any]:
    """The summary. Raises nothing: a part that cannot be read is None, and `errors` says why."""
    errors: dict[str, str] = {}

    def part(name: str, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except Exception as error:
            errors[name] = str(error) or repr(error)
            return None

    names = part("instances", lambda: releases.names(host.paths))

    def instances() -> Any:
        return names if names is None else status.as_json(status.collect(host.paths, names))["instances"]

    return {
        "schema": SCHEMA,
        "time": drains.format_time(now),
        "system": part("system", lambda: _system(host.root)),
        "instances": part("instances", instances),
        "gpus": part("gpus", lambda: _gpus(host.gpus())),
        "doctor": part("doctor", lambda: _doctor(host)),
        "rails_waiting": part("rails_waiting", lambda: boot.waiting(host.paths)),
        "lock": part("lock", lambda: _lock(host, now)),
        "updated": part("updated", lambda: _updated(host, names or [])),
        "backup": part("backup", lambda: _backup(host.root)),
        "errors": errors,
    }


def _system(root: Path) -> dict[str, Any]:
    text = (root / "etc/debian_version").read_text(encoding="utf-8").strip()
    return {"debian": text, "kernel": os.uname().release, "reboot_required": (root / "run/reboot-required").exists()}


def _gpus(facts: Mapping[str, Any]) -> dict[str, Any]:
    gpus = [gpu for gpu in facts["gpus"] if not gpu["excluded"]]
    driver = facts["gpu_driver"]

    def known(key: str) -> list[float]:
        return [gpu[key] for gpu in gpus if gpu[key] is not None]

    def total(key: str) -> int | None:
        """The sum over the GPUs whose value is known; None if no value is known."""
        return round(sum(found)) if (found := known(key)) else None

    return {
        "present": len(gpus),
        "reported": sum(gpu["reported"] for gpu in gpus),
        "models": sorted({gpu["name"] for gpu in gpus if gpu["name"]}),
        "memory_total_mib": total("memory_total_mib"),
        "memory_used_mib": total("memory_used_mib"),
        "hottest_c": max(known("temperature_c"), default=None),
        "power_w": total("power_draw_w"),
        "driver": driver["version"],
        # Without a GPU, it is no error that nvidia-smi is not installed.
        "error": driver["error"]["message"] if gpus and driver["error"] else "",
    }


def _doctor(host: Host) -> dict[str, Any]:
    settings = catalogue.read(host.paths)
    results = check.run(catalogue.chosen((), settings.off), host)
    return {"verdict": check.verdict(results), "problems": check.problems(results, actions=False)}


def _lock(host: Host, now: datetime) -> dict[str, Any] | None:
    found = lock.read(host.paths)
    return None if found is None else {**asdict(found), "stale": found.stale(now)}


def _updated(host: Host, names: list[str]) -> str | None:
    """When a release last began to serve; None if none did."""
    # ISO 8601 in UTC sorts by time.
    return max((served[-1].since for name in names if (served := history.read(host.paths, name))), default=None)


def _backup(root: Path) -> dict[str, Any] | None:
    """The state of backups; None on a node that makes none. Times are ISO 8601 in UTC."""
    places = Places(root)
    known, settings = backup_state.read(places), files.read_json(places.settings)
    job = known["jobs"].get("backup", {})
    if not job and "since" not in known:
        return None
    return {
        "since": _time(known.get("since")),
        "interval": Settings.from_json(settings).intervals.get("backup") if settings else None,
        "succeeded": _time(job.get("succeeded")),
        "ok": job.get("ok"),
        "error": str(job.get("error") or ""),
    }


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else drains.format_time(datetime.fromtimestamp(seconds, UTC))
