# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gateways that do not answer, and how long gateways hold requests. Private to the collection. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

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


def holds(views: Sequence[GatewayView], names: Iterable[str]) -> list[int]:
    """The gateway_hold_seconds of each gateway that has these sets, in seconds."""
    return [view.hold_seconds for view in views if view.name in names]
