# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command `inferctl doctor`. Private to the collection."""

# pylint: disable=ansible-bad-function  # a command, which prints
from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from ...core.paths import Paths
from ...hardware.rdma_settings import boot
from ..doctor import catalogue, check, rdma_ladder
from ..doctor.host import Host
from . import rdma
from .command import UsageError

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

CODES = {check.OK: 0, check.UNKNOWN: 1, check.WARN: 1, check.FAIL: 2}
"""Exit codes by verdict. They differ from those of other commands."""


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "doctor",
        help="is this node fit to serve? 0 yes, 1 with warnings or unknowns, 2 no",
        description="Check driver, GPUs, RDMA, system, Docker, engines, and the certificate of a gateway. "
        "Changes nothing; takes up to 30 s.",
        epilog="Exit codes: 0 fit, 1 with warnings or unknown results, 2 a check failed (or wrong usage).",
    )
    command.add_argument("names", nargs="*", metavar="NAME", help="checks or kinds of them (default: all that are on)")
    command.add_argument(
        "--rdma", action="store_true", help="why is RDMA slow? one step after the other, up to a fault"
    )
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_doctor)


def _doctor(options: argparse.Namespace, paths: Paths) -> int:
    if options.rdma:
        return _rdma(options, paths)
    if wrong := catalogue.unknown(options.names):
        raise UsageError("; ".join(wrong))
    settings = catalogue.read(paths)
    host = Host(paths, thresholds=settings.thresholds)
    results = check.run(catalogue.chosen(options.names, settings.off), host)
    text = (
        json.dumps(check.as_json(results), indent=2)
        if options.json
        else check.as_text(results, whole=not options.names)
    )
    print(text, flush=True)
    return CODES[check.verdict(results)]


def _rdma(options: argparse.Namespace, paths: Paths) -> int:
    if options.names:
        raise UsageError("--rdma takes no names of checks")
    try:
        recorded = boot.read(paths)
    except ValueError as error:
        raise UsageError(str(error)) from error
    facts = boot.gather(paths.root, rdma.run)
    drift = boot.settle(paths.root, recorded, facts, rdma.run, busy=False, check=True) if recorded else None
    steps = rdma_ladder.climb(facts, recorded, drift, rdma_ladder.silent_managers(facts, rdma.run))
    print(json.dumps(rdma_ladder.as_json(steps), indent=2) if options.json else rdma_ladder.as_text(steps), flush=True)
    return max(CODES[step.status] for step in steps)
