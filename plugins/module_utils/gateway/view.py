# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a gateway shows of an instance, for gateway_facts and for updates. Private to the collection; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..core.records import known


@dataclass(frozen=True)
class GatewayView:
    """What the module gateway_facts found at one gateway of one instance and its replica set."""

    gateway: str
    name: str
    """The instance's, and so the replica set's."""
    known: bool
    """Whether the gateway has a server for the instance."""
    silent: str
    """Why nothing is known, where HAProxy does not answer."""
    bridge_known: bool
    """Whether the gateway has a server for the bridge of the instance."""
    up: frozenset[str]
    """The hosts of the set that the gateway sends requests to."""
    hold_seconds: int
    """How long the gateway holds requests while no instance of the set serves."""

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> GatewayView:
        return cls(**{**known(cls, value), "up": frozenset(value["up"])})

    def to_dict(self) -> dict[str, Any]:
        """As the module returns the view."""
        return {**asdict(self), "up": sorted(self.up)}
