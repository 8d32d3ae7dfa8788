# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a gateway shows of an instance, for gateway_facts and updates. Private to the collection; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..core.records import known


@dataclass(frozen=True)
class GatewayView:
    """What the module gateway_facts read at one gateway about one instance and its replica set."""

    gateway: str
    name: str
    """The name of the instance and its replica set."""
    known: bool
    """Whether the gateway has a server for the instance."""
    silent: str
    """Why HAProxy did not answer; empty if it answered."""
    bridge_known: bool
    """Whether the gateway has a server for the bridge of the instance."""
    up: frozenset[str]
    """The hosts of the set to which the gateway sends requests, and bridges as INSTANCE_bridge.HOST."""
    hold_seconds: int
    """How long the gateway holds requests while no instance of the set serves, in seconds."""

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> GatewayView:
        return cls(**{**known(cls, value), "up": frozenset(value["up"])})

    def to_dict(self) -> dict[str, Any]:
        """The view as the module returns it."""
        return {**asdict(self), "up": sorted(self.up)}
