# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What gateways show of replica sets, and what to do about a gateway that does not answer. Private to the collection.
Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from ...gateway.view import GatewayView


def unanswered(views: Iterable[GatewayView], unreachable: Iterable[str]) -> list[str]:
    """A problem for each gateway that may send requests to any instance: HAProxy there is silent, or its host is
    unreachable."""
    views = list(views)
    gone = "it cannot be reached, and where it sends requests is unknown: bring it back"
    found = dict.fromkeys(unreachable, gone)
    found |= {view.gateway: f"{view.silent}: start it" for view in views if view.silent}
    answering = sorted({view.gateway for view in views} - set(found))
    setting = json.dumps({"update_gateways": answering})
    way = f"If no client can use it meanwhile, leave it out: -e '{setting}'"
    return [f"{name}: {words}. {way}" for name, words in sorted(found.items())]


def holds(views: Sequence[GatewayView], names: Iterable[str]) -> list[int]:
    """How long gateways hold requests for these sets."""
    return [view.hold_seconds for view in views if view.name in names]
