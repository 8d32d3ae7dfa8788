# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters that show a fleet."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.filter.fleet import FilterModule

FILTERS = FilterModule().filters()


def test_a_fleet_as_screen_and_as_page() -> None:
    reported = {"gpu1": {"unreachable": True, "msg": "no route"}}
    assert FILTERS["fleet_screen"](reported).splitlines()[-1] == "gpu1: UNREACHABLE: no route"
    page = FILTERS["fleet_page"](reported)
    assert page.startswith("<!doctype html>") and "0 of 1 nodes answered" in page


def test_how_many_there_are() -> None:
    assert FILTERS["counted"](["gpu1"], "node") == "1 node"
    assert FILTERS["counted"](["gpu1", "gpu2"], "node") == "2 nodes"
    assert FILTERS["counted"]([], "node") == "0 nodes"
