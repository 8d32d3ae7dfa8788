# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`inferctl releases`: the releases of instances, and where a rollback may lead. Private to the collection."""

# pylint: disable=ansible-bad-function  # a command, which prints
from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ...core.paths import Paths
from ...engine.state import history, lock, pins, releases, swaps
from .command import FAILED, OK, fail, known

SCHEMA = 1


@dataclass
class Kept:
    """A release on this node. `roles` says which of active, current, desired and pinned the release is."""

    release: int
    roles: list[str]
    created: str = ""
    model: str = ""
    revision: str = ""
    image: str = ""
    served_since: str | None = None
    load_seconds: float | None = None
    tokens_per_second: float | None = None
    problem: str = ""


@dataclass(frozen=True)
class Instance:
    """An instance's releases, oldest first, and the swap that is under way. `problem`: why desired and pinned release
    are unknown."""

    name: str
    releases: list[Kept] = field(default_factory=list)
    swap: swaps.Swap | None = None
    pin: pins.Pin | None = None
    problem: str = ""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = commands.add_parser("releases", help="list releases: those that run, and those for a rollback")
    command.add_argument("names", nargs="*", metavar="NAME", help="instances (default: all)")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_releases)


def _releases(options: argparse.Namespace, paths: Paths) -> int:
    found = [collect(paths, name) for name in known(paths, options.names)]
    problems = [instance.problem for instance in found if instance.problem]
    holder = None
    try:
        holder = lock.read(paths)
    except (OSError, ValueError) as error:
        # A damaged lock must not hide the releases.
        problems.append(str(error))
    if options.json:
        instances = [asdict(instance) for instance in found]
        print(
            json.dumps({"schema": SCHEMA, "lock": asdict(holder) if holder else None, "instances": instances}, indent=2)
        )
        return _code(problems)
    for instance in found:
        print(instance.name)
        for kept in reversed(instance.releases):
            print(f"  {_line(kept)}")
        if instance.pin:
            print(f"  pinned: {instance.pin}")
        if instance.swap and instance.swap.step == swaps.DAMAGED:
            print(f"  being swapped: {instance.swap.failure}")
        elif instance.swap:
            origin = "nothing" if instance.swap.origin is None else f"release {instance.swap.origin}"
            print(f"  being swapped: {origin} for {instance.swap.target}, by run {instance.swap.run_id}")
    if not found:
        print("no instance on this node")
    if holder:
        print(f"locked by {holder}")
    return _code(problems)


def _code(problems: Sequence[str]) -> int:
    """Print the problems, and return the exit code."""
    for problem in problems:
        fail(problem, FAILED)
    return FAILED if problems else OK


def collect(paths: Paths, name: str) -> Instance:
    """The releases of an instance. A damaged desired state hides no release. Raises OSError."""
    desired, problem = None, ""
    try:
        desired = releases.desired_number(paths, name)
    except (OSError, ValueError) as error:
        problem = str(error)
    pin = pins.in_force(paths, name, desired)
    roles = {
        "active": releases.active_number(paths, name),
        "current": releases.current_number(paths, name),
        "desired": desired,
        "pinned": pin.release if pin else None,
    }
    kept = [_kept(paths, name, number, roles) for number in releases.numbers(paths, name)]
    return Instance(name, kept, swaps.read(paths, name), pin, problem)


def _kept(paths: Paths, name: str, number: int, roles: dict[str, int | None]) -> Kept:
    kept = Kept(number, [role for role, holder in roles.items() if holder == number])
    served = history.last(paths, name, number)
    if served:
        kept.served_since = served.since
        kept.load_seconds, kept.tokens_per_second = served.load_seconds, served.tokens_per_second
    try:
        release = releases.load(paths, name, number)
    except releases.ReleaseError as error:
        kept.problem = str(error)
        return kept
    kept.created, kept.model, kept.revision = release.created, release.model, release.revision
    kept.image = release.image
    return kept


def _line(kept: Kept) -> str:
    if kept.problem:
        return f"{kept.release:>4}  {kept.problem}"
    image = kept.image.partition("@sha256:")[2][:12] or kept.image
    parts = [f"{kept.release:>4}", kept.model, kept.revision, f"image {image}", f"made {kept.created}"]
    if kept.served_since:
        parts.append(f"served since {kept.served_since}")
    if kept.load_seconds is not None:
        parts.append(f"loaded in {kept.load_seconds:.0f} s")
    if kept.tokens_per_second is not None:
        parts.append(f"{kept.tokens_per_second:.0f} tokens/s")
    return "  ".join([*parts, f"({', '.join(kept.roles)})" if kept.roles else ""]).rstrip()
