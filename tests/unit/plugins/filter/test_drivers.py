# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter nvidia_driver_plan takes the facts of a node as they are, and documents what it returns."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.filter.drivers import FilterModule, nvidia_driver_plan

from ..driver_node import driver_node, facts_of, same_keys

DOCUMENTED = Path(__file__).parents[4] / "plugins/filter/nvidia_driver_plan.yml"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return driver_node(tmp_path)


def test_the_filter_takes_the_facts_as_they_are(root: Path) -> None:
    facts = facts_of(root)
    decision = nvidia_driver_plan({"source": "debian", "flavor": "open"}, facts, month="2026-11")
    assert decision["problems"] == []
    assert decision["plan"]["sign"] is True
    assert decision["plan"]["remove"] == []
    documented = yaml.safe_load(DOCUMENTED.read_text())
    same_keys(documented["RETURN"]["_value"]["contains"], decision)


def test_the_documented_defaults_are_those_of_the_filter() -> None:
    documented = yaml.safe_load(DOCUMENTED.read_text())
    wish = documented["DOCUMENTATION"]["options"]["_input"]["suboptions"]
    facts = {"debian": 12, "packages": {}, "kernels": [], "secure_boot": {"enabled": None}, "runfile": None}
    defaults = {name: option["default"] for name, option in wish.items() if "default" in option}
    assert nvidia_driver_plan({"source": "debian", **defaults}, facts) == nvidia_driver_plan(
        {"source": "debian"}, facts
    )


def test_ansible_finds_the_filter() -> None:
    assert FilterModule().filters() == {"nvidia_driver_plan": nvidia_driver_plan}
