# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of `inferctl` that the unit of an engine calls. Private to the collection.

While they run, the engine does not serve. So this file imports little.
"""

# pylint: disable=ansible-bad-function  # a command, which prints
from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ...core import systemd
from ...core.docker_api import Docker, DockerError, DockerUnavailable
from ...core.paths import Paths, container_name, unit_name
from ...engine import environment, prepare
from ...engine.probe import idle
from ...engine.state import attempts, gangs, releases
from ...engine.state.drains import format_time
from ..recovery import state
from ..supervisor import Supervisor
from .command import FAILED, OK, UsageError, answer, fail

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

VERBS = ("prepare", "supervise", "clear")

CLEAR_TIMEOUT = 20.0
"""Limit for the removal of an ended engine's container, in seconds. A Docker that hangs must not delay the next start.
That start removes the container."""

TOLD = (releases.ReleaseError, systemd.SystemdError, DockerError, DockerUnavailable, OSError, ValueError)
"""Errors of these commands whose message is enough for the operator."""


def main(arguments: Sequence[str], paths: Paths | None = None) -> int:
    """Run one of these commands and return the exit code."""
    parser = argparse.ArgumentParser(prog="inferctl")
    add(parser.add_subparsers(dest="command", required=True))
    return answer(parser.parse_args(arguments), paths, TOLD)


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
    properties = systemd.show([unit], ["InvocationID", "NRestarts"])[unit]
    caller = os.environ.get("INVOCATION_ID", "")
    # A unit that was never started has no id either.
    if not caller or caller != properties["InvocationID"]:
        raise UsageError(f"{options.command} is for {unit} only: systemctl start {unit}")
    return properties


def _prepare(options: argparse.Namespace, paths: Paths) -> int:
    properties = _unit_of_caller(options)
    _keep_count(options.name, lambda: count_start(paths, options.name, int(properties["NRestarts"])))
    release = releases.load(paths, options.name, options.release)
    try:
        prepare.prepare(release, Docker(), lambda text: print(f"{options.name}: {text}", file=sys.stderr, flush=True))
    except prepare.NotPrepared as error:
        for problem in error.problems:
            fail(f"{options.name}: {problem}", FAILED)
        return FAILED
    return OK


def count_start(paths: Paths, name: str, restarts: int) -> None:
    """Count a start. If it follows the death of an engine that served, count the death for recovery's budget.

    The end of a gang because a member leaves is no death. Raises OSError.
    """
    if attempts.begin(paths, name, restarts) == 1 and restarts and not gangs.ended_as_planned(paths, name):
        state.record_death(paths, name, format_time(datetime.now(UTC)))


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
    """Record a start. If the disk is full or read-only, only print that: the engine must start all the same."""
    try:
        entry()
    except OSError as error:
        print(f"{name}: the count of failed starts cannot be recorded: {error}", file=sys.stderr, flush=True)
