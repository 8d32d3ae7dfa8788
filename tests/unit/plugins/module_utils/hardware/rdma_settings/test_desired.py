# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The document of the desired settings."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings import desired
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.desired import Desired, Rail

RAIL = Rail(
    key="0000:10:00.0/1",
    layer="ethernet",
    mtu=9000,
    address="10.1.0.7/16",
    network="10.1.0.0/16",
    table=1001,
    pfc=[3],
    dscp={"26": 3, "48": 6},
    bandwidth=[50, 0, 0, 50, 0, 0, 0, 0],
    algorithms=["ets", "strict", "strict", "ets", "strict", "strict", "strict", "strict"],
    classes=[0, 0, 0, 3, 0, 0, 6, 0],
    rdma_cm_tos=0,
    rdma_cm_mode="RoCE v2",
    cnp_dscp=0,
    cnp_priority=0,
    ecn=False,
    ecn_priority=3,
    max_read_request=4096,
    relaxed_ordering=False,
    acs_off=True,
    sysctls={"arp_ignore": 1},
)


def test_a_document_has_all_settings_also_those_that_are_zero_or_off() -> None:
    wanted = Desired([RAIL, Rail("0000:11:00.0/1", "infiniband", partition_keys=["0x8001"])], "networkd", ("/b", "/a"))
    document = json.loads(json.dumps(wanted.as_dict()))
    assert document["rails"][1] == {"key": "0000:11:00.0/1", "layer": "infiniband", "partition_keys": ["0x8001"]}
    assert desired.of(document, "/x") == Desired(wanted.rails, "networkd", ("/a", "/b"))
    assert desired.keys(document) == ["0000:10:00.0/1", "0000:11:00.0/1"]


@pytest.mark.parametrize(
    "stored",
    [
        *(None, [], {}, {"schema": 2}, {"schema": 1}),
        *(
            {"schema": 1, "rails": [rail], "manager": "none", "files": []}
            for rail in (
                {"mtu": 1},
                {"key": "k/1", "layer": "ethernet", "mtu": "9000"},
                {"key": 1, "layer": "ethernet"},
            )
        ),
    ],
)
def test_a_damaged_document_is_an_error(stored: Any) -> None:
    with pytest.raises(ValueError, match=r"^/x .*: run baremetal\.inference\.site"):
        desired.of(stored, "/x")
    assert desired.keys(stored) == []


@given(st.integers(0, 7), st.integers(0, 63), st.booleans(), st.booleans())
def test_a_document_is_read_back(priority: int, dscp: int, ecn: bool, relaxed: bool) -> None:
    rail = Rail("k/1", "ethernet", pfc=[priority], dscp={str(dscp): priority}, ecn=ecn, relaxed_ordering=relaxed)
    assert desired.of(Desired([rail]).as_dict(), "").rails == [rail]
