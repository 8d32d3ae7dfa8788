# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of one instance, as `inferctl plan --json` prints it. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..config.facts import ModelFacts
from .capabilities import Capability
from .devices import Device
from .fit import Fit, fit
from .share import WHOLE, Share

NOT_THERE = "the model: its files are not on this node yet, and no other facts about it are known"


def plan(
    model: str,
    argv: Sequence[str],
    facts: ModelFacts | None,
    entry: Mapping[str, Any],
    devices: Sequence[Device],
    environment: Mapping[str, Any] | None = None,
    lowest_capability: Capability | None = None,
    node_gpus: int | None = None,
    draft: ModelFacts | None = None,
    share: Share = WHOLE,
) -> dict[str, Any]:
    """The command of the instance, and whether it fits.

    `model` is the name of the entry, `argv` the rendered command of `entry`. The flags are read from `entry`. `ok`
    is None if there is no misfit, but something is unknown; `unknown` names it. For a model without facts, only flags
    and GPUs are checked. `node_gpus` is the number of the node's GPUs, None if unknown. `draft` are the facts of the
    entry's draft model. `share` is the node's share of an engine over several nodes.
    """
    answer = fit(facts or ModelFacts(), entry, devices, environment, lowest_capability, node_gpus, draft, share)
    return to_dict(model, argv, devices, answer if facts else replace(answer, unknown=(NOT_THERE,)))


def to_dict(model: str, argv: Sequence[str], devices: Sequence[Device], answer: Fit) -> dict[str, Any]:
    """Plain values, for JSON."""
    return {
        "ok": answer.ok,
        "model": model,
        "argv": list(argv),
        "devices": [
            {
                "name": device.name,
                "memory_mib": device.memory_mib,
                "compute_capability": None if device.compute_capability is None else device.capability,
            }
            for device in devices
        ],
        "estimate": answer.estimate.to_dict(),
        "problems": [one.to_dict() for one in answer.misfits],
        "unknown": list(answer.unknown),
        "notes": list(answer.notes),
    }
