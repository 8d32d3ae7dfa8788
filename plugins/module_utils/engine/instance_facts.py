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

    def to_dict(self) -> dict[str, Any]:
        return dict(plain(self))

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> InstanceFacts:
        return cls(**known(cls, value))


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
    keyed: bool
    """Whether the target is due, and wants a key of its clients."""
    problems: tuple[str, ...]
    """Why it cannot run the target."""
    moved: tuple[str, ...]
    """Why gateways that go by the inventory would not reach what runs."""

    def to_dict(self) -> dict[str, Any]:
        return dict(plain(self))

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> UpdateFacts:
        nested = {
            "bridge": BridgeFacts.from_dict(value["bridge"]),
            "problems": tuple(value["problems"]),
            "moved": tuple(value["moved"]),
        }
        return cls(**{**known(cls, value), **nested})
