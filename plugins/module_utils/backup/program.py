# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command `inference-backup`. The timers call it, and an operator on the node. Private to the collection.

Exit codes: 0 success, 1 failed, 2 wrong usage.
"""

# pylint: disable=ansible-bad-function  # a command, which prints
from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from . import jobs, state
from .places import JOBS, Places, service


def main(arguments: Sequence[str] | None = None, places: Places | None = None) -> int:
    """Run one command and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="inference-backup",
        description="Backups of this node. To restore one, run the playbook baremetal.inference.restore.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for job, text in zip(JOBS, ("save a snapshot now", "remove old snapshots", "check the repository"), strict=True):
        commands.add_parser(job, help=f"{text}; `systemctl start {service(job)}` does so with limits")
    shown = commands.add_parser(
        "status", help="print the results of the jobs; exit code 1 unless the last backup was ok"
    )
    shown.add_argument("--json", action="store_true", help="print JSON")
    passed = commands.add_parser("restic", help="run restic with this repository: inference-backup restic snapshots")
    passed.add_argument("words", nargs=argparse.REMAINDER, metavar="…", help="arguments for restic")
    options = parser.parse_args(arguments)
    if places is None and os.geteuid() != 0:
        print(f"inference-backup: must run as root: sudo inference-backup {options.command}", file=sys.stderr)
        return 2
    try:
        return _run(options, places or Places())
    except (jobs.NotSetUp, jobs.NotHere, ValueError, OSError) as error:
        print(f"inference-backup: {error}", file=sys.stderr)
        return 1


def _run(options: argparse.Namespace, places: Places) -> int:
    if options.command == "status":
        value = state.read(places)
        running = jobs.running(places, value)
        print(json.dumps(value, indent=2, sort_keys=True) if options.json else as_text(value, time.time(), running))
        known = value["jobs"].get("backup", {})
        interrupted = state.unfinished(known) and running != "backup"
        return 0 if known.get("ok") and not interrupted else 1
    if options.command == "restic":
        _settings, restic = jobs.open_node(places)
        words = ["restic", *restic.access.options(), *options.words]
        os.execvpe(words[0], words, {**os.environ, **restic.access.variables()})
    known = jobs.run(places, options.command)
    if not known["ok"]:
        print(f"inference-backup: {options.command}: {known['error']}", file=sys.stderr)
        return 1
    print(f"{options.command}: {said(options.command, known)}")
    return 0


def as_text(value: dict[str, Any], now: float, running: str = "") -> str:
    """The state as text, one line for each job. `now` is in seconds since 1970; `running` is the job that runs now."""
    lines = [f"repository  {value['repository'] or 'not used yet'}"]
    for job in JOBS:
        known = value["jobs"].get(job)
        if job == "prune" and value.get("append_only"):
            lines.append(f"{job:<11} not on this host: baremetal.inference.backup_prune prunes on the controller")
        elif not known:
            lines.append(f"{job:<11} never ran")
        elif state.unfinished(known):
            lines.append(
                f"{job:<11} began {_time(known['began'])}: {'still runs' if job == running else 'was interrupted'}"
            )
        elif known["ok"]:
            age = (now - known["ended"]) / 3600
            lines.append(f"{job:<11} ok {_time(known['ended'])}, {age:.1f} h ago: {said(job, known)}")
        else:
            last = f"; last ok {_time(known['succeeded'])}" if "succeeded" in known else "; never ok"
            lines.append(f"{job:<11} FAILED {_time(known['ended'])}{last}: {known['error']}")
    return "\n".join(lines)


def said(job: str, known: dict[str, Any]) -> str:
    """The result of a successful job, as text."""
    if job == "backup":
        # Not by core.sizes.counted: the imports of the module `backup` are at their limit.
        saved = f"{known['files']} file{'s' * (known['files'] != 1)}"
        return (
            f"snapshot {known['snapshot']}, {saved}, {known['bytes'] / 1024:.0f} KiB,"
            f" {known['added'] / 1024:.0f} KiB of them new" + late(known.get("behind", 0))
        )
    if job == "prune":
        return f"{known['snapshots']} snapshot{'s' * (known['snapshots'] != 1)} kept"
    return f"intact, {known['subset']} of the data read"


def late(behind: float) -> str:
    """The warning for a clock that was `behind` seconds behind the last snapshot; empty if the clock was not behind."""
    if not behind:
        return ""
    return (
        f". THE CLOCK IS WRONG, or was wrong at the previous snapshot, whose date is {behind / 3600:.1f} h ahead of the"
        " clock. The new snapshot is dated one second after the previous one. Check the clock with `timedatectl`"
    )


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
