# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command `inferctl bundle`. Private to the collection."""

# pylint: disable=ansible-bad-function  # a command, which prints
from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ...core import commands as programs
from ...core.paths import Paths
from ...engine.state.drains import format_time, parse_duration, parse_time
from ..bundle import archive, contents, read
from ..bundle.item import ABSENT, COLLECTED
from ..doctor import catalogue
from ..doctor.host import Host
from .command import OK, UsageError

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "bundle",
        help="collect everything that support or an RMA needs in one file",
        description="Collect logs, states, facts, configuration and NVIDIA's own report into one .tar.gz for root. Its "
        "manifest lists what was collected and what was not. Secrets are masked, prompts are left out. Changes "
        "nothing. Takes a few minutes, and longer if GPUs hang: each part has a time limit.",
    )
    command.add_argument(
        "--output", type=Path, metavar="FILE", help=f"file to write, or directory (default: {archive.DIRECTORY})"
    )
    command.add_argument(
        "--since", metavar="T", help="journals since then: 2h, 3d, or a time in ISO 8601 (default: their last lines)"
    )
    command.add_argument("--json", action="store_true", help="print JSON, and no progress")
    command.set_defaults(run=_bundle)


def _bundle(options: argparse.Namespace, paths: Paths) -> int:
    now = datetime.now(UTC)
    since = _since(options.since, now) if options.since else None
    try:
        path = archive.destination(options.output, now)
    except FileExistsError as error:
        raise UsageError(str(error)) from error
    host = Host(paths, thresholds=catalogue.thresholds(paths))
    reader = read.Reader(programs.run, read.secrets(paths))
    items = contents.items(paths, host, reader, since, now)
    more = {"since": format_time(since) if since else None}
    bundle = archive.write(path, items, now, more, (lambda _text: None) if options.json else _progress)
    if options.json:
        print(json.dumps(bundle.to_json(), indent=2))
        return OK
    for part in bundle.parts:
        if part.status not in (COLLECTED, ABSENT):
            print(f"{part.status}: {part.file}: {part.reason.splitlines()[0]}")
    count = bundle.count()
    summary = ", ".join(f"{number} {status}" for status, number in count.most_common())
    print(f"{bundle.path}: {bundle.size / (1 << 20):.1f} MiB, {summary}. Look through it before you send it out.")
    return OK


def _since(text: str, now: datetime) -> datetime:
    """The time that --since names, as a time or as a duration before now. Raises UsageError."""
    try:
        return now - parse_duration(text)
    except OverflowError as error:
        raise UsageError(f"--since: {text!r} is too long: write a shorter duration") from error
    except ValueError:
        pass
    try:
        return parse_time(text)
    except ValueError as error:
        raise UsageError(f"--since: {error}; or give a duration, such as 2h or 3d") from error


def _progress(text: str) -> None:
    print(f"inferctl: {text}", file=sys.stderr, flush=True)
