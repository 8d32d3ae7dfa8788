# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command `inference-backup`: what the timers call, and a person at the node. Private to the collection.

Exit codes: 0 fine, 1 failed, 2 wrong usage.
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
from .places import JOBS, Places


def main(arguments: Sequence[str] | None = None, places: Places | None = None) -> int:
    """Run one command and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="inference-backup", description="Backups of this node. baremetal.inference.restore restores."
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for job, text in zip(JOBS, ("save a snapshot now", "forget old snapshots", "check the repository"), strict=True):
        commands.add_parser(job, help=f"{text}; `systemctl start` of its unit does it within limits")
    shown = commands.add_parser("status", help="how the jobs went; 1 unless the last backup succeeded")
    shown.add_argument("--json", action="store_true", help="print JSON")
    passed = commands.add_parser("restic", help="restic itself with this repository: inference-backup restic snapshots")
    passed.add_argument("words", nargs=argparse.REMAINDER, metavar="…", help="restic's own arguments")
    options = parser.parse_args(arguments)
    if places is None and os.geteuid() != 0:
        print(f"inference-backup: must run as root: sudo inference-backup {options.command}", file=sys.stderr)
        return 2
    try:
        return _run(options, places or Places())
    except (jobs.NotSetUp, ValueError, OSError) as error:
        print(f"inference-backup: {error}", file=sys.stderr)
        return 1


def _run(options: argparse.Namespace, places: Places) -> int:
    if options.command == "status":
        value = state.read(places)
        print(json.dumps(value, indent=2, sort_keys=True) if options.json else as_text(value, time.time()))
        return 0 if value["jobs"].get("backup", {}).get("ok") else 1
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


def as_text(value: dict[str, Any], now: float) -> str:
    """The state for people."""
    lines = [f"repository  {value['repository'] or 'not used yet'}"]
    for job in JOBS:
        known = value["jobs"].get(job)
        if not known:
            lines.append(f"{job:<11} never ran")
        elif known.get("ended", 0) < known["began"]:
            lines.append(f"{job:<11} began {_time(known['began'])}: runs, or was cut off")
        elif known["ok"]:
            age = (now - known["ended"]) / 3600
            lines.append(f"{job:<11} ok {_time(known['ended'])}, {age:.1f} h ago: {said(job, known)}")
        else:
            last = f"; last ok {_time(known['succeeded'])}" if "succeeded" in known else "; never ok"
            lines.append(f"{job:<11} FAILED {_time(known['ended'])}{last}: {known['error']}")
    return "\n".join(lines)


def said(job: str, known: dict[str, Any]) -> str:
    """What a job has done."""
    if job == "backup":
        return (
            f"snapshot {known['snapshot']}, {known['files']} files, {known['bytes'] / 1024:.0f} KiB,"
            f" {known['added'] / 1024:.0f} KiB of them new" + late(known.get("behind", 0))
        )
    return f"{known['snapshots']} snapshots kept" if job == "prune" else f"whole, {known['subset']} of the data read"


def late(behind: float) -> str:
    """What there is to say of a clock that was `behind` (seconds) the last snapshot."""
    if not behind:
        return ""
    return (
        f". THE CLOCK IS WRONG, or was at the snapshot before, which is {behind / 3600:.1f} h later: this one is dated"
        " after it. Look at `timedatectl`"
    )


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
