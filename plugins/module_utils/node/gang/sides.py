# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the two sides of a gang from a node's files. Private to the collection."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from ...core import commands
from ...core.docker_api import Docker, DockerError, DockerUnavailable
from ...core.paths import Paths
from ...core.systemd import Notifier
from ...engine import prepare
from ...engine.gang.members import Gang
from ...engine.release import Release
from ...engine.state import drains, pins, releases, swaps
from ...engine.state.drains import Drain, format_time
from ..supervisor import EngineError
from .follows import Follows
from .leads import Leads
from .messages import Prove
from .moves import Own
from .record import Record

DOCKER = "/usr/bin/docker"

CREATE_TIMEOUT = 60.0
"""Seconds for `docker create`."""

DRAIN_SLACK = 60
"""Seconds by which a drain outlasts the stop for which it was recorded. Then the drain ends by itself."""

LEAVE_SLACK = 10
"""Seconds that the leader may take to drain the gang, in addition to the time for the drain and the kill of its engine.
Less than CLEAN_UP of the unit."""

PROVEN = frozenset({swaps.MEMBERS, swaps.PROVE, swaps.UNBRIDGE})
"""Steps of a swap at which the leader's release has passed all checks."""

Say = Callable[[str], None]


def leads(
    paths: Paths, release: Release, gang: Gang, notifier: Notifier, say: Say, is_idle: Callable[[], bool]
) -> Leads:
    """The leader's side of a gang."""

    def drain(reason: str) -> None:
        now = datetime.now(UTC)
        until = now + timedelta(seconds=release.drain_timeout + release.adapter.stop.kill_grace + DRAIN_SLACK)
        try:
            wanted = Drain(drains.GANG, reason, format_time(now), format_time(until))
            drains.drain(paths, [release.instance], wanted)
        except drains.Held:
            # Requests stay away already.
            pass
        except OSError as error:
            say(f"the drain cannot be recorded: {error}")

    def undrain() -> None:
        try:
            drains.undrain(paths, release.instance, drains.GANG, datetime.now(UTC))
        except OSError as error:
            say(f"the drain cannot be removed: {error}")

    record = Record(paths, gang, say)
    return Leads(
        gang,
        paths.gang_key,
        record,
        notifier,
        drain=drain,
        undrain=undrain,
        is_idle=is_idle,
        numbers=numbers(paths, release, gang),
        proof=lambda: proof(paths, release),
    )


def numbers(paths: Paths, release: Release, gang: Gang) -> dict[str, int]:
    """The followers' own numbers of the leader's release, as far as a swap has recorded them."""
    swap = swaps.read(paths, release.instance)
    found = {follower.node: swap.release_of(follower.node, release.number) for follower in gang.followers if swap}
    return {node: number for node, number in found.items() if number}


def proof(paths: Paths, release: Release) -> Prove | None:
    """The message to followers if the leader's release has proved itself; None if it has not. Raises nothing."""
    name, number = release.instance, release.number
    swap = swaps.read(paths, name)
    if swap is not None:
        if swap.step not in PROVEN or swap.release != number:
            return None
        keeps = swap.pin and not swap.returning
        return Prove((swap.reason or "a swap of the gang") if keeps else "", int(swap.back))
    if releases.current_number(paths, name) != number:
        return None
    pin = pins.read(paths, name)
    return Prove(pin.reason, int(pin.back)) if pin and pin.release == number else Prove("", 0)


def follows(
    paths: Paths,
    release: Release,
    gang: Gang,
    docker: Docker,
    notifier: Notifier,
    say: Say,
    on_ready: Callable[[], None],
) -> Follows:
    """The supervisor of a follower."""
    return Follows(
        gang,
        release,
        docker,
        notifier,
        paths.gang_key,
        Record(paths, gang, say),
        own=Own(paths, release.instance, release.number, say),
        create=lambda: create(release, docker),
        on_ready=on_ready,
        leave_limit=release.drain_timeout + release.adapter.stop.kill_grace + LEAVE_SLACK,
    )


def create(release: Release, docker: Docker, program: str = DOCKER) -> None:
    """Create a release's container anew. Raises EngineError.

    Like the start of a unit, pulls no image: only a run of a playbook verifies an image's signature.
    """
    try:
        docker.remove(release.container)
        lost = prepare.missing(release, docker)
    except (DockerError, DockerUnavailable) as error:
        raise EngineError(f"Docker cannot replace the container {release.container}: {error}") from error
    if lost:
        raise EngineError(f"The container {release.container} cannot be created: {'; '.join(lost)}")
    outcome = commands.run([program, "create", "--pull=never", *release.container_argv[1:]], CREATE_TIMEOUT)
    if outcome.code != 0:
        why = outcome.message or outcome.stderr.strip() or f"exit code {outcome.code}"
        raise EngineError(f"Docker cannot create the container {release.container}: {why}")
