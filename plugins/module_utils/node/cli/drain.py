# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands `inferctl drain`, `undrain` and `drains`. Private to the collection."""

# pylint: disable=ansible-bad-function  # a command, which prints
from __future__ import annotations

import argparse
import json
import os
import socket
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ...core import journal
from ...core.paths import Paths
from ...engine.state import drains, gangs
from ...engine.state.drains import Drain, Outcome
from .command import OK, UsageError, known

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

SCHEMA = 1


def add(commands: Commands) -> None:
    """Add the commands to the parser."""
    command = commands.add_parser(
        "drain",
        help="keep requests away from instances",
        description="Record that gateways must send no more requests to instances. Requests in flight end normally.",
    )
    command.add_argument("names", nargs="+", metavar="NAME", help="instances")
    command.add_argument("--reason", required=True, help="why; inferctl drains shows the reason")
    end = command.add_mutually_exclusive_group()
    end.add_argument("--until", metavar="TIME", help="when the drain ends by itself, in ISO 8601 with time zone")
    end.add_argument("--for", dest="duration", metavar="TIME", help="how long the drain lasts, such as 30m")
    command.add_argument("--owner", help="owner of the drain (default: you, on this node)")
    command.add_argument("--force", action="store_true", help="replace another owner's drain")
    command.add_argument("--dry-run", action="store_true", help="only print what would change")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_drain)

    command = commands.add_parser("undrain", help="let gateways send requests to instances again")
    command.add_argument("names", nargs="+", metavar="NAME", help="instances")
    command.add_argument("--owner", help="remove only drains of this owner")
    command.add_argument("--dry-run", action="store_true", help="only print what would change")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_undrain)

    command = commands.add_parser("drains", help="list drains with owners and reasons")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_drains)


def _drain(options: argparse.Namespace, paths: Paths) -> int:
    now = datetime.now(UTC)
    names = known(paths, options.names)
    reason, owner = _one_line(options.reason), _one_line(options.owner or "") or _caller()
    if not reason:
        raise UsageError("--reason is empty: say what the drain is for; the person on call reads the reason")
    for name in names:
        if leader := gangs.leader(paths, name):
            raise UsageError(
                f"{name} follows {leader} here, and only {leader} gets its requests: run the command on {leader}, or"
                " baremetal.inference.drain for this node"
            )
    wanted = Drain(owner, reason, drains.format_time(now), _end(options, now))
    return _report("drain", drains.drain(paths, names, wanted, force=options.force, check=options.dry_run), options)


def _undrain(options: argparse.Namespace, paths: Paths) -> int:
    now = datetime.now(UTC)
    # An instance that is no longer on this node may still have a drain.
    left = drains.names(paths)
    known(paths, [name for name in options.names if name not in left])
    names = dict.fromkeys(options.names)
    outcomes = [drains.undrain(paths, name, options.owner, now, check=options.dry_run) for name in names]
    return _report("undrain", outcomes, options)


def _drains(options: argparse.Namespace, paths: Paths) -> int:
    now = datetime.now(UTC)
    found = [(name, drain) for name in drains.names(paths) if (drain := drains.read(paths, name, now))]
    if options.json:
        document = [{"instance": name, **asdict(drain)} for name, drain in found]
        print(json.dumps({"schema": SCHEMA, "drains": document}, indent=2))
    else:
        for name, drain in found:
            print(f"{name}: {drain}")
        if not found:
            print("nothing is drained")
    return OK


def _report(verb: str, outcomes: list[Outcome], options: argparse.Namespace) -> int:
    """Print the outcomes. In a dry run, `changed` tells what would change."""
    for outcome in outcomes:
        words = f"{outcome.instance}: {outcome.drain or 'not drained'}"
        if outcome.changed and not options.dry_run:
            journal.Journal().say(words, journal.NOTICE, event=verb, instance=outcome.instance)
        if not options.json:
            print(words + (" (unchanged)" if not outcome.changed else " (would change)" if options.dry_run else ""))
    if options.json:
        instances = [asdict(outcome) for outcome in outcomes]
        changed = any(outcome.changed for outcome in outcomes)
        print(json.dumps({"schema": SCHEMA, "changed": changed, "instances": instances}, indent=2))
    return OK


def _end(options: argparse.Namespace, now: datetime) -> str | None:
    """When the drain ends. Raises UsageError."""
    if options.until is None and options.duration is None:
        return None
    try:
        if options.duration is not None:
            end = now + drains.parse_duration(options.duration)
        else:
            end = drains.parse_time(options.until)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{'--until' if options.duration is None else '--for'}: {error}") from error
    if end <= now:
        raise UsageError(f"--until {options.until} is past: give a time after {drains.format_time(now)}")
    return drains.format_time(end)


def _caller() -> str:
    """The user who runs this command, also through sudo."""
    user = os.environ.get("SUDO_USER") or os.environ.get("USER") or os.environ.get("LOGNAME") or "root"
    return f"{user}@{socket.gethostname()}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
