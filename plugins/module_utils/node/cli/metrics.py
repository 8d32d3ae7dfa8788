# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command `inferctl metrics`. Private to the collection."""

# pylint: disable=ansible-bad-function  # a command, which prints
from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from ...core.paths import Paths
from ...engine.units.metrics_units import GROUPS
from ..collectors import catalogue
from ..doctor import catalogue as doctor
from ..doctor.host import Host
from .command import FAILED, OK, UsageError

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "metrics",
        help="print metrics of GPUs, RDMA, releases, recovery and the doctor for Prometheus",
        description="Gather metrics. Print them, or write them where node_exporter reads. Changes nothing else.",
        epilog=f"Collectors: {', '.join(catalogue.COLLECTORS)}; groups: {', '.join(GROUPS)}. Exit codes: 0 "
        "success, 1 a collector failed, which its metrics report, too, 2 wrong usage.",
    )
    command.add_argument("names", nargs="*", metavar="NAME", help="collectors or groups of them (default: all)")
    command.add_argument("--publish", action="store_true", help="write the files for node_exporter, print no text")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_metrics)


def _metrics(options: argparse.Namespace, paths: Paths) -> int:
    try:
        names = catalogue.names(options.names)
    except ValueError as error:
        raise UsageError(str(error)) from error
    host = Host(paths, thresholds=doctor.thresholds(paths))
    pages = []
    for name in names:
        page = catalogue.collect(catalogue.COLLECTORS[name], host)
        pages.append(page)
        if page.problem:
            print(f"inferctl: collector {page.collector}: {page.problem}", file=sys.stderr, flush=True)
        # At once: if further collectors hang, systemd ends this process before they are done.
        if options.publish:
            catalogue.publish(paths, page)
    if options.json:
        print(catalogue.as_json(pages))
    elif not options.publish:
        print("".join(page.text for page in pages), end="", flush=True)
    return FAILED if any(page.problem for page in pages) else OK
