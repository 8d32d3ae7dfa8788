# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command `inferctl`. Private to the collection."""

# pylint: disable=ansible-bad-function  # a command, which prints
from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from ...core.paths import Paths
from ...core.version import VERSION
from ...engine import gate, swap_settings
from ...engine.probe import wait
from ...engine.state import drains, lock
from ...hardware.gpu_settings import boot
from ...hardware.gpu_settings.apply import NoAnswer
from ...hardware.rdma_settings import boot as rails
from .. import status
from ..swap.request import Refused
from . import bundle, doctor, drain, health, metrics, plan, rdma, recover, swap, unit_steps
from . import releases as cli_releases
from .command import FAILED, LOADING, OK, answer, fail, known, wait_seconds

SCHEMA = 1

WAIT_SECONDS = 600.0
"""Default of `wait-ready --timeout`."""

EXPECTED = (*unit_steps.EXPECTED, drains.Held, lock.Locked, Refused, swap_settings.NoSettings, gate.GateError, NoAnswer)
"""Errors whose message is enough for the operator."""


def main(arguments: Sequence[str] | None = None, paths: Paths | None = None) -> int:
    """Run one command and return the exit code."""
    words, engine_words = plan.split(sys.argv[1:] if arguments is None else arguments)
    return answer(_parser().parse_args(words, argparse.Namespace(engine_words=engine_words)), paths, EXPECTED)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="inferctl",
        description="The inference engines of this node.",
        epilog="Exit codes: 0 success, 1 failed or a problem was found, 2 wrong usage, 3 not ready yet, 4 unknown.",
    )
    parser.add_argument("--version", action="version", version=f"inferctl {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    command = commands.add_parser("status", help="show every instance on one screen; 1 unless all declared ones serve")
    command.add_argument("names", nargs="*", metavar="NAME", help="instances (default: all)")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_status)

    command = commands.add_parser("wait-ready", help="wait until instances serve; 1 failed, 3 still loading")
    command.add_argument("names", nargs="+", metavar="NAME", help="instances")
    command.add_argument(
        "--timeout", type=wait_seconds, default=WAIT_SECONDS, metavar="S", help="seconds (default: %(default).0f)"
    )
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_wait_ready)

    command = commands.add_parser(
        "gpu-settings",
        help="(called at boot) set the GPUs as baremetal.inference.site has recorded; 1 if a GPU refuses",
    )
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_gpu_settings)
    health.add(commands)
    drain.add(commands)
    bundle.add(commands)
    doctor.add(commands)
    metrics.add(commands)
    plan.add(commands)
    rdma.add(commands)
    recover.add(commands)
    cli_releases.add(commands)
    swap.add(commands)
    unit_steps.add(commands)
    return parser


def _status(options: argparse.Namespace, paths: Paths) -> int:
    statuses = status.collect(paths, known(paths, options.names))
    waiting = rails.waiting(paths)
    if options.json:
        print(json.dumps({**status.as_json(statuses), "rails_waiting": waiting}, indent=2))
    else:
        print(
            status.as_text(statuses)
            if statuses
            else "no instance on this node: baremetal.inference.site makes those of the inventory"
        )
        for line in waiting:
            print(f"{line}: waits until this node is drained: baremetal.inference.maintenance")
    return OK if status.healthy(statuses) else FAILED


def _wait_ready(options: argparse.Namespace, paths: Paths) -> int:
    outcomes = wait.wait_ready(paths, known(paths, options.names), options.timeout, refusals=True)
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
        fail(failure, FAILED)
    return FAILED if result.failures else OK
