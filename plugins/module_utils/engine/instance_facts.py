# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module engine_facts returns of an instance, for the module and for all that reads its result. Private to the
collection. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.records import known, plain


@dataclass(frozen=True)
class Endpoint:
    """What an engine is reached by."""

    address: str
    """Where the engine listens; a wildcard for every address of the node."""
    port: int
    marks: tuple[str, ...] = ()
    """Of the keys that the engine accepts (environment.mark); none where the engine answers everybody."""

    @property
    def words(self) -> str:
        """By which gateways ask the agent whether the engine that runs is this one."""
        return f"{self.address}/{self.port}"

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Endpoint:
        return cls(str(value["address"]), int(value["port"]), tuple(value["marks"]))


@dataclass(frozen=True)
class InstanceFacts:
    """The state of an instance, for a playbook that is about to disturb its node: an item of `instances`."""

    name: str
    model: str
    """The model that it serves, or has to serve; empty where that is not known."""
    release: int | None
    """The number of the installed release, None before the first start."""
    serving: bool
    running: bool
    """Whether systemd runs it, or starts it."""
    swapping: bool
    """Whether an update swaps it, or did when the update was cut off."""
    drained_by: str
    """The owner of its drain; empty where it is not drained."""
    drain_reason: str
    load_seconds: float | None
    """How long it took to load, where that is known."""
    endpoints: tuple[Endpoint, ...] = ()
    """What it is reached by: of the release that runs, and of both releases of a swap. None where nothing runs."""

    def to_dict(self) -> dict[str, Any]:
        return dict(plain(self))

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> InstanceFacts:
        endpoints = tuple(map(Endpoint.from_dict, value.get("endpoints", ())))
        return cls(**{**known(cls, value), "endpoints": endpoints})


@dataclass(frozen=True)
class BridgeFacts:
    """The engine that could serve in the place of an instance while the instance is swapped."""

    name: str
    port: int | None
    """Where it would listen; None where the inventory declares no bridge_port."""
    gpus: tuple[str, ...] = ()
    left: bool = False
    """Whether an update has left a bridge, or parts of one."""
    certain: bool = True
    """Whether it is known that the bridge fits."""
    problem: str = ""
    """Why there can be no bridge; empty where there can."""

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> BridgeFacts:
        return cls(**{**known(cls, value), "gpus": tuple(value["gpus"])})


@dataclass(frozen=True)
class UpdateFacts:
    """What an instance runs and must run: an item of `updates`."""

    name: str
    model: str
    """Of the release that it must run."""
    runs: str
    """What the target runs, by model, revision and image; the same on all nodes where it is the same."""
    origin: int | None
    """The release that it runs, or ran before a swap that was cut off; None before the first start."""
    target: int | None
    """The release that it must run; None for an instance that the inventory does not declare."""
    due: bool
    """Whether it runs another release, or a swap was cut off."""
    interrupted: bool
    """Whether a swap was cut off."""
    serving: bool
    load_seconds: float | None
    """How long the target will take to load, where that is known."""
    drained_by: str
    """The owner of its drain; empty where it is not drained."""
    drained_until: str
    """When the drain ends by itself; empty for never."""
    bridge: BridgeFacts
    problems: tuple[str, ...]
    """Why it cannot run the target."""
    coming: Endpoint | None = None
    """What the target is reached by, where the target is due and is reached by something else than what runs."""

    def to_dict(self) -> dict[str, Any]:
        return dict(plain(self))

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> UpdateFacts:
        nested = {
            "bridge": BridgeFacts.from_dict(value["bridge"]),
            "problems": tuple(value["problems"]),
            "coming": Endpoint.from_dict(value["coming"]) if value.get("coming") else None,
        }
        return cls(**{**known(cls, value), **nested})
