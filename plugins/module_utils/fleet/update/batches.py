# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which order a fleet's instances are swapped. Private to the collection. Pure.

Batches are of instances, not of hosts. The first is a canary, the others grow. No batch takes the last healthy replica
of a set, unless the set has no other: then the gateway holds its requests meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Due:
    """An instance that is to be swapped."""

    host: str
    name: str
    """The instance's, and so the replica set's."""


class BatchError(ValueError):
    """What is no size of a batch."""


def size_of(text: str | int, total: int) -> int:
    """Instances in a batch of `total`, at least one. Raises BatchError."""
    words = str(text).strip()
    number = words.removesuffix("%")
    if not number.isdecimal() or int(number) == 0 or (number != words and int(number) > 100):
        raise BatchError(f"update_batches holds {text!r}, which is no size: write a number from 1, or 1% to 100%")
    return max(1, math.floor(total * int(number) / 100)) if number != words else int(number)


@dataclass(frozen=True)
class Batch:
    """Instances that are swapped at once. While those `alone` are away, nobody serves their set."""

    items: tuple[Due, ...]
    alone: tuple[Due, ...]


def batches(due: Iterable[Due], healthy: Mapping[str, Collection[str]], sizes: Sequence[str | int]) -> list[Batch]:
    """The batches in their order. `healthy` has the hosts of each set whose instance serves now.

    The last size is repeated until all have had their turn. A node swaps one instance at a time. Instances that do not
    serve come first: nobody loses by them, and they serve when the others' turn comes. Raises BatchError.
    """
    serving = {name: set(hosts) for name, hosts in healthy.items()}
    waiting = sorted(due, key=lambda item: (item.host in serving.get(item.name, ()), item.host, item.name))
    if not sizes:
        raise BatchError("update_batches names no size")
    wanted = [size_of(size, len(waiting)) for size in sizes]
    made: list[Batch] = []
    while waiting:
        items = _fill(waiting, serving, wanted[min(len(made), len(wanted) - 1)])
        alone = tuple(item for item in items if serving.get(item.name, set()) == {item.host})
        made.append(Batch(tuple(items), alone))
        waiting = [item for item in waiting if item not in items]
        for item in items:
            serving.setdefault(item.name, set()).add(item.host)
    return made


def _fill(waiting: Sequence[Due], serving: Mapping[str, Collection[str]], limit: int) -> list[Due]:
    batch: list[Due] = []
    for item in waiting:
        if len(batch) == limit:
            break
        hosts = serving.get(item.name, ())
        fellows = [other for other in batch if other.name == item.name]
        leaving = [other for other in (*fellows, item) if other.host in hosts]
        # The last healthy one of a set goes alone; of more, one stays.
        if fellows and leaving and len(leaving) > len(hosts) - 1:
            continue
        if any(other.host == item.host for other in batch):
            continue
        batch.append(item)
    return batch
