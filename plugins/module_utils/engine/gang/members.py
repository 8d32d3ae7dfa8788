# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The members of a gang, as each node keeps them. Private to the collection. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ...core.records import known

DIGEST_DIGITS = 12
"""Digits of a gang digest in messages."""


@dataclass(frozen=True)
class Member:
    """A node of a gang."""

    node: str
    """The name in the inventory."""
    rank: int
    address: str
    """The address at which the other members reach this node."""


@dataclass(frozen=True)
class Gang:
    """An instance over several nodes, as the member of one rank sees it."""

    name: str
    """The instance."""
    rank: int
    """The rank of this node."""
    members: tuple[Member, ...]
    """All members, by rank. The first member leads."""
    gang_port: int
    """The port of the channel. The leader listens on it."""
    rendezvous_port: int
    """The port at which the engines of a gang find each other. The leader's engine listens on it."""
    digest: str = ""
    """The same on two members exactly if both run the same release of the gang. Empty before a release is rendered."""
    executor: str = ""
    """The program that places the engine's processes; empty for the engine itself."""
    dashboard: bool = False
    """Whether the executor shows its dashboard."""

    @property
    def leads(self) -> bool:
        """Whether this node leads the gang."""
        return self.rank == 0

    @property
    def leader(self) -> Member:
        return self.members[0]

    @property
    def me(self) -> Member:
        """This node."""
        return self.members[self.rank]

    @property
    def others(self) -> tuple[Member, ...]:
        """All members but this node."""
        return tuple(member for member in self.members if member.rank != self.rank)

    @property
    def followers(self) -> tuple[Member, ...]:
        return self.members[1:]

    @property
    def world(self) -> int:
        """The number of members."""
        return len(self.members)

    def member(self, node: str) -> Member | None:
        """The member with the name of a node; None if the node is no member."""
        return next((member for member in self.members if member.node == node), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON. Without Ray, the executor's keys are left out, as in records of earlier versions."""
        values = {**asdict(self), "members": [asdict(member) for member in self.members]}
        return {key: value for key, value in values.items() if key not in ("executor", "dashboard") or value}

    @classmethod
    def from_dict(cls, value: Any) -> Gang:
        """A gang from the form of to_dict(), of any version. Raises ValueError where the value is damaged."""
        try:
            members = tuple(Member(**known(Member, each)) for each in value["members"])
            made = cls(**{**known(cls, value), "members": members})
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"has a damaged gang ({error!r})") from error
        if [member.rank for member in members] != list(range(len(members))) or made.rank not in range(len(members)):
            raise ValueError("has a gang whose ranks are not 0, 1, 2 and so on")
        return made


def from_optional(value: Mapping[str, Any] | None) -> Gang | None:
    """The gang of a record; None for an instance on one node. Raises ValueError where the value is damaged."""
    return None if value is None else Gang.from_dict(value)
