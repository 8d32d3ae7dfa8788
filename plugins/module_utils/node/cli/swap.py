# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands `inferctl swap` and `rollback`, and those of their units. Private to the collection."""

# pylint: disable=ansible-bad-function  # a command, which prints
from __future__ import annotations

import argparse
import json
import os
import secrets
import socket
import sys
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ...core import journal, systemd
from ...core.paths import Paths, swap_unit
from ...engine import gate, swap_settings
from ...engine.state import history, lock, releases, swaps
from ...engine.state.drains import format_time
from ...engine.swap_terms import ALLOW_DOWNTIME, FORCE
from ...engine.units.swap_units import RESTART_SECONDS
from ..swap import damaged, left_over, machine, perform, request
from ..swap.request import Progress, Request
from .command import FAILED, INTERRUPTED, LOADING, OK, UsageError, fail, known

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

SCHEMA = 1

POLL_SECONDS = 0.3

PERMISSIONS = {
    FORCE: "--force cuts requests that are still in flight",
    ALLOW_DOWNTIME: "--allow-downtime swaps although clients find no engine meanwhile",
}
"""The options that allow what a swap refused."""

LONGEST_REST = 60.0
"""Most seconds to wait, in addition to systemd's delay, before a swap starts again after its process has failed."""


def add(commands: Commands) -> None:
    """Add the commands to the parser."""
    command = commands.add_parser(
        "swap",
        help="swap the release of an instance without a failed request",
        description="Swap the release of an instance in the steps of docs/updates.md, and wait for the end."
        " If this command is interrupted, the swap continues. If the new release fails, the node starts the old one.",
        epilog="Exit codes: 0 the release serves, 1 it does not, 2 wrong usage, 3 the swap is under way (--no-wait).",
    )
    command.add_argument("name", metavar="NAME", help="instance")
    command.add_argument("--to", type=int, required=True, metavar="RELEASE", help="release, see inferctl releases")
    _add_options(command)
    command.set_defaults(run=_swap)

    command = commands.add_parser(
        "rollback",
        help="swap an instance to the release with which it served before",
        description="Like `inferctl swap`, to the release before. The instance stays with this release until the"
        " inventory changes.",
    )
    command.add_argument("name", metavar="NAME", help="instance")
    command.add_argument("release", type=int, nargs="?", metavar="RELEASE", help="default: the one before")
    _add_options(command)
    command.set_defaults(run=_rollback)

    command = commands.add_parser("perform-swap", help="(called by the unit) take the steps of a swap")
    command.add_argument("name", metavar="NAME", help="instance")
    command.set_defaults(run=_perform)
    command = commands.add_parser("resume-swaps", help="(called at boot) close gates, and continue swaps")
    command.set_defaults(run=_resume)


def _add_options(command: argparse.ArgumentParser) -> None:
    force = "cut requests that do not end in time, and those of an engine that hangs"
    command.add_argument("--force", action="store_true", help=force)
    command.add_argument("--allow-downtime", action="store_true", help="swap even if clients find no engine meanwhile")
    command.add_argument(
        "--drain-seconds", type=_seconds, metavar="S", help="how long requests in flight may take to end"
    )
    command.add_argument("--watch-seconds", type=_seconds, metavar="S", help="how long the release is watched")
    command.add_argument("--no-wait", action="store_true", help="only start the swap; inferctl status shows its steps")
    command.add_argument("--json", action="store_true", help="print JSON")


def _seconds(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("must be a whole number of seconds, 0 or more")
    return value


def _swap(options: argparse.Namespace, paths: Paths) -> int:
    known(paths, [options.name])
    return _begin(options, paths, options.to, back=False)


def _rollback(options: argparse.Namespace, paths: Paths) -> int:
    known(paths, [options.name])
    name = options.name
    active, desired = releases.active_number(paths, name), releases.desired_number(paths, name)
    number = history.back_target(paths, name, active, desired) if options.release is None else options.release
    if number is None:
        raise UsageError(f"{name} has no earlier release for a rollback: inferctl releases {name} lists its releases")
    return _begin(options, paths, number, back=True)


def _begin(options: argparse.Namespace, paths: Paths, number: int, *, back: bool) -> int:
    """Take the lock, start the swap, and print its steps."""
    terms = swap_settings.read(paths).terms
    terms = replace(terms, force=options.force, allow_downtime=options.allow_downtime)
    for key in ("drain_seconds", "watch_seconds"):
        if getattr(options, key) is not None:
            terms = replace(terms, **{key: getattr(options, key)})
    now = datetime.now(UTC)
    user = os.environ.get("SUDO_USER") or os.environ.get("USER") or "root"
    run_id = f"{now.strftime('%Y%m%dT%H%M%S')}-{secrets.token_hex(2)}"
    until = lock.until(now, perform.LOCK_SECONDS)
    wanted = lock.Lock(run_id, user, socket.gethostname(), lock.BY_HAND, format_time(now), until)
    # A swap of this instance that was cut off may have left the lock of its run. The new swap adopts the lock.
    _changed, adopted = lock.take(paths, wanted, now, _last_run(paths, options.name))
    reason = f"inferctl {options.command} by {user}"
    try:
        begun = request.begin(paths, Request(options.name, number, run_id, reason, back=back, terms=terms))
    except BaseException:
        _return_lock(paths, run_id, adopted)
        raise
    if not begun:
        _return_lock(paths, run_id, adopted)
        return _report(options, Progress(swaps.DONE, "", (f"release {number} already serves",), ""))
    if options.no_wait:
        return LOADING
    try:
        return _report(options, _follow(options, paths, run_id))
    except KeyboardInterrupt:
        words = f"{options.name}: interrupted, but the swap continues: inferctl status shows its steps"
        return fail(words, INTERRUPTED)


def _return_lock(paths: Paths, run_id: str, adopted: lock.Lock | None) -> None:
    """Release the lock of a swap that did not begin, or return it to the run from which the swap adopted it.

    That run may still be at work. Raises Locked, ValueError, OSError.
    """
    if adopted:
        lock.take(paths, adopted, datetime.now(UTC), run_id)
    else:
        lock.release(paths, run_id)


def _last_run(paths: Paths, name: str) -> str:
    """The run whose swap is under way, or was cut off; empty where there is none."""
    found = swaps.read(paths, name)
    if found and found.step == swaps.DAMAGED:
        return damaged.run_id(paths, name)
    return found.run_id if found else ""


def _follow(options: argparse.Namespace, paths: Paths, run_id: str) -> Progress:
    """Print steps and messages, each once, until the swap has ended. Raises SystemdError."""
    shown: set[str] = set()
    while True:
        found = request.awaited(paths, options.name, run_id, POLL_SECONDS)
        lines = [*found.words, *([found.step] if found.step and not found.outcome else [])]
        for line in lines if not options.json else []:
            if line not in shown:
                print(f"{options.name}: {line}", flush=True)
                shown.add(line)
        if found.outcome:
            return found
        time.sleep(POLL_SECONDS)


def _report(options: argparse.Namespace, found: Progress) -> int:
    if options.json:
        document = {key: value for key, value in asdict(found).items() if key != "step"}
        print(json.dumps({"schema": SCHEMA, "instance": options.name, **document}, indent=2))
    elif found.outcome == swaps.DONE:
        report = found.report
        print(request.line(report, options.name, socket.gethostname()) if report else "; ".join(found.words))
    else:
        words = {
            swaps.REFUSED: "nothing was changed",
            swaps.RETURNED: "the release before serves",
            request.STUCK: "requests stay away: remove the cause, and swap again"
            if found.step == swaps.STUCK
            else f"inferctl status shows whether {options.name} serves: remove the cause, and swap again",
        }
        ends = [found.failure, words[found.outcome], *([PERMISSIONS[found.permission]] if found.permission else [])]
        print(f"inferctl: {options.name}: {'. '.join(ends)}", file=sys.stderr, flush=True)
    for line in left_over.words(found.report, options.name) if found.report and not options.json else []:
        print(f"inferctl: {options.name}: {line}", file=sys.stderr, flush=True)
    return OK if found.outcome == swaps.DONE else FAILED


def _perform(options: argparse.Namespace, paths: Paths) -> int:
    unit = swap_unit(options.name)
    caller = os.environ.get("INVOCATION_ID", "")
    shown = systemd.show([unit], ["InvocationID", "NRestarts"])[unit] if caller else {}
    if not caller or caller != shown["InvocationID"]:
        raise UsageError(f"perform-swap is for {unit} alone: inferctl swap {options.name} --to RELEASE")
    try:
        perform.perform(paths, options.name)
    except Exception:
        # The swap must end some time, but its restarts must not keep the node busy until then.
        time.sleep(_rest(int(shown.get("NRestarts") or 0)))
        raise
    # The report has the outcome of the swap. The unit itself has succeeded.
    return OK


def _rest(restarts: int) -> float:
    """Seconds to wait in addition to systemd's delay, at most LONGEST_REST. Up to this limit, the sum of wait and delay
    doubles with each restart."""
    return min(LONGEST_REST, RESTART_SECONDS * (2.0 ** min(restarts, 16) - 1))


def _resume(_options: argparse.Namespace, paths: Paths) -> int:
    """Close gates before engines start, and continue swaps. A gate that does not close is logged."""
    code = OK

    def report(name: str, error: Exception) -> None:
        nonlocal code
        journal.Journal().say(f"{name}: {error}", journal.WARNING, event="swap", instance=name)
        code = FAILED

    # A swap that cannot be continued must not prevent the others.
    for name in swaps.names(paths):
        anew = swaps.read(paths, name)
        try:
            if not anew or systemd.active_state(swap_unit(name)) in systemd.RUNNING:
                continue
            anew = _after_restart(paths, name, anew)
            for port in anew.closed_ports if anew.gated else ():
                gate.close(port)
        except (gate.GateError, systemd.SystemdError, OSError) as error:
            report(name, error)
        try:
            if anew and anew.step not in (swaps.LED, swaps.STUCK):
                systemd.systemctl("start", "--no-block", swap_unit(name))
        except systemd.SystemdError as error:
            report(name, error)
    return code


def _after_restart(paths: Paths, name: str, found: swaps.Swap) -> swaps.Swap:
    """The swap with which the node continues, as recorded. Raises SystemdError, OSError."""
    known = damaged.rebuilt(paths, name, found) if found.step == swaps.DAMAGED else found
    anew = machine.restarted(known)
    if anew != found:
        swaps.write(paths, name, anew)
    return anew
