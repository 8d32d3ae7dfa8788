# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of `inferctl` that the unit of an engine calls. Private to the collection.

Each start of an engine waits for these commands. So this file imports little.
"""

# pylint: disable=ansible-bad-function  # a command, which prints
from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ...core import systemd
from ...core.docker_api import Docker, DockerError, DockerUnavailable
from ...core.paths import Paths, container_name, unit_name
from ...engine import environment, prepare
from ...engine.probe import idle
from ...engine.state import attempts, gangs, releases
from ..supervisor import Supervisor
from .command import FAILED, OK, UsageError, answer, fail

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

LAST_END = "ActiveExitTimestampMonotonic"
"""systemd's property: when the unit last left the state `active`."""

SHOWN_REQUESTS = 5
"""The most requests that the journal names. The record of the death has all of them."""

VERBS = ("prepare", "supervise", "clear")

CLEAR_TIMEOUT = 20.0
"""Limit for the removal of an ended engine's container, in seconds. A Docker that hangs must not delay the next start.
That start removes the container."""

EXPECTED = (releases.ReleaseError, systemd.SystemdError, DockerError, DockerUnavailable, OSError, ValueError)
"""Errors of these commands whose message is enough for the operator."""


def main(arguments: Sequence[str], paths: Paths | None = None) -> int:
    """Run one of these commands and return the exit code."""
    parser = argparse.ArgumentParser(prog="inferctl")
    add(parser.add_subparsers(dest="command", required=True))
    return answer(parser.parse_args(arguments), paths, EXPECTED)


def add(commands: Commands) -> None:
    """Add the commands to the parser."""
    steps = (("prepare", _prepare, "check the release, remove leftovers"), ("supervise", _supervise, "run the engine"))
    for verb, run, text in steps:
        command = commands.add_parser(verb, help=f"(called by the unit) {text}")
        command.add_argument("name", metavar="NAME", help="instance")
        command.add_argument("--release", type=int, required=True, metavar="N", help="number of the release")
        command.set_defaults(run=run)
    command = commands.add_parser("clear", help="(called by the unit) remove the container")
    command.add_argument("name", metavar="NAME", help="instance")
    command.set_defaults(run=_clear)


def _unit_of_caller(options: argparse.Namespace) -> dict[str, str]:
    """The properties of the unit that calls us.

    Raises UsageError for any other caller, since these commands would take the container from an engine that serves.
    """
    unit = unit_name(options.name)
    properties = systemd.show([unit], ["InvocationID", "NRestarts", LAST_END])[unit]
    caller = os.environ.get("INVOCATION_ID", "")
    # Without an id, the caller is no unit. A unit that was never started has no id, so two empty ids prove nothing.
    if not caller or caller != properties["InvocationID"]:
        raise UsageError(f"{options.command} is for {unit} only: systemctl start {unit}")
    return properties


def _prepare(options: argparse.Namespace, paths: Paths) -> int:
    properties = _unit_of_caller(options)
    age = seconds_since(properties.get(LAST_END, ""))
    _keep_count(options.name, lambda: count_start(paths, options.name, int(properties["NRestarts"]), age))
    release = releases.load(paths, options.name, options.release)
    try:
        prepare.prepare(release, Docker(), lambda text: print(f"{options.name}: {text}", file=sys.stderr, flush=True))
    except prepare.NotPrepared as error:
        for problem in error.problems:
            fail(f"{options.name}: {problem}", FAILED)
        return FAILED
    return OK


def seconds_since(monotonic: str) -> float:
    """Seconds since a time of the monotonic clock, in microseconds as systemd shows it; 0 if there is none."""
    return max(0.0, time.monotonic() - int(monotonic) / 1e6) if monotonic.isdigit() and int(monotonic) else 0.0


def count_start(paths: Paths, name: str, restarts: int, age: float = 0.0) -> None:
    """Count a start. If it follows the death of an engine that served, `age` seconds ago, record the death.

    The end of a gang because a member leaves is no death. Raises OSError.
    """
    if attempts.begin(paths, name, restarts) > 1 or not restarts:
        return
    if gangs.ended_as_planned(paths, name):
        # Members may leave more often than systemd restarts a unit, as when maintenance reboots one after the other.
        with contextlib.suppress(systemd.SystemdError):
            systemd.systemctl("reset-failed", unit_name(name))
    else:
        _record_death(paths, name, age)


def _record_death(paths: Paths, name: str, age: float) -> None:
    """Report a death to the gateways, and record it with the requests that were in flight there. Raises OSError."""
    from ...engine import swap_settings
    from ..recovery import deaths, in_flight

    try:
        settings = swap_settings.read(paths)
    except swap_settings.NoSettings:
        settings = swap_settings.UNKNOWN
    seen, silent = in_flight.report(settings.gateways, name, settings.node, age)
    death = deaths.record(paths, name, datetime.now(UTC), seen, settings.node)
    if not settings.gateways:
        return
    shown = "; ".join(map(str, death.requests[:SHOWN_REQUESTS])) or "none that a gateway knows"
    more = len(death.requests) - SHOWN_REQUESTS
    lines = [f"requests in flight at its death: {shown}" + (f"; and {more} more" if more > 0 else "")]
    lines += [f"cannot read from {gateway} which requests were in flight: {why}" for gateway, why in silent.items()]
    for line in lines:
        print(f"{name}: {line}", file=sys.stderr, flush=True)


def _supervise(options: argparse.Namespace, paths: Paths) -> int:
    _unit_of_caller(options)
    release = releases.load(paths, options.name, options.release)
    docker, notifier = Docker(), systemd.Notifier()

    def on_ready() -> None:
        _keep_count(options.name, lambda: attempts.ready(paths, options.name))

    def is_idle() -> bool:
        return idle.is_idle(paths, release, datetime.now(UTC))

    def say(message: str) -> None:
        print(f"{options.name}: {message}", file=sys.stderr, flush=True)

    gang = None
    if release.gang is not None:
        from ..gang import sides

        if not release.gang.leads:
            return sides.follows(paths, release, release.gang, docker, notifier, say, on_ready).run()
        gang = sides.leads(paths, release, release.gang, notifier, say, is_idle)
    key = environment.api_key(environment.read(paths, options.name))
    return Supervisor(release, docker, notifier, key, on_ready=on_ready, is_idle=is_idle, gang=gang).run()


def _clear(options: argparse.Namespace, paths: Paths) -> int:
    """Like `docker rm --force`, but without an error if a failed start has left no container."""
    _unit_of_caller(options)
    Docker(timeout=CLEAR_TIMEOUT).remove(container_name(options.name))
    return OK


def _keep_count(name: str, entry: Callable[[], object]) -> None:
    """Record a start, or its success. If the disk is full or read-only, only print the error: the engine must start all
    the same."""
    try:
        entry()
    except OSError as error:
        print(f"{name}: the count of failed starts cannot be recorded: {error}", file=sys.stderr, flush=True)
