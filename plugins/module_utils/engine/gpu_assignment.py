# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which GPUs each instance gets, checked against those that the node has. Private to the collection.

The result has names of CDI devices: the index or the UUID of a GPU; for a MIG device, GPU:DEVICE or its UUID.
A specification of nvidia-ctk has both: its default device-name-strategy is index and uuid. A GPU that an instance lists
keeps its name: so the release stays the same, whether the driver answers or not. Only upper
and lower case in a UUID become those of the driver.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ..core.problems import Problem

INDEX = re.compile(r"(?P<gpu>[0-9]+)(?::[0-9]+)?")
"""A GPU, or a MIG device of a GPU, by index."""

MIG_UUID = "mig-"


@dataclass(frozen=True)
class Wish:
    """What one instance asks for: GPUs by name, or a number of GPUs."""

    where: str
    instance: str
    gpus: tuple[str, ...] | int


@dataclass(frozen=True)
class Device:
    """A device for a container: a GPU, or a MIG device of a GPU."""

    name: str
    """By index: 0, or 0:1 for a MIG device."""
    uuid: str | None
    gpu: str
    """The name of the whole GPU: the same as `name`, unless this is a MIG device."""
    problem: str = ""
    """Why no container can get this device."""

    @property
    def whole(self) -> bool:
        return self.name == self.gpu

    def overlaps(self, other: Device) -> bool:
        """Whether both are the same device, or one is a MIG device of the other."""
        return self.name == other.name or self.name == other.gpu or self.gpu == other.name

    def __str__(self) -> str:
        return f"{self.name} ({self.uuid})" if self.uuid else self.name


@dataclass(frozen=True)
class Node:
    """The GPUs of a node, as far as they are known."""

    devices: tuple[Device, ...] = ()
    """Empty before the driver works."""
    count: int | None = None
    """GPUs on the PCI bus; None: not counted."""

    def find(self, name: str) -> tuple[Device | None, str]:
        """The device of an index or UUID, and its CDI name. Without the driver, the name alone decides."""
        if not self.devices:
            index = INDEX.fullmatch(name)
            return Device(name, None, index["gpu"] if index else name, self._beyond(index)), name
        for device in self.devices:
            if name == device.name:
                return device, device.name
            if device.uuid and name.lower() == device.uuid.lower():
                return device, device.uuid
        return None, name

    def _beyond(self, index: re.Match[str] | None) -> str:
        if index is None or self.count is None or int(index["gpu"]) < self.count:
            return ""
        return f"is no GPU of this node: the PCI bus has {f'{self.count}, counted from 0' if self.count else 'none'}"


def read_node(gpus: Sequence[Mapping[str, Any]] | None) -> Node:
    """The node of the fact `gpus` of the module gpu_facts; None: the fact was not gathered."""
    if gpus is None:
        return Node()
    devices: list[Device] = []
    for gpu in gpus:
        if gpu.get("index") is None or not gpu.get("reported"):
            continue
        name = str(gpu["index"])
        parts = [
            Device(f"{name}:{part['index']}", part.get("uuid"), name)
            for part in gpu.get("mig_devices") or []
            if part.get("index") is not None
        ]
        devices += [Device(name, gpu.get("uuid"), name, _problem(gpu, parts)), *parts]
    return Node(tuple(devices), len(gpus))


def _problem(gpu: Mapping[str, Any], parts: Sequence[Device]) -> str:
    """Why no container can get the whole GPU."""
    if gpu.get("lost"):
        return "has fallen off the bus: power the machine off and on, and see `dmesg`"
    if gpu.get("mig_mode") == "enabled":
        none = "the GPU has no MIG devices yet: make some"
        has = f"list a MIG device of the GPU, {_listed(parts)}" if parts else none
        return f"is in MIG mode: {has}, or switch MIG off"
    return ""


def assign(wishes: Sequence[Wish], node: Node) -> tuple[list[tuple[str, ...]], list[Problem]]:
    """The CDI names of the devices that each wish gets, and every mistake in the wishes.

    First come the GPUs that wishes list. Then each wish for a number of GPUs gets those with the lowest free index, in
    the order of the wishes.
    """
    taken: list[tuple[Device, str, str]] = []
    problems: list[Problem] = []
    given: list[tuple[str, ...]] = []
    for wish in wishes:
        names: list[str] = []
        for text in wish.gpus if isinstance(wish.gpus, tuple) else ():
            device, name = node.find(text)
            message = _refusal(device, text, node, taken)
            if message:
                problems.append(Problem(wish.where, message, "gpus", text))
            if device is not None:
                taken.append((device, wish.instance, text))
                names.append(name)
        given.append(tuple(names))
    for position, wish in enumerate(wishes):
        if isinstance(wish.gpus, tuple):
            continue
        free = _free(node, [device for device, _instance, _text in taken], wish.gpus)
        if len(free) < wish.gpus:
            problems.append(Problem(wish.where, _too_many(node, len(free), taken), "gpus", wish.gpus))
        taken += [(device, wish.instance, device.name) for device in free]
        given[position] = tuple(device.name for device in free)
    return given, problems


def _refusal(device: Device | None, text: str, node: Node, taken: Sequence[tuple[Device, str, str]]) -> str:
    """Why an instance cannot get a device that it lists; empty where it can."""
    if device is None:
        return f"is no working GPU of this node: the node has {_listed(node.devices)}"
    if device.problem:
        return device.problem
    other, instance, alias = next((entry for entry in taken if entry[0].overlaps(device)), (None, "", ""))
    if other is None:
        return ""
    if other.name == device.name:
        return f"is given to {instance} already{'' if alias == text else f', as {alias}'}: a GPU serves one instance"
    relation = "has the MIG device" if device.whole else "is a MIG device of"
    return f"{relation} {alias}, which is given to {instance} already: a GPU serves one instance"


def _free(node: Node, taken: Sequence[Device], wanted: int) -> list[Device]:
    """`wanted` whole GPUs, or fewer where fewer are free."""
    if node.devices:
        candidates = [device for device in node.devices if device.whole and not device.problem]
        return [device for device in candidates if not any(device.overlaps(other) for other in taken)][:wanted]
    # The UUID of a whole GPU counts as one GPU: without the driver, the index of that GPU is unknown.
    gpus = {device.gpu for device in taken if not device.gpu.lower().startswith(MIG_UUID)}
    most = wanted if node.count is None else min(wanted, max(node.count - len(gpus), 0))
    free = (str(index) for index in range(len(gpus) + most) if str(index) not in gpus)
    return [Device(name, None, name) for name in islice(free, most)]


def _too_many(node: Node, free: int, taken: Sequence[tuple[Device, str, str]]) -> str:
    holders: dict[str, list[str]] = {}
    for _device, instance, text in taken:
        holders.setdefault(instance, []).append(text)
    held = "; ".join(f"{instance} has {', '.join(texts)}" for instance, texts in holders.items())
    unusable = "; ".join(f"{device.name} {device.problem}" for device in node.devices if device.problem)
    why = "; ".join(filter(None, (held, unusable)))
    return f"is more than the {free} free GPUs of this node, which has {node.count} GPUs{f' ({why})' if why else ''}"


def _listed(devices: Sequence[Device]) -> str:
    return ", ".join(map(str, devices)) or "none"
