# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of the module engine_facts for an instance, for the module and for readers of the result. Private to the
collection. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.records import known, plain


@dataclass(frozen=True)
class Endpoint:
    """Address, port and keys of an engine."""

    address: str
    """Where the engine listens; a wildcard for every address of the node."""
    port: int
    marks: tuple[str, ...] = ()
    """A mark of each key that the engine accepts (environment.mark); empty where the engine needs no key."""

    @property
    def words(self) -> str:
        """The words with which gateways ask the agent whether the engine at this endpoint runs."""
        return f"{self.address}/{self.port}"

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Endpoint:
        return cls(str(value["address"]), int(value["port"]), tuple(value["marks"]))


@dataclass(frozen=True)
class InstanceFacts:
    """The state of an instance, for a playbook that is about to change its node: an item of `instances`."""

    name: str
    model: str
    """The model that the instance serves, or must serve; empty where unknown."""
    release: int | None
    """The number of the active release, None before the first start."""
    serving: bool
    running: bool
    """Whether systemd runs or starts the unit."""
    swapping: bool
    """Whether a swap is under way, stuck, or was cut off."""
    drained_by: str
    """The owner of the drain; empty: not drained."""
    drain_reason: str
    load_seconds: float | None
    """Seconds that the engine took to load; None where unknown."""
    endpoints: tuple[Endpoint, ...] = ()
    """The endpoints of the release that runs, and of both releases of a swap. Empty for a follower of a gang."""
    adapters: tuple[str, ...] = ()
    """The LoRA adapters that the active release serves, by name."""
    tasks: tuple[str, ...] = ()
    """The tasks of the active release's model; empty where they are not certain."""
    gang: tuple[str, ...] = ()
    """The members of the gang by rank, if the instance spans several nodes. The first member leads."""

    def to_dict(self) -> dict[str, Any]:
        return dict(plain(self))

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> InstanceFacts:
        endpoints = tuple(map(Endpoint.from_dict, value.get("endpoints", ())))
        names = {key: tuple(value.get(key, ())) for key in ("adapters", "tasks", "gang")}
        return cls(**{**known(cls, value), "endpoints": endpoints, **names})


@dataclass(frozen=True)
class BridgeFacts:
    """The engine that could serve in place of an instance during a swap."""

    name: str
    port: int | None
    """The bridge's port; None where the inventory declares no bridge_port."""
    gpus: tuple[str, ...] = ()
    left: bool = False
    """Whether an update has left a bridge, or parts of one."""
    certain: bool = True
    """Whether it is known if the bridge fits."""
    problem: str = ""
    """Why the instance can have no bridge; empty where it can."""

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> BridgeFacts:
        return cls(**{**known(cls, value), "gpus": tuple(value["gpus"])})


@dataclass(frozen=True)
class UpdateFacts:
    """What an instance runs and must run: an item of `updates`."""

    name: str
    model: str
    """The model of the release that the instance must run."""
    runs: str
    """Model, revision and image of the target: equal on all nodes that must run the same."""
    origin: int | None
    """The release that the instance runs, or ran before a swap that is not over; None before the first start."""
    target: int | None
    """The release that the instance must run. None: the inventory does not declare the instance, or there is no release
    to go back to."""
    due: bool
    """Whether the instance runs another release than the target, or is interrupted."""
    interrupted: bool
    """Whether a swap is not over, or an update was cut off before its swap and has left its drain."""
    serving: bool
    load_seconds: float | None
    """Seconds that the target will take to load; None where unknown."""
    drained_by: str
    """The owner of the drain; empty: not drained."""
    drained_until: str
    """When the drain ends by itself; empty for never."""
    bridge: BridgeFacts
    problems: tuple[str, ...]
    """Why the instance cannot run the target."""
    coming: Endpoint | None = None
    """The endpoint of the target, if the target is due and has another endpoint than the release that runs."""
    gang: tuple[str, ...] = ()
    """The members of the gang by rank, if the instance spans several nodes. The first member leads."""

    def to_dict(self) -> dict[str, Any]:
        return dict(plain(self))

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> UpdateFacts:
        nested = {
            "bridge": BridgeFacts.from_dict(value["bridge"]),
            "problems": tuple(value["problems"]),
            "gang": tuple(value.get("gang", ())),
            "coming": Endpoint.from_dict(value["coming"]) if value.get("coming") else None,
        }
        return cls(**{**known(cls, value), **nested})
