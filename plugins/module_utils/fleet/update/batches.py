# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which order a fleet's instances are swapped. Private to the collection. Pure.

Batches are of instances, not of hosts. The first is a canary, the others grow. No batch takes the last server of a set
that some gateway has, unless the gateway has no other: then that instance goes without a fellow of its set, and plan.py
says what its clients have meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass

from .serving import Serving


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
    """Instances that are swapped at once. While one of those `alone` is away, some gateway has no server of its set."""

    items: tuple[Due, ...]
    alone: tuple[Due, ...]


def batches(due: Iterable[Due], serving: Serving, sizes: Sequence[str | int]) -> list[Batch]:
    """The batches in their order.

    The last size is repeated until all have had their turn. A node swaps one instance at a time. Instances that the
    fewest gateways send requests to come first: the fewest lose by them, and they serve when the others' turn comes.
    Raises BatchError.
    """
    waiting = sorted(due, key=lambda item: (serving.count(item.name, item.host), item.host, item.name))
    if not sizes:
        raise BatchError("update_batches names no size")
    wanted = [size_of(size, len(waiting)) for size in sizes]
    serving = deepcopy(serving)
    made: list[Batch] = []
    while waiting:
        items = _fill(waiting, serving, wanted[min(len(made), len(wanted) - 1)])
        alone = tuple(item for item in items if serving.lost(item.name, [item.host]))
        made.append(Batch(tuple(items), alone))
        waiting = [item for item in waiting if item not in items]
        for item in items:
            serving.back(item.name, [item.host])
    return made


def _fill(waiting: Sequence[Due], serving: Serving, limit: int) -> list[Due]:
    batch: list[Due] = []
    for item in waiting:
        if len(batch) == limit:
            break
        fellows = [other.host for other in batch if other.name == item.name]
        # The last server of a gateway goes without a fellow.
        if fellows and serving.lost(item.name, [*fellows, item.host]):
            continue
        if any(other.host == item.host for other in batch):
            continue
        batch.append(item)
    return batch
