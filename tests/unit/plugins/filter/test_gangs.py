# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters for gangs, which playbooks/vars calls."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.baremetal.inference.plugins.filter.gangs import FilterModule

FILTERS = FilterModule().filters()
BIG: dict[str, Any] = {"name": "big", "nodes": ["n1", "n2"], "gang_port": 5110, "rendezvous_port": 29510}
INSTANCES = [{"name": "main"}, BIG]
HOSTVARS = {name: {"inference_address": f"192.0.2.{name[1]}", "instances": INSTANCES} for name in ("n1", "n2", "n3")}


def test_members_of_a_gang_are_in_the_rules_of_the_firewall() -> None:
    own = FILTERS["node_instances"](INSTANCES, "n2")
    site = FILTERS["gang_site"](own, HOSTVARS, list(HOSTVARS), "n2")
    assert [rule["sources"] for rule in FILTERS["gang_rules"](site, own)] == [["192.0.2.1"]]
    rules = FILTERS["gang_engine_rules"](site, own)
    assert [rule["destinations"] for rule in rules] == [["192.0.2.1", "192.0.2.2"]]


def test_a_node_without_a_gang_has_no_rules() -> None:
    own = FILTERS["node_instances"](INSTANCES, "n3")
    assert own == [{"name": "main"}]
    assert FILTERS["gang_site"](own, HOSTVARS, list(HOSTVARS), "n3") == {}
    assert (
        FILTERS["gang_rules"]({}, own)
        == FILTERS["gang_engine_rules"]({}, own)
        == FILTERS["gang_differences"]([], "a")
        == []
    )


@pytest.mark.parametrize("instances", [7, 0.5, True, "main", {"name": "main"}])
def test_a_member_whose_instances_are_no_list_is_an_error_of_the_filter(instances: object) -> None:
    hostvars = {**HOSTVARS, "n2": {"instances": instances}}
    with pytest.raises(
        AnsibleFilterError, match=re.escape(f"gang_site: n2: instances is {instances!r}: it must be a list")
    ):
        FILTERS["gang_site"](INSTANCES, hostvars, list(HOSTVARS), "n1")


def test_a_damaged_site_is_an_error_of_the_filter() -> None:
    for name in ("gang_rules", "gang_engine_rules"):
        with pytest.raises(AnsibleFilterError, match=f"{name}: the hosts"):
            FILTERS[name]({"hosts": {"n1": None}}, [])
