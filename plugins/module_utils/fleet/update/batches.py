# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Divides a fleet's instances into batches for their swaps. Private to the collection. Pure.

Batches consist of instances, not of hosts. If a gateway has several servers of a set, a batch leaves it at least one
of them. The only server of a set at a gateway is swapped in a batch without other instances of the set; plan.py decides
how the set's clients are served meanwhile.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from .serving import Serving

_NUMBER = re.compile("[0-9]{1,9}")
"""At most 9 digits: Python refuses to convert a text of thousands of digits."""


@dataclass(frozen=True, order=True)
class Due:
    """An instance that is due for a swap."""

    host: str
    name: str
    """Name of the instance, and so of the replica set."""
    followers: tuple[str, ...] = field(default=(), compare=False)
    """The other nodes of a gang. `host` is the leader's."""

    @property
    def nodes(self) -> frozenset[str]:
        """The nodes on which an engine of the instance runs."""
        return frozenset((self.host, *self.followers))


class BatchError(ValueError):
    """A size of a batch is not valid. The message says what is allowed."""


def size_of(text: str | int, total: int) -> int:
    """The number of instances or nodes in a batch, at least one. A percentage refers to `total`. Raises BatchError."""
    words = str(text).strip()
    number = words.removesuffix("%")
    if not _NUMBER.fullmatch(number) or int(number) == 0 or (number != words and int(number) > 100):
        raise BatchError(f"update_batches contains {text!r}: use a whole number from 1, or 1% to 100%")
    return max(1, math.floor(total * int(number) / 100)) if number != words else int(number)


@dataclass(frozen=True)
class Batch:
    """Instances that are swapped at once. For those in `alone`, some gateway has no other server of the set."""

    items: tuple[Due, ...]
    alone: tuple[Due, ...]


def batches(due: Iterable[Due], serving: Serving, sizes: Sequence[str | int]) -> list[Batch]:
    """The batches in their order.

    The last size is repeated until every instance is in a batch. A node swaps one instance at a time, and a gang is an
    instance of each of its nodes. Instances that get requests from the fewest gateways come first: their swaps disturb
    the fewest clients, and they may serve during the swaps of other instances. Raises BatchError.
    """
    waiting = sorted(due, key=lambda item: (serving.count(item.name, item.host), item.host, item.name))
    if not sizes:
        raise BatchError("update_batches is empty: set at least one size, such as 1 or 25%")
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
        # A gateway's last server is not swapped together with other instances of its set.
        if fellows and serving.lost(item.name, [*fellows, item.host]):
            continue
        if any(other.nodes & item.nodes for other in batch):
            continue
        batch.append(item)
    return batch
