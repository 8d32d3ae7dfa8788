# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command `inferctl recover`, for its units and for operators. Private to the collection."""

# pylint: disable=ansible-bad-function  # a command, which prints
from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ...core.journal import Journal
from ...core.paths import Paths
from ...core.sizes import counted
from ...engine.state import releases
from ..recovery import policy, requests, settings
from ..recovery.ladder import Ladder, summaries
from ..recovery.settings import Settings
from .command import FAILED, OK, UsageError, known

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

SCHEMA = 1


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "recover",
        help="recover an engine that hangs or does not start; without NAME, show the state of recovery",
        description="Take the next step of recovery now, whatever budget, back-off, arming and breaker say. The node's "
        "lock, or a drain by an update, stops the step. Without NAME and options: show budgets and breakers. With "
        "--dry-run: only print the next step of the named instances, or of all, or what another option would change.",
        epilog="Exit codes: 0 success, 1 a breaker is open or a step failed, 2 wrong usage.",
    )
    command.add_argument("names", nargs="*", metavar="NAME", help="instances")
    verb = command.add_mutually_exclusive_group()
    verb.add_argument(
        "--reset",
        action="store_true",
        help="close breakers, renew budgets, remove recovery's drains, and start engines that recovery has given up",
    )
    verb.add_argument("--arm", action="store_true", help="let recovery take steps without an operator")
    verb.add_argument("--disarm", action="store_true", help="let recovery take no step without an operator")
    # For the units.
    verb.add_argument("--triggered", action="store_true", help=argparse.SUPPRESS)
    verb.add_argument("--dispatch", action="store_true", help=argparse.SUPPRESS)
    command.add_argument("--dry-run", action="store_true", help="print the next step and its reason, and take none")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_recover)


def _recover(options: argparse.Namespace, paths: Paths) -> int:
    if options.dry_run and (options.dispatch or options.triggered):
        raise UsageError("--dry-run cannot be used with --triggered or --dispatch, which are for units only")
    if options.dispatch:
        requests.dispatch(paths)
        return OK
    found = settings.read(paths) or Settings()
    ladder = Ladder(paths, found, Journal())
    names = known(paths, options.names)
    changed = False
    reports = []
    if options.reset:
        # A list, since any() over a generator would skip the instances after the first one that changes.
        changed = True in [ladder.reset(name, check=options.dry_run) for name in names]
    elif options.arm or options.disarm:
        changed = True in [ladder.arm(name, options.arm, check=options.dry_run) for name in names]
    elif options.dry_run:
        reports = [ladder.preview(name) for name in names]
    elif options.triggered and len(options.names) != 1:
        raise UsageError("--triggered is for inference-recovery@NAME.service only: inferctl recover NAME")
    elif options.names:
        reports = [ladder.recover(name, by_hand=not options.triggered) for name in names]
        changed = any(report.changed for report in reports)
    # With --dry-run, nothing can fail.
    done = [report for report in reports if report.changed]
    failed = [report for report in done if report.act == policy.GIVE_UP or report.outcome.startswith("failed")]
    shown = summaries(paths, names, found, datetime.now(UTC))
    if options.json:
        documents = [asdict(report) for report in reports]
        print(json.dumps({"schema": SCHEMA, "changed": changed, "instances": shown, "reports": documents}, indent=2))
    else:
        for line in (*map(str, reports), *(_line(one, found) for one in shown if not reports)):
            print(line)
        if not releases.names(paths):
            print("no instance on this node")
    if options.triggered:
        # If recovery has given up, its alert reports that. The unit has succeeded.
        return OK
    return FAILED if failed or any(one["breaker"] for one in shown) else OK


def _line(one: dict[str, Any], found: Settings) -> str:
    # `--arm` does not override recovery_armed of the inventory.
    armed = "armed" if one["armed"] else "DISARMED" if found.armed else "DISARMED by recovery_armed in the inventory"
    parts = [armed, f"{one['budget_left']} of this hour's budget left"]
    breaker = one["breaker"]
    if isinstance(breaker, dict):
        parts.insert(0, f"BREAKER OPEN since {breaker['since']}: {breaker['reason']}")
    keys = one["in_flight"]
    if isinstance(keys, dict) and keys:
        shown = ", ".join(f"{key} ({count})" for key, count in keys.items())
        parts.append(f"{counted(one['deaths'], 'death')} within an hour, keys in flight: {shown}")
    steps = one["steps"]
    if isinstance(steps, tuple | list) and steps:
        last = steps[-1]
        parts.append(f"last step {last['time']}: {last['act']}: {last['outcome'] or last['reason']}")
    return f"{one['instance']}: {', '.join(parts)}"
