# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters that show a fleet."""

from __future__ import annotations

import subprocess
import sys

from ansible_collections.baremetal.inference.plugins.filter.fleet import FilterModule

FILTERS = FilterModule().filters()
PACKAGE = "ansible_collections.baremetal.inference.plugins.module_utils"


def test_a_fleet_is_rendered_as_screen_and_as_page() -> None:
    reported = {"gpu1": {"unreachable": True, "msg": "no route"}}
    assert FILTERS["fleet_screen"](reported).splitlines()[-1] == "gpu1: UNREACHABLE: no route"
    page = FILTERS["fleet_page"](reported)
    assert page.startswith("<!doctype html>") and "0 of 1 nodes answered" in page


def test_a_count_of_one_has_the_singular() -> None:
    assert FILTERS["counted"](["gpu1"], "node") == "1 node"
    assert FILTERS["counted"](["gpu1", "gpu2"], "node") == "2 nodes"
    assert FILTERS["counted"]([], "node") == "0 nodes"


def test_a_count_imports_all_that_the_filters_of_the_sites_variables_need() -> None:
    """After a count in a new process, a filter of instances over several nodes imports nothing."""
    script = f"""
import sys
from importlib import import_module
from {FilterModule.__module__} import FilterModule
from {FilterModule.__module__.replace("fleet", "gangs")} import FilterModule as Gangs
assert FilterModule().filters()["counted"](["gpu1"], "node", library=True) == "1 node"
known = set(sys.modules)
filters = Gangs().filters()
site = filters["gang_site"]([], {{"gpu1": {{}}}}, ["gpu1"], "gpu1")
filters["gang_rules"](site, [])
# The action of the module `model` imports this file.
import_module("{PACKAGE}.node.calls.model")
print(sorted(name for name in set(sys.modules) - known if "baremetal" in name))
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
