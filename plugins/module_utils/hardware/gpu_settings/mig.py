# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the tables of `nvidia-smi mig`, and checks whether MIG devices fit a card. Private to the collection."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ...core.problems import nearest

NAME = r"(?P<compute>[1-9][0-9]*)g\.(?P<memory>[0-9]+)gb(?:[+-][a-z0-9.]+)*"
"""The name of a profile: compute slices, memory in GB, and attributes such as +me for the media engines. Source: MIG
User Guide, chapter MIG Device Names."""

START = r"^[| ]+[0-9]+ +"
"""Start of a table's row: the index of the GPU."""

PROFILE = re.compile(rf"{START}MIG +(\S+) +([0-9]+) +[0-9]+/([0-9]+) +([0-9]+(?:\.[0-9]+)?) ", re.MULTILINE)
GPU_INSTANCE = re.compile(rf"{START}MIG +(\S+) +[0-9]+ +([0-9]+) +[0-9]+:[0-9]+", re.MULTILINE)
COMPUTE_INSTANCE = re.compile(rf"{START}([0-9]+) +MIG +(\S+) +[0-9]+ +[0-9]+ ", re.MULTILINE)

NONE = re.compile(r"no (?:gpu|compute) instances found|no mig-(?:enabled|supported) devices found", re.IGNORECASE)
"""The message instead of an empty table. The exit status is then not 0."""


@dataclass(frozen=True)
class Profile:
    """A profile of GPU instances that a card supports."""

    name: str
    number: int
    most: int
    """How many instances of this profile an otherwise empty card can have."""
    memory_gib: float


@dataclass(frozen=True)
class GpuInstance:
    """A GPU instance, and the profiles of its compute instances."""

    number: int
    profile: str
    computes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its profile if one compute instance fills it, as the role nvidia_driver creates them. Otherwise also its
        compute instances, so that it differs from every wanted profile."""
        return self.profile if self.computes == (self.profile,) else f"{self.profile} ({', '.join(self.computes)})"


def plain_name(text: str) -> str:
    """A profile's name in lower case, without the word MIG that nvidia-smi puts before it."""
    return re.sub(r"^MIG +", "", text.strip(), flags=re.IGNORECASE).casefold()


def profiles(text: str) -> list[Profile]:
    """The profiles in the output of `nvidia-smi mig -lgip`."""
    return [
        Profile(plain_name(name), int(number), int(most), float(memory))
        for name, number, most, memory in PROFILE.findall(text)
    ]


def instances(gpu_instances: str, compute_instances: str) -> list[GpuInstance]:
    """The instances of one GPU in the output of `nvidia-smi mig -lgi` and `-lci`."""
    computes: dict[int, list[str]] = {}
    for parent, name in COMPUTE_INSTANCE.findall(compute_instances):
        computes.setdefault(int(parent), []).append(plain_name(name))
    return [
        GpuInstance(int(number), plain_name(name), tuple(computes.get(int(number), ())))
        for name, number in GPU_INSTANCE.findall(gpu_instances)
    ]


def layout(found: Sequence[GpuInstance]) -> list[str]:
    """The profiles of existing instances, in the order of `in_order`."""
    return in_order([one.name for one in found])


def in_order(names: Sequence[str]) -> list[str]:
    """Larger profiles first, because the driver leaves no room for them after smaller ones. Source: MIG User Guide,
    chapter Creating GPU Instances, on the placement of 3g.20gb."""

    def size(name: str) -> tuple[int, int, str]:
        match = re.match(NAME, name)
        return (-int(match["memory"]), -int(match["compute"]), name) if match else (0, 0, name)

    return sorted(names, key=size)


def misfits(wanted: Sequence[str], offered: Sequence[Profile]) -> list[str]:
    """Why a card cannot have these MIG devices. The driver may still refuse devices without a problem here."""
    known = {one.name: one for one in offered}
    unknown = [name for name in dict.fromkeys(wanted) if name not in known]
    if unknown:
        return [f"the card has no profile {name}: {nearest(name, known)}" for name in unknown]
    found = [
        f"the card can have {known[name].most} of {name}, not {count}"
        for name, count in Counter(wanted).items()
        if count > known[name].most
    ]
    if not found and wanted:
        # The largest profile has all slices, or all memory, of the card.
        slices = max(_slices(one.name) for one in offered)
        memory = max(one.memory_gib for one in offered)
        asked = sum(map(_slices, wanted))
        if asked > slices:
            found.append(f"together they have {asked} compute slices, but the card has {slices}")
        used = sum(known[name].memory_gib for name in wanted)
        # Allow for rounding: every number is rounded, and the smallest profile has some GiB.
        if used > memory + min(one.memory_gib for one in offered) / 2:
            found.append(f"together they have {used:g} GiB, but the card has {memory:g} GiB")
    return found


def _slices(name: str) -> int:
    match = re.match(NAME, name)
    return int(match["compute"]) if match else 0
