# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the tables of `nvidia-smi mig`, and tells whether a layout fits. Private to the collection."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ...core.problems import nearest

NAME = r"(?P<compute>[1-9][0-9]*)g\.(?P<memory>[0-9]+)gb(?:[+-][a-z0-9.]+)*"
"""The name of a profile: slices to compute, memory in GB, and attributes such as +me, for the media engines. Source:
MIG User Guide, chapter MIG Device Names."""

START = r"^[| ]+[0-9]+ +"
"""A table's row begins with the index of the GPU."""

PROFILE = re.compile(rf"{START}MIG +(\S+) +([0-9]+) +[0-9]+/([0-9]+) +([0-9]+(?:\.[0-9]+)?) ", re.MULTILINE)
GPU_INSTANCE = re.compile(rf"{START}MIG +(\S+) +[0-9]+ +([0-9]+) +[0-9]+:[0-9]+", re.MULTILINE)
COMPUTE_INSTANCE = re.compile(rf"{START}([0-9]+) +MIG +(\S+) +[0-9]+ +[0-9]+ ", re.MULTILINE)

NONE = re.compile(r"no (?:gpu|compute) instances found|no mig-(?:enabled|supported) devices found", re.IGNORECASE)
"""What stands where a table would be empty, with an exit status that is not 0."""


@dataclass(frozen=True)
class Profile:
    """A size of GPU instance that a card offers."""

    name: str
    number: int
    most: int
    """How many of it the card takes, with nothing else on it."""
    memory_gib: float


@dataclass(frozen=True)
class GpuInstance:
    """A part of a GPU, and the profiles of the compute instances in it."""

    number: int
    profile: str
    computes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its profile where it has the one compute instance that fills it, as we make them; else its content, too,
        so that it is no layout of ours."""
        return self.profile if self.computes == (self.profile,) else f"{self.profile} ({', '.join(self.computes)})"


def plain_name(text: str) -> str:
    """A profile's name without the word MIG that tools put before it."""
    return re.sub(r"^MIG +", "", text.strip(), flags=re.IGNORECASE).casefold()


def profiles(text: str) -> list[Profile]:
    """Of `nvidia-smi mig -lgip`."""
    return [
        Profile(plain_name(name), int(number), int(most), float(memory))
        for name, number, most, memory in PROFILE.findall(text)
    ]


def instances(gpu_instances: str, compute_instances: str) -> list[GpuInstance]:
    """Of `nvidia-smi mig -lgi` and `-lci`, of one GPU."""
    computes: dict[int, list[str]] = {}
    for parent, name in COMPUTE_INSTANCE.findall(compute_instances):
        computes.setdefault(int(parent), []).append(plain_name(name))
    return [
        GpuInstance(int(number), plain_name(name), tuple(computes.get(int(number), ())))
        for name, number in GPU_INSTANCE.findall(gpu_instances)
    ]


def layout(found: Sequence[GpuInstance]) -> list[str]:
    """The profiles of the instances that are there, in the order of a wish."""
    return in_order([one.name for one in found])


def in_order(names: Sequence[str]) -> list[str]:
    """The larger ones first, as the driver wants to be asked: it does not leave room for them by itself. Source: MIG
    User Guide, chapter Creating GPU Instances, of 3g.20gb."""

    def size(name: str) -> tuple[int, int, str]:
        match = re.match(NAME, name)
        return (-int(match["memory"]), -int(match["compute"]), name) if match else (0, 0, name)

    return sorted(names, key=size)


def misfits(wanted: Sequence[str], offered: Sequence[Profile]) -> list[str]:
    """Why a card cannot be laid out like that; whether what fits can also be placed, only the driver knows."""
    known = {one.name: one for one in offered}
    unknown = [name for name in dict.fromkeys(wanted) if name not in known]
    if unknown:
        return [f"the card has no profile {name}: {nearest(name, known)}" for name in unknown]
    found = [
        f"the card takes {known[name].most} of {name}, not {count}"
        for name, count in Counter(wanted).items()
        if count > known[name].most
    ]
    if not found and wanted:
        # Of each, the largest profile has all that there is.
        slices = max(_slices(one.name) for one in offered)
        memory = max(one.memory_gib for one in offered)
        asked = sum(map(_slices, wanted))
        if asked > slices:
            found.append(f"together they are {asked} slices to compute, and the card has {slices}")
        used = sum(known[name].memory_gib for name in wanted)
        # Each number is rounded, and no slice is smaller than some GiB.
        if used > memory + min(one.memory_gib for one in offered) / 2:
            found.append(f"together they have {used:g} GiB, and the card has {memory:g} GiB to give")
    return found


def _slices(name: str) -> int:
    match = re.match(NAME, name)
    return int(match["compute"]) if match else 0
