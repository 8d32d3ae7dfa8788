# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gateways that do not answer, and how long gateways hold requests."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update.gateways import (
    holds,
    too_short,
    unanswered,
)
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.view import GatewayView


def view(gateway: str = "gw", name: str = "main", *up: str, **more: Any) -> GatewayView:
    facts = {"known": True, "silent": "", "bridge_known": True, "hold_seconds": 60, **more}
    return GatewayView.from_dict({"gateway": gateway, "name": name, "up": list(up), "changed": False, **facts})


def test_each_gateway_that_does_not_answer_is_named_once() -> None:
    views = [view("gw1"), view("gw2", silent="HAProxy is down"), view("gw2", "side", silent="HAProxy is down")]
    dead, gone = unanswered(views, ["gw3", "gw3"])
    way = """If no client uses this gateway meanwhile, leave it out: -e '{"update_gateways": ["gw1"]}'"""
    assert dead == f"gw2: HAProxy is down: start it. {way}"
    assert gone.startswith("gw3: the gateway cannot be reached") and gone.endswith(way)
    assert unanswered([view("gw1")], []) == []


def test_only_the_hold_of_gateways_that_have_one_of_the_sets_counts() -> None:
    views = [view("gw1", hold_seconds=10), view("gw2", "side", hold_seconds=20), view("gw3", "other", hold_seconds=30)]
    assert holds(views, ["main", "side"]) == {"gw1": 10, "gw2": 20}


def test_a_hold_that_is_too_short_is_named_with_the_next_steps() -> None:
    running = {"gw2": 20, "gw1": 10, "gw3": 30}
    found = "gw1 runs with gateway_hold_seconds 10; gw2 runs with gateway_hold_seconds 20"
    site = "run baremetal.inference.site -l gw1,gw2"
    assert too_short(running, 30, {"gw1": 40, "gw2": 29}) == (
        f"{found}: set gateway_hold_seconds to 30 or more (requests in flight get the rest), then {site}"
    )
    assert too_short(running, 30, {"gw1": 40, "gw2": 30}) == (
        f"{found}, and the inventory has 30, 40 already: first {site}"
    )
