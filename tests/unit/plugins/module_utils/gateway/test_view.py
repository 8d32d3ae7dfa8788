# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a gateway shows of an instance, on its way from a module to a plan."""

from __future__ import annotations

import json

from ansible_collections.baremetal.inference.plugins.module_utils.gateway.view import GatewayView


def test_a_view_is_read_from_json_as_it_was_written() -> None:
    view = GatewayView("gw", "main", True, "", False, frozenset({"b", "a"}), 90)
    sent = json.loads(json.dumps(view.to_dict()))
    assert sent["up"] == ["a", "b"]
    assert GatewayView.from_dict({**sent, "changed": False, "requests": 7}) == view
