# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gateways that do not answer, and how long gateways hold requests. Private to the collection. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from ...gateway.view import GatewayView


def unanswered(views: Iterable[GatewayView], unreachable: Iterable[str]) -> list[str]:
    """A problem for each gateway whose HAProxy or host does not answer: it may send requests to any instance."""
    views = list(views)
    gone = "the gateway cannot be reached, so it is unknown where it sends requests: repair its connection"
    found = dict.fromkeys(unreachable, gone)
    found |= {view.gateway: f"{view.silent}: start it" for view in views if view.silent}
    answering = sorted({view.gateway for view in views} - set(found))
    setting = json.dumps({"update_gateways": answering})
    way = f"If no client uses this gateway meanwhile, leave it out: -e '{setting}'"
    return [f"{name}: {words}. {way}" for name, words in sorted(found.items())]


def holds(views: Sequence[GatewayView], names: Iterable[str]) -> dict[str, int]:
    """How many seconds each gateway that has these sets holds requests now, by the gateway's name."""
    return {view.gateway: view.hold_seconds for view in views if view.name in names}


def too_short(running: Mapping[str, int], needed: int, declared: Mapping[str, int]) -> str:
    """Which gateways hold requests for less than `needed` seconds, and how to change that.

    `running`: the seconds with which each gateway runs. `declared`: gateway_hold_seconds in the inventory, by gateway.
    """
    short = {name: seconds for name, seconds in sorted(running.items()) if seconds < needed}
    found = "; ".join(f"{name} runs with gateway_hold_seconds {seconds}" for name, seconds in short.items())
    site = f"run baremetal.inference.site -l {','.join(short)}"
    if all(declared.get(name, 0) >= needed for name in short):
        values = ", ".join(map(str, sorted({declared[name] for name in short})))
        return f"{found}, and the inventory has {values} already: first {site}"
    return f"{found}: set gateway_hold_seconds to {needed} or more (requests in flight get the rest), then {site}"
