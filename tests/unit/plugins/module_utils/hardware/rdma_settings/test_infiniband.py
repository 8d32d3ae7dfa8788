# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The subnet manager and its partitions, in the plan of a node."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import Findings
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.files import HEADER
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.infiniband import (
    PARTITIONS,
    texts,
)
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.plan import Machine, Plan, plan
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.variables import Wish
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.rdma_settings.samples import (
    facts,
    infiniband,
    roce,
)


def planned(found: dict[str, Any], machine: dict[str, Any] | None = None, **raw: Any) -> tuple[Plan, Findings]:
    return plan(raw, Machine(found, managers=("networkd",), **(machine or {})))


def test_all_ports_are_full_members_of_all_partitions() -> None:
    assert texts(Wish(subnet_manager=True)) == texts(Wish(partition_keys=["0x1"])) == {}
    made = list(texts(Wish(subnet_manager=True, partition_keys=["0x1", "8002"])).items())
    path, text = made[0]
    assert len(made) == 1
    assert path == "/etc/opensm/partitions.conf" and text.startswith(HEADER)
    assert text.splitlines()[1:] == [
        "Default=0x7fff, ipoib : ALL=full ;",
        "key8001=0x0001, ipoib : ALL=full ;",
        "key8002=0x0002, ipoib : ALL=full ;",
    ]


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        ({"partition_keys": ["0x1"]}, "key8001=0x0001, ipoib : ALL=full ;"),
        ({"mtu": 4092}, "Default=0x7fff, ipoib, mtu=5 : ALL=full ;"),
        ({"mtu": 2044}, None),
        ({"mtu": 65520, "ipoib_mode": "connected"}, None),
        ({}, None),
    ],
)
def test_only_the_node_with_the_subnet_manager_gets_the_file_of_partitions(
    raw: dict[str, Any], line: str | None
) -> None:
    """Ports in the state INIT, which wait for the subnet manager, are rails."""
    without = facts(infiniband(0, state="INIT", sm_lid=0, lid=65535))
    found, findings = planned(without, subnet_manager=True, **raw)
    assert not findings.problems and not findings.warnings and len(found.desired.rails) == 1
    text = found.texts.get(PARTITIONS)
    assert text is None if line is None else line in (text or "")
    assert (PARTITIONS in found.desired.files) is (line is not None)
    assert PARTITIONS not in planned(without, **raw)[0].texts
    foreign, findings = planned(without, {"partitions_foreign": True}, subnet_manager=True, **raw)
    assert PARTITIONS not in foreign.texts
    assert [PARTITIONS in str(warning) for warning in findings.warnings] == ([True] if line else [])


def test_a_subnet_with_a_manager_on_another_node_is_a_warning() -> None:
    _plan, findings = planned(facts(infiniband(0)), subnet_manager=True)
    assert "has a manager already (LID 1)" in str(findings.warnings[0])
    for lids in ({"lid": 7, "sm_lid": 7}, {"sm_lid": 0}, {"sm_lid": None}):
        assert not planned(facts(infiniband(0, **lids)), subnet_manager=True)[1].warnings
    assert "no port of InfiniBand; set false" in str(planned(roce(), subnet_manager=True)[1].problems[0])


def test_partitions_that_the_subnet_manager_has_not_given_are_a_warning() -> None:
    keys = ["0x8001", "0x2"]
    for table, lacking in ((["0xffff"], "0x8001, 0x2;"), (["0x7fff", "0x0001"], " 0x2;"), (None, "")):
        _plan, findings = planned(facts(infiniband(0, partition_keys=table)), partition_keys=keys)
        warnings = [str(warning) for warning in findings.warnings]
        assert (lacking in warnings[0] if lacking else not warnings) and not findings.problems
    assert not planned(facts(infiniband(0, sm_lid=7)), partition_keys=keys, subnet_manager=True)[1].warnings
