# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node has told of its engines, for whoever names them: gateways, and Prometheus. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FACT = "vllm_engines"
"""The host variable that role vllm's `running` keeps it in: what the module engine_facts has returned."""


@dataclass(frozen=True)
class Running:
    """What an instance runs."""

    model: str
    release: int


def running(variables: Mapping[str, Any]) -> dict[str, Running]:
    """What the instances of a host run, by name, from its variables.

    Those that never started are left out, and all where the node has not told: nobody knows better than the inventory.
    """
    told = variables.get(FACT) or {}
    return {
        str(one["name"]): Running(str(one["model"]), int(one["release"]))
        for one in told.get("instances") or ()
        if one["release"] is not None and one["model"]
    }
