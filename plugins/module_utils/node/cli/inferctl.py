# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command `inferctl`. Private to the collection.

Exit codes: 0 fine, 1 failed or a problem was found, 2 wrong usage, 3 not ready yet, 4 cannot be told.
"""

# pylint: disable=ansible-bad-function  # a command, which prints
from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from ...core import systemd
from ...core.docker_api import Docker, DockerError, DockerUnavailable
from ...core.paths import Paths, container_name, unit_name
from ...core.version import VERSION
from ...engine import environment, gate, prepare, swap_settings
from ...engine.probe import idle, wait
from ...engine.state import attempts, drains, lock, releases
from ...hardware.gpu_settings import boot
from ...hardware.gpu_settings.apply import NoAnswer
from .. import status
from ..supervisor import Supervisor
from ..swap.request import Refused
from . import bundle, doctor, drain, health, metrics, plan, recover, swap
from . import releases as cli_releases
from .command import FAILED, LOADING, OK, USAGE, UsageError, known

SCHEMA = 1

CLEAR_TIMEOUT = 20.0
"""Seconds for the removal of a container whose engine has ended. A Docker that hangs must not hold up the next start;
that removes what is left."""

WAIT_SECONDS = 600.0
"""How long wait-ready waits unless told otherwise."""


def main(arguments: Sequence[str] | None = None, paths: Paths | None = None) -> int:
    """Run one command and return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        if paths is None and os.geteuid() != 0:
            raise UsageError(f"must run as root: sudo inferctl {options.command}")
        code: int = options.run(options, paths or Paths())
        return code
    except UsageError as error:
        return _fail(str(error), USAGE)
    except prepare.NotPrepared as error:
        for problem in error.problems:
            _fail(f"{options.name}: {problem}", FAILED)
        return FAILED
    except (
        releases.ReleaseError,
        systemd.SystemdError,
        drains.Held,
        lock.Locked,
        Refused,
        swap_settings.NoSettings,
        gate.GateError,
        DockerError,
        DockerUnavailable,
        NoAnswer,
        OSError,
        ValueError,
    ) as error:
        return _fail(str(error), FAILED)


def _fail(message: str, code: int) -> int:
    print(f"inferctl: {message}", file=sys.stderr, flush=True)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="inferctl",
        description="The inference engines of this node.",
        epilog="Exit codes: 0 fine, 1 failed or a problem was found, 2 wrong usage, 3 not ready yet, 4 cannot be told.",
    )
    parser.add_argument("--version", action="version", version=f"inferctl {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    command = commands.add_parser("status", help="every instance on one screen; 1 unless all declared ones serve")
    command.add_argument("names", nargs="*", metavar="NAME", help="instances (default: all)")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_status)

    command = commands.add_parser("wait-ready", help="wait until instances serve; 1 failed, 3 still loading")
    command.add_argument("names", nargs="+", metavar="NAME", help="instances")
    command.add_argument(
        "--timeout", type=float, default=WAIT_SECONDS, metavar="S", help="seconds (default: %(default).0f)"
    )
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_wait_ready)

    command = commands.add_parser(
        "gpu-settings",
        help="(called at boot) set the GPUs as baremetal.inference.site has left word; 1 if one does not take it",
    )
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_gpu_settings)
    health.add(commands)
    drain.add(commands)
    bundle.add(commands)
    doctor.add(commands)
    metrics.add(commands)
    plan.add(commands)
    recover.add(commands)
    cli_releases.add(commands)
    swap.add(commands)

    steps = (("prepare", _prepare, "check and clear the way"), ("supervise", _supervise, "run the engine"))
    for verb, run, text in steps:
        command = commands.add_parser(verb, help=f"(called by the unit) {text}")
        command.add_argument("name", metavar="NAME", help="instance")
        command.add_argument("--release", type=int, required=True, metavar="N", help="number of the release")
        command.set_defaults(run=run)
    command = commands.add_parser("clear", help="(called by the unit) remove the container")
    command.add_argument("name", metavar="NAME", help="instance")
    command.set_defaults(run=_clear)
    return parser


def _status(options: argparse.Namespace, paths: Paths) -> int:
    statuses = status.collect(paths, known(paths, options.names))
    if options.json:
        print(json.dumps(status.as_json(statuses), indent=2))
    else:
        print(
            status.as_text(statuses)
            if statuses
            else "no instance on this node: baremetal.inference.site makes those of the inventory"
        )
    return OK if status.healthy(statuses) else FAILED


def _wait_ready(options: argparse.Namespace, paths: Paths) -> int:
    outcomes = wait.wait_ready(paths, known(paths, options.names), options.timeout)
    if options.json:
        print(json.dumps({"schema": SCHEMA, "instances": [asdict(outcome) for outcome in outcomes]}, indent=2))
    else:
        for outcome in outcomes:
            print(f"{outcome.instance}: {outcome.state}" + (f": {outcome.status}" if outcome.status else ""))
            for line in outcome.last_words.splitlines():
                print(f"  {line}")
    states = {outcome.state for outcome in outcomes}
    return FAILED if "failed" in states else LOADING if "loading" in states else OK


def _gpu_settings(options: argparse.Namespace, paths: Paths) -> int:
    result = boot.apply(paths)
    if options.json:
        print(json.dumps({"schema": SCHEMA, **result.as_dict()}, indent=2))
    else:
        for line in (*result.changes, *result.pending):
            print(line)
    for failure in result.failures:
        _fail(failure, FAILED)
    return FAILED if result.failures else OK


def _unit_of_caller(options: argparse.Namespace) -> dict[str, str]:
    """The properties of the unit that calls us.

    Raises UsageError for any other caller: each of these commands would take the container from a serving engine.
    """
    unit = unit_name(options.name)
    properties = systemd.show([unit], ["InvocationID", "NRestarts"])[unit]
    caller = os.environ.get("INVOCATION_ID", "")
    # A unit that was never started has no id either.
    if not caller or caller != properties["InvocationID"]:
        raise UsageError(f"{options.command} is for {unit} alone: systemctl start {unit}")
    return properties


def _prepare(options: argparse.Namespace, paths: Paths) -> int:
    properties = _unit_of_caller(options)
    _keep_count(options.name, lambda: recover.count_start(paths, options.name, int(properties["NRestarts"])))
    release = releases.load(paths, options.name, options.release)
    prepare.prepare(release, Docker(), lambda text: print(f"{options.name}: {text}", file=sys.stderr, flush=True))
    return OK


def _supervise(options: argparse.Namespace, paths: Paths) -> int:
    _unit_of_caller(options)
    release = releases.load(paths, options.name, options.release)
    key = environment.read(paths, options.name).get(environment.API_KEY, "")
    supervisor = Supervisor(
        release,
        Docker(),
        systemd.Notifier(),
        key,
        on_ready=lambda: _keep_count(options.name, lambda: attempts.ready(paths, options.name)),
        is_idle=lambda: idle.is_idle(paths, release, datetime.now(UTC)),
    )
    return supervisor.run()


def _clear(options: argparse.Namespace, paths: Paths) -> int:
    """What `docker rm --force` does, without its complaint where a start failed before there was a container."""
    _unit_of_caller(options)
    Docker(timeout=CLEAR_TIMEOUT).remove(container_name(options.name))
    return OK


def _keep_count(name: str, entry: Callable[[], object]) -> None:
    """Keep count of the starts. A full or read-only disk must not keep an engine down for that: it is only told."""
    try:
        entry()
    except OSError as error:
        print(f"{name}: the count of failed starts cannot be kept: {error}", file=sys.stderr, flush=True)
