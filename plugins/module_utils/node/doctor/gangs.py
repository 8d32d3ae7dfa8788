# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks this node's members of gangs. Private to the collection."""

from __future__ import annotations

from collections.abc import Iterator

from ...core import systemd
from ...core.docker_api import DockerError, DockerUnavailable
from ...core.paths import unit_name
from ...core.sizes import counted
from ...engine.gang.members import DIGEST_DIGITS, Gang
from ...engine.release import GANG_LABEL, Release
from ...engine.state import gangs
from ...engine.state.gangs import GangState
from .check import FAIL, OK, SYSTEMD, CannotTell, Check, Finding
from .host import Host


def members(host: Host) -> Finding:
    """All members of each gang are there, and no engine runs without its gang or with another release of the gang."""
    found = {name: (release, release.gang) for name, release in host.releases().items() if release.gang is not None}
    if not found:
        return Finding(OK, "does not apply: no instance over several nodes")
    try:
        shown = systemd.show(map(unit_name, found), ["ActiveState"])
    except systemd.SystemdError as error:
        raise CannotTell(str(error), SYSTEMD) from error
    wrong: list[str] = []
    unknown: list[str] = []
    for name, (release, gang) in found.items():
        active = shown[unit_name(name)]["ActiveState"]
        state = gangs.read(host.paths, name) if active in systemd.RUNNING else None
        if state is not None and gangs.of_last_supervisor(state, active):
            unknown.append(name)
            continue
        wrong += [f"{name}: {words}" for words in (*_engine(host, release, gang, state), *_absent(gang, state))]
    if not _has_key(host):
        wrong.append(
            f"{host.paths.gang_key} is missing or empty, so no gang can start: set gang_key in the inventory, and run"
            " baremetal.inference.site"
        )
    if wrong:
        return Finding(FAIL, "; ".join(wrong), "inferctl status; docs/gangs.md has a section for each fault")
    starts = f"; gangs that start, so that their members are not known yet: {', '.join(unknown)}" if unknown else ""
    known = len(found) - len(unknown)
    return Finding(OK, f"{counted(known, 'gang')} {'is' if known == 1 else 'are'} complete, or stopped{starts}")


def _engine(host: Host, release: Release, gang: Gang, state: GangState | None) -> Iterator[str]:
    """What is wrong with the engine of a member."""
    try:
        container = host.docker.inspect(release.container)
    except (DockerUnavailable, DockerError) as error:
        raise CannotTell(str(error), "systemctl status docker") from error
    if container is None or not container["State"].get("Running"):
        return
    digest = (container["Config"].get("Labels") or {}).get(GANG_LABEL, "")
    if state is None or state.state in gangs.WITHOUT_ENGINE:
        yield f"its engine runs without its gang: systemctl restart {unit_name(release.instance)}"
    elif digest != gang.digest:
        runs, installed = digest[:DIGEST_DIGITS] or "(none)", gang.digest[:DIGEST_DIGITS]
        yield (
            f"its engine has the gang digest {runs}, and the installed release has {installed}: systemctl restart"
            f" {unit_name(release.instance)}"
        )


def _absent(gang: Gang, state: GangState | None) -> Iterator[str]:
    """The members that are not there, as far as this node knows."""
    for member in state.absent if state is not None else ():
        # A follower's own state only repeats the state of its leader, unless the leader refuses the follower.
        if member.rank != gang.rank or member.state == gangs.REFUSED:
            yield f"{member.node} is {member.state}{': ' + member.detail if member.detail else ''}"


def _has_key(host: Host) -> bool:
    try:
        return bool(host.paths.gang_key.read_bytes().strip())
    except OSError:
        return False


CHECKS = (Check("engine-gangs", members),)
