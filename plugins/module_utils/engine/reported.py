# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nodes have reported about their engines, for gateways and Prometheus. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .instance_facts import InstanceFacts

FACT = "vllm_engines"
"""The host variable with the result of the module engine_facts. The file `running` of role vllm sets the variable."""


def running(variables: Mapping[str, Any]) -> dict[str, InstanceFacts]:
    """The instances of a host that have started at least once, by name, from the host's variables.

    Instances without a known model are left out. Where the node did not answer, the result is empty, and the inventory
    counts.
    """
    reported = variables.get(FACT) or {}
    found = map(InstanceFacts.from_dict, reported.get("instances") or ())
    return {one.name: one for one in found if one.release is not None and one.model}
