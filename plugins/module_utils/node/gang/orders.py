# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The orders and actions that the leader and the followers of a gang share. Private to the collection. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .messages import Message

NONE, RUN, DRAIN, KILL = "none", "run", "drain", "kill"
"""What a supervisor must do with its engine: start none, let it run, drain and stop it, kill it at once."""


@dataclass(frozen=True)
class Order:
    """The present order for a node's engine. `epoch` is 0 without an engine."""

    engine: str = NONE
    epoch: int = 0
    reason: str = ""
    planned: bool = False
    """Whether the end was asked for: a stop, or a member that leaves. Such an end is no fault."""


@dataclass(frozen=True)
class Action:
    """Something to do with a connection."""

    link: int


@dataclass(frozen=True)
class Send(Action):
    """Send a message over a connection."""

    message: Message


@dataclass(frozen=True)
class Close(Action):
    """Close a connection, after its last message."""


Actions = Sequence[Action]
"""What the caller does after an event, in this order."""


def same(one: str, other: str) -> bool:
    """Whether two texts are the same address. An IPv6 address has several forms."""
    try:
        return ipaddress.ip_address(one) == ipaddress.ip_address(other)
    except ValueError:
        return one == other
