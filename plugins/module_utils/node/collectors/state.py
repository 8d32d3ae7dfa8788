# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of the releases that the node runs, and should run. Private to the collection."""

from __future__ import annotations

from ...core import systemd
from ...core.exposition import Help, Samples
from ...core.paths import Paths, unit_name
from ...engine.gang.members import Gang
from ...engine.release import Release
from ...engine.state import gangs, history, pins, releases
from ...engine.state.drains import parse_time

HELP: Help = {
    "inference_release_info": "1 for the active release.",
    "inference_release_number": "Number of the active release.",
    "inference_release_pending": "1 if the node must run another release than the active one.",
    "inference_release_proven": "1 if the active release has proved itself.",
    "inference_release_pinned": "1 if a pin is in force, in place of the release that the inventory asks for.",
    "inference_release_since_timestamp_seconds": "When the instance began to serve with its release.",
    "inference_instance_declared": "1 if the inventory declares the instance, 0 if it does not any more.",
    "inference_instance_gpus": "GPUs that the instance computes on.",
    "inference_gang_members": "Number of members of the gang.",
    "inference_gang_epoch": "Number of the gang's present or last start, as counted by its leader.",
    "inference_gang_member": "1 for the state of a member of the gang, as this node sees it.",
    "inference_reboot_required": "1 if a package or a role needs a reboot.",
}


def render(paths: Paths, samples: Samples) -> None:
    """Add the state of each instance. Values of a damaged file are left out, since the doctor reports the file.

    Raises SystemdError.
    """
    samples.add("inference_reboot_required", (paths.root / "run/reboot-required").exists())
    for name in releases.names(paths):
        try:
            _instance(paths, name, samples)
        except (OSError, ValueError, releases.ReleaseError):
            continue


def _instance(paths: Paths, name: str, samples: Samples) -> None:
    desired, active = releases.desired_number(paths, name), releases.active_number(paths, name)
    wanted = pins.wanted_number(paths, name)
    samples.add("inference_instance_declared", desired is not None, name=name)
    samples.add("inference_release_pending", wanted is not None and wanted != active, name=name)
    samples.add("inference_release_pinned", wanted != desired, name=name)
    if active is None:
        return
    samples.add("inference_release_number", active, name=name)
    samples.add("inference_release_proven", releases.current_number(paths, name) == active, name=name)
    served = history.last(paths, name, active)
    if served:
        samples.add("inference_release_since_timestamp_seconds", parse_time(served.since).timestamp(), name=name)
    release = releases.load(paths, name, active)
    _describe(release, samples)
    if release.gang is not None:
        _gang(paths, release.gang, samples)


def _describe(release: Release, samples: Samples) -> None:
    samples.add("inference_instance_gpus", len(release.gpus), name=release.instance)
    samples.add(
        "inference_release_info",
        1,
        name=release.instance,
        release=str(release.number),
        model=release.model,
        revision=release.revision[:12],
        image=image_label(release.image),
        accelerator=release.accelerator,
    )


def _gang(paths: Paths, gang: Gang, samples: Samples) -> None:
    """Add the gang. The leader reports all members; a follower reports its leader, whose node may be gone."""
    samples.add("inference_gang_members", gang.world, name=gang.name)
    known = gangs.read(paths, gang.name)
    if known is None:
        return
    samples.add("inference_gang_epoch", known.epoch, name=gang.name)
    if gangs.of_last_supervisor(known, systemd.active_state(unit_name(gang.name))):
        return
    for member in known.members:
        if gang.leads or member.rank == 0:
            labels = {"member": member.node, "rank": str(member.rank), "state": member.state}
            samples.add("inference_gang_member", 1, name=gang.name, **labels)


def image_label(image: str) -> str:
    """The last part of an image's name, and the first digits of its digest, which tell images apart."""
    name, _at, digest = image.partition("@")
    last = name.rpartition("/")[2]
    return f"{last}@{digest.removeprefix('sha256:')[:12]}" if digest else last
